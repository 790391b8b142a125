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
#include "passes/reducer.h"
#include "passes/summary/condense.h"

namespace {

using namespace flopinj::reduce;

struct Merged {
  std::string bytes;
  uint64_t recordings = 0;
};

Merged merged(const std::vector<std::string>& parts) {
  Merge merge;
  for (const auto& bytes : parts) merge.add(Input::from_memory("fuzz", bytes.data(), bytes.size()));
  merge.choose();
  Merged made{{}, merge.recordings()};
  merge.write([&](std::string_view bytes) { made.bytes += bytes; });
  return made;
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
  const Merged made = merged({all.substr(0, size / 2), all.substr(size / 2)});
  const std::string& once = made.bytes;
  if (merged({once}).bytes != once || merged({once, once}).bytes != once) std::abort();
  if (merged({without_names(once)}).recordings != made.recordings) std::abort();
  ReduceOptions options;
  options.launch_times = true;
  options.jobs = 1;  // so little is read on this thread
  Reducer reducer(std::move(options));
  reducer.add(Input::from_memory("fuzz", once.data(), once.size()));
  if (!reducer.any_input()) return 0;
  flopinj::test::show(reducer.run(), {reinterpret_cast<const char*>(data), size});
  return 0;
}
