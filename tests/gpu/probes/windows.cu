// What windows cost, what they do to memory, graphs in them, user ranges.
#include "probe.h"

namespace probe {
namespace {

__global__ void increment(unsigned long long* counter) { ++*counter; }

}  // namespace

void cost() {
  constexpr int kSmall = 10, kLarge = 20000;
  microseconds_per_launch(100, kSmall);
  say("launch, small kernel, no CUPTI", microseconds_per_launch(5000, kSmall), "us");
  say("launch, large kernel, no CUPTI", microseconds_per_launch(200, kLarge), "us");
  RangeWindows windows;
  if (!windows.enable()) return;
  say("Enable", windows.cost().enable, "us");
  say("launch, small kernel, enabled, no window", microseconds_per_launch(5000, kSmall), "us");
  const std::pair<const char*, const Metrics*> groups[] = {
      {"instructions", &kInstructions}, {"hardware", &kHardware}, {"replayed", &kBoth}};
  for (const auto& [name, metrics] : groups) {
    const std::string in = std::string(", ") + name;
    if (!windows.plan(*metrics)) continue;
    say_count("passes" + in, windows.passes());
    say("HostInitialize" + in, windows.cost().host_initialize, "us");
    say("configuration image" + in, windows.cost().config, "us");
    if (!windows.open(1024)) continue;
    say("counter image for 1024 ranges" + in, windows.cost().counter_image, "us");
    say("SetConfig" + in, windows.cost().set_config, "us");
    say("Start" + in, windows.cost().start, "us");
    say("launch in window, small kernel" + in, microseconds_per_launch(500, kSmall), "us");
    say("launch in window, large kernel" + in, microseconds_per_launch(50, kLarge), "us");
    const size_t ranges = windows.close();
    say("Stop after 550 launches" + in, windows.cost().stop, "us");
    say("Decode of 550 launches" + in, windows.cost().decode, "us");
    const Stopwatch watch;
    for (size_t i = 0; i < ranges; ++i) windows.values(i);
    if (ranges > 0)
      say("Evaluate, per range" + in, watch.microseconds() / static_cast<double>(ranges), "us");
    say("launch, small kernel, after the window" + in, microseconds_per_launch(2000, kSmall), "us");
  }
  windows.disable();
  say("launch, small kernel, disabled again", microseconds_per_launch(5000, kSmall), "us");
}

void memory() {
  auto* counter = static_cast<unsigned long long*>(nullptr);
  observe(cudaMalloc(&counter, sizeof *counter), "cudaMalloc");
  RangeWindows windows;
  if (!windows.enable()) return;
  for (const size_t gibibytes : {0, 2, 8}) {
    void* ballast = nullptr;
    if (gibibytes != 0) {
      observe(cudaMalloc(&ballast, gibibytes << 30), "cudaMalloc");
      observe(cudaMemset(ballast, 1, gibibytes << 30), "cudaMemset");
    }
    for (const Metrics* metrics : {&kInstructions, &kHardware, &kBoth}) {
      observe(cudaMemset(counter, 0, sizeof *counter), "cudaMemset");
      if (!windows.plan(*metrics) || !windows.open(16)) continue;
      const Stopwatch watch;
      for (int i = 0; i < 8; ++i) increment<<<1, 1>>>(counter);
      observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
      const double each = watch.microseconds() / 8;
      windows.close();
      unsigned long long increments = 0;
      observe(cudaMemcpy(&increments, counter, sizeof increments, cudaMemcpyDeviceToHost),
              "cudaMemcpy");
      const std::string what = std::to_string(windows.passes()) + " pass(es) of " +
                               metrics->front() + ", " + std::to_string(gibibytes) +
                               " GiB allocated";
      say("launch with " + what, each, "us");
      say_count("increments by 8 launches with " + what, increments);
    }
    if (ballast != nullptr) observe(cudaFree(ballast), "cudaFree");
  }
  windows.disable();
}

void graph() {
  cudaStream_t stream = nullptr;
  observe(cudaStreamCreate(&stream), "cudaStreamCreate");
  observe(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  for (const int steps : {10, 20, 30}) launch(steps, stream);
  cudaGraph_t captured = nullptr;
  cudaGraphExec_t before = nullptr, after = nullptr;
  observe(cudaStreamEndCapture(stream, &captured), "cudaStreamEndCapture");
  observe(cudaGraphInstantiate(&before, captured, 0), "cudaGraphInstantiate");
  RangeWindows windows;
  if (!windows.enable()) return;
  observe(cudaGraphInstantiate(&after, captured, 0), "cudaGraphInstantiate");
  const std::pair<const char*, cudaGraphExec_t> graphs[] = {{"graph made before Enable", before},
                                                            {"graph made after Enable", after}};
  for (const auto& [name, executable] : graphs)
    for (const Metrics* metrics : {&kInstructions, &kHardware, &kBoth}) {
      if (!windows.plan(*metrics) || !windows.open(16)) continue;
      launch(7, stream);
      observe(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
      launch(8, stream);
      observe(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      const size_t ranges = windows.close();
      const std::string what = std::string(name) + ", a kernel before and after, " +
                               std::to_string(windows.passes()) + " pass(es) of " +
                               metrics->front();
      say_count(what + ": ranges", ranges);
      say(what + ": values", windows.first_values(ranges).c_str());
    }
  windows.disable();
}

void counters() {
  RangeWindows windows;
  const bool open = windows.enable() && windows.plan(kHardware) && windows.open(1);
  if (open) launch(10);
  const bool read = open && windows.close() == 1 && windows.values(0)[0] > 0;
  say("counters can be read", read ? "yes" : "no");
  if (open) windows.disable();
}

void user_range() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kHardware)) return;
  if (windows.open(64)) {
    say("launch in an automatic range", microseconds_per_launch(50, 10), "us");
    windows.close();
  }
  if (!windows.open(64, CUPTI_UserRange, CUPTI_UserReplay)) return;
  windows.push("work");
  say("launch in one user range", microseconds_per_launch(50, 10), "us");
  windows.pop();
  say_count("user ranges read", windows.close());
  windows.disable();
}

}  // namespace probe
