// Any bytes as a trace, as they are and with right check sums: the reducer must come to a report,
// and to every launch on a time line.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "mend.h"
#include "output.h"
#include "passes/reducer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<uint8_t> mended(data, data + size);
  test::mend_check_sums(mended.data(), mended.size());
  for (const uint8_t* bytes : {data, static_cast<const uint8_t*>(mended.data())}) {
    reduce::ReduceOptions options;
    options.launch_times = true;
    options.jobs = 1;  // so little is read on this thread
    options.launches = [](reduce::Launches& launches) { test::show(launches); };
    reduce::Reducer reducer(std::move(options));
    reducer.add(reduce::Input::from_memory("fuzz", bytes, size));
    test::show(reducer.run(), input);
  }
  return 0;
}
