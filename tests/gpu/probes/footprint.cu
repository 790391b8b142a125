// What the range profiler holds and costs while nothing is measured; two contexts on one device.
#include "probe.h"

namespace probe {
namespace {

double free_megabytes() {
  size_t available = 0, total = 0;
  observe(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  return static_cast<double>(available) / (1 << 20);
}

}  // namespace

void memory_held() {
  const double before = free_megabytes();
  RangeWindows windows;
  if (!windows.enable()) return;
  say("device memory held after Enable", before - free_megabytes(), "MiB");
  for (const Metrics* metrics : {&kInstructions, &kHardware}) {
    if (!windows.plan(*metrics)) continue;
    for (const size_t ranges : {1, 64, 512}) {
      if (!windows.open(ranges)) continue;
      const std::string of =
          std::string(metrics->front()) + ", " + std::to_string(ranges) + " ranges";
      say_count("counter image, " + of, windows.image_bytes(), "B");
      say("device memory held in the window, " + of, before - free_megabytes(), "MiB");
      launch(10);
      observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      say("device memory held after a launch in it, " + of, before - free_megabytes(), "MiB");
      windows.close();
      say("device memory held after the window, " + of, before - free_megabytes(), "MiB");
    }
  }
  windows.disable();
  say("device memory held after Disable", before - free_megabytes(), "MiB");
}

void enable_and_disable() {
  say("launch before the first Enable", microseconds_per_launch(5000, 10), "us");
  RangeWindows windows;
  for (int i = 1; i <= 20; ++i) {
    if (!windows.enable()) return;
    const double enable = windows.cost().enable;
    const Stopwatch watch;
    windows.disable();
    if (i == 1 || i == 2 || i == 20) {
      say("Enable number " + std::to_string(i), enable, "us");
      say("Disable number " + std::to_string(i), watch.microseconds(), "us");
    }
  }
  say("launch after 20 pairs, disabled", microseconds_per_launch(5000, 10), "us");
  if (!windows.enable() || !windows.plan(kInstructions) || !windows.open(16)) return;
  launch(30);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (windows.close() == 1)
    say_count("steps of a launch of 30 after 20 pairs",
              static_cast<uint64_t>(steps_of(windows.values(0))));
  say("launch, enabled, no window", microseconds_per_launch(5000, 10), "us");
  windows.disable();
  say("launch, disabled at last", microseconds_per_launch(5000, 10), "us");
}

void two_contexts() {
  CUdevice device = 0;
  CUcontext primary = nullptr, second = nullptr;
  cuCtxGetCurrent(&primary);
  cuCtxGetDevice(&device);
#if CUDA_VERSION >= 13000
  const CUresult made = cuCtxCreate(&second, nullptr, 0, device);
#else
  const CUresult made = cuCtxCreate(&second, 0, device);
#endif
  say_count("result of cuCtxCreate", static_cast<uint64_t>(made));
  if (made != CUDA_SUCCESS) return;
  RangeWindows in_second, in_primary;
  say("Enable in the second context", in_second.enable() ? "works" : "is refused");
  cuCtxSetCurrent(primary);
  say("Enable in the primary context, the second enabled",
      in_primary.enable() ? "works" : "is refused");
  if (in_primary.plan(kInstructions) && in_primary.open(16)) {
    launch(11);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    say_count("ranges of 1 launch in the primary context, both enabled", in_primary.close());
  }
  cuCtxSetCurrent(second);
  in_second.disable();
  cuCtxSetCurrent(primary);
  if (in_primary.object() != nullptr) in_primary.disable();
  RangeWindows again;
  if (again.enable() && again.plan(kInstructions) && again.open(16)) {
    launch(12);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    say_count("ranges of 1 launch in the primary context, enabled by itself", again.close());
    again.disable();
  }
  cuCtxDestroy(second);
}

}  // namespace probe
