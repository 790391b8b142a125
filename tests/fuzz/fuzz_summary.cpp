// Any two inputs joined into a summary: nothing crashes or hangs, a summary of the summary is the
// same, and without names it has as many recordings.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "anonymous/anonymize.h"
#include "mend.h"
#include "output.h"
#include "passes/condense.h"
#include "passes/reducer.h"

namespace {

using namespace flopinj::reduce;

Condensed condensed(const std::vector<std::string>& parts) {
  std::vector<std::unique_ptr<Input>> inputs;
  std::vector<Input*> all;
  for (const auto& bytes : parts)
    inputs.push_back(Input::from_memory("fuzz", bytes.data(), bytes.size()));
  for (const auto& input : inputs) all.push_back(input.get());
  return condense(all);
}

std::string without_names(const std::string& summary) {
  static const AnonymousNames names(KeyedHash({1, 2}));
  const auto input = Input::from_memory("fuzz", summary.data(), summary.size());
  DamageLog damage;
  return anonymize(*input, names, {}, damage);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> mended(data, data + size);
  flopinj::test::mend_check_sums(mended.data(), mended.size());
  const std::string all(mended.begin(), mended.end());
  const Condensed made = condensed({all.substr(0, size / 2), all.substr(size / 2)});
  const std::string& once = made.bytes;
  if (condensed({once}).bytes != once || condensed({once, once}).bytes != once) std::abort();
  if (condensed({without_names(once)}).recordings != made.recordings) std::abort();
  ReduceOptions options;
  options.jobs = 1;  // so little is read on this thread
  Reducer reducer(std::move(options));
  reducer.add(Input::from_memory("fuzz", once.data(), once.size()));
  if (!reducer.any_input()) return 0;
  flopinj::test::show(reducer.run(), {reinterpret_cast<const char*>(data), size});
  return 0;
}
