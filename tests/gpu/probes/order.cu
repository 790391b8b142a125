// In which order ranges come, and from which threads.
#include <mutex>
#include <thread>

#include "probe.h"

namespace probe {
namespace {

// How many ranges stand where the launch table has them.
void say_order(const std::string& what, RangeWindows& windows, const std::vector<int>& launched) {
  const size_t ranges = windows.close();
  size_t in_place = 0;
  for (size_t i = 0; i < ranges && i < launched.size(); ++i)
    if (steps_of(windows.values(i)) == launched[i]) ++in_place;
  say_count(what + ": launches", launched.size());
  say_count(what + ": ranges", ranges);
  say_count(what + ": ranges in the order of the launch calls", in_place);
}

void from_threads(const std::string& what, RangeWindows& windows, bool locked) {
  if (!windows.open(512)) return;
  std::vector<int> launched;
  std::mutex table, launching;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      cudaStream_t stream = nullptr;
      observe(cudaSetDevice(0), "cudaSetDevice");
      observe(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      for (int i = 1; i <= 64; ++i) {
        std::unique_lock lock(launching, std::defer_lock);
        if (locked) lock.lock();
        {
          const std::lock_guard write(table);
          launched.push_back(t * 100 + i);
        }
        launch(t * 100 + i, stream);
      }
    });
  for (auto& thread : threads) thread.join();
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  say_order(what, windows, launched);
}

}  // namespace

void order() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kInstructions) || !windows.open(512)) return;
  cudaStream_t streams[4];
  for (auto& stream : streams)
    observe(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  std::vector<int> launched;
  for (int i = 0; i < 128; ++i) {
    launched.push_back(200 - i);
    launch(launched.back(), streams[i % 4]);
  }
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  say_order("one thread, four streams", windows, launched);
  from_threads("four threads under one lock", windows, true);
  if (windows.open(4)) {
    for (int i = 1; i <= 10; ++i) launch(i);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    say_count("10 launches in a window for 4: ranges", windows.close());
    say_count("10 launches in a window for 4: dropped", windows.dropped());
  }
  windows.disable();
}

// Apart from order(), since it may hang.
void unlocked() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kInstructions)) return;
  from_threads("four threads, no lock", windows, false);
  windows.disable();
}

void thread() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kInstructions) || !windows.open(16)) return;
  std::thread([] {
    observe(cudaSetDevice(0), "cudaSetDevice");
    launch(11);
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }).join();
  launch(12);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  say_order("enabled here, one launch on another thread and one here", windows, {11, 12});
  windows.disable();
}

}  // namespace probe
