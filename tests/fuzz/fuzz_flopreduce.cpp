// Any bytes as a trace, as they are and with right check sums: the reducer must come to a report,
// and to every launch on a time line. Where the time went must add up.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

#include "mend.h"
#include "output.h"
#include "passes/reducer.h"
#include "support/lost_sums.h"

namespace {

// Of every device and precision that a trace may have.
std::vector<flopinj::reduce::PeakOverride> some_peaks() {
  std::vector<flopinj::reduce::PeakOverride> peaks;
  for (const char* precision :
       {"fp64", "fp32", "fp16", "bf16", "tensor_fp16", "tensor_bf16", "tensor_tf32", "tensor_fp8",
        "tensor_fp64", "tensor_int8", "memory"})
    peaks.push_back(flopinj::reduce::parse_peak(precision + std::string("=10T")).value);
  return peaks;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace flopinj;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::vector<uint8_t> mended(data, data + size);
  test::mend_check_sums(mended.data(), mended.size());
  for (const uint8_t* bytes : {data, static_cast<const uint8_t*>(mended.data())}) {
    reduce::ReduceOptions options;
    options.launch_times = true;
    options.lost = true;
    static const auto kPeaks = some_peaks();
    options.utilization.peaks = kPeaks;
    options.utilization.skip_steps = size % 2;
    options.jobs = 1;  // so little is read on this thread
    options.launches = [](reduce::Launches& launches) { test::show(launches); };
    reduce::Reducer reducer(std::move(options));
    reducer.add(reduce::Input::from_memory("fuzz", bytes, size));
    const reduce::Report report = reducer.run();
    if (!test::adds_up(report.lost)) std::abort();
    test::show(report, input);
  }
  return 0;
}
