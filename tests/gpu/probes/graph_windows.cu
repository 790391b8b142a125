// Windows around one graph launch, which the library does not open: how many ranges, in which
// order, and whether what they count is what the same kernels count outside of a graph.
#include "probe.h"

namespace probe {
namespace {

// What `enqueue` puts on two streams, as a graph.
template <class Enqueue>
cudaGraphExec_t captured(Enqueue&& enqueue) {
  cudaStream_t main = nullptr, side = nullptr;
  observe(cudaStreamCreateWithFlags(&main, cudaStreamNonBlocking), "cudaStreamCreate");
  observe(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), "cudaStreamCreate");
  cudaEvent_t forked = nullptr, joined = nullptr;
  observe(cudaEventCreate(&forked), "cudaEventCreate");
  observe(cudaEventCreate(&joined), "cudaEventCreate");
  observe(cudaStreamBeginCapture(main, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  observe(cudaEventRecord(forked, main), "cudaEventRecord");
  observe(cudaStreamWaitEvent(side, forked, 0), "cudaStreamWaitEvent");
  enqueue(main, side);
  observe(cudaEventRecord(joined, side), "cudaEventRecord");
  observe(cudaStreamWaitEvent(main, joined, 0), "cudaStreamWaitEvent");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  observe(cudaStreamEndCapture(main, &graph), "cudaStreamEndCapture");
  observe(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  return executable;
}

void look_into(RangeWindows& windows, const char* name, cudaGraphExec_t graph) {
  for (const Metrics* metrics : {&kInstructions, &kHardware}) {
    if (!windows.plan(*metrics)) continue;
    for (const bool in_window : {false, true, true}) {
      if (in_window && !windows.open(64)) break;
      const Stopwatch watch;
      observe(cudaGraphLaunch(graph, nullptr), "cudaGraphLaunch");
      const double call = watch.microseconds();
      const std::string what = std::string(name) + ", " + metrics->front() +
                               (in_window ? ", in a window" : ", no window");
      say(what + ": launch call", call, "us");
      if (in_window) {
        const size_t ranges = windows.close();
        say_count(what + ": ranges", ranges);
        say_count(what + ": dropped", windows.dropped());
        say(what + ": values", windows.first_values(ranges).c_str());
      }
      observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
  }
}

}  // namespace

void graph_alone() {
  RangeWindows windows;
  if (!windows.enable()) return;
  // The same kernels outside of a graph: what the counts are to be.
  if (windows.plan(kInstructions) && windows.open(64)) {
    for (const int steps : {10, 20, 30}) launch(steps);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    say("10, 20, 30 steps outside of a graph: values",
        windows.first_values(windows.close()).c_str());
  }
  look_into(windows, "a chain of 10, 20, 30", captured([](cudaStream_t main, cudaStream_t) {
              for (const int steps : {10, 20, 30}) launch(steps, main);
            }));
  look_into(windows, "four of 10 in a chain", captured([](cudaStream_t main, cudaStream_t) {
              for (int i = 0; i < 4; ++i) launch(10, main);
            }));
  look_into(windows, "one of 10",
            captured([](cudaStream_t main, cudaStream_t) { launch(10, main); }));
  look_into(windows, "10, a fill, a copy, 20", captured([](cudaStream_t main, cudaStream_t) {
              launch(10, main);
              observe(cudaMemsetAsync(scratch, 0, 4096, main), "cudaMemsetAsync");
              observe(
                  cudaMemcpyAsync(scratch, scratch + 4096, 4096, cudaMemcpyDeviceToDevice, main),
                  "cudaMemcpyAsync");
              launch(20, main);
            }));
  look_into(windows, "10 and 20 beside 30 and 40",
            captured([](cudaStream_t main, cudaStream_t side) {
              launch(10, main), launch(30, side), launch(20, main), launch(40, side);
            }));
  windows.disable();
}

}  // namespace probe
