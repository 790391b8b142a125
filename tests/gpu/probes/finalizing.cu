// cuptiFinalize inside a callback at the EXIT of a driver call, as a detaching profiler makes it:
// does the program run on, and can CUPTI be subscribed to again?
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "in_child.h"
#include "probe.h"

namespace probe {
namespace {

constexpr int kLaunches = 200;
enum Finalize : int { kNo, kWanted, kDone };
std::atomic<int> finalize{kNo}, calls{0}, records{0};

void CUPTIAPI on_call(void*, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
  if (static_cast<const CUpti_CallbackData*>(data)->callbackSite != CUPTI_API_EXIT) return;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) ++calls;
  int wanted = kWanted;
  if (!finalize.compare_exchange_strong(wanted, kDone)) return;
  const Stopwatch watch;
  const CUptiResult result = observe(cuptiFinalize(), "cuptiFinalize");
  say("cuptiFinalize at EXIT: time", watch.microseconds(), "us");
  say_count("cuptiFinalize at EXIT: result", static_cast<uint64_t>(result));
}

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most) {
  *size = size_t{1} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}
void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) ++records;
  std::free(buffer);
}

// Callbacks of a subscriber, records of kernels and counters, each as it is after a fresh start.
bool profile(const std::string& when) {
  CUpti_SubscriberHandle subscriber{};
  const CUptiResult result = cuptiSubscribe(&subscriber, on_call, nullptr);
  say_count(when + ": result of cuptiSubscribe", static_cast<uint64_t>(result));
  if (result != CUPTI_SUCCESS) return false;
  observe(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API), "cuptiEnableDomain");
  observe(cuptiActivityRegisterCallbacks(give_buffer, take_buffer),
          "cuptiActivityRegisterCallbacks");
  observe(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
  calls = records = 0;
  say(when + ": launch", microseconds_per_launch(kLaunches, 10), "us");
  observe(cuptiActivityFlushAll(1), "cuptiActivityFlushAll");
  say_count(when + ": callbacks of " + std::to_string(kLaunches) + " launches",
            static_cast<uint64_t>(calls.load()));
  say_count(when + ": records of " + std::to_string(kLaunches) + " launches",
            static_cast<uint64_t>(records.load()));
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kInstructions) || !windows.open(4)) return true;
  launch(30);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const size_t ranges = windows.close();
  say_count(when + ": ranges of one launch in a window", ranges);
  if (ranges > 0)
    say_count(when + ": steps of its 30", static_cast<uint64_t>(steps_of(windows.values(0))));
  windows.disable();
  return true;
}

// What the GPU computes, read back: 32 threads of `x = x * 0.5 + 0.5`, whose limit is 1.
void say_program(const std::string& when) {
  say(when + ": launch", microseconds_per_launch(kLaunches, 10), "us");
  launch(100);
  float result[32] = {};
  observe(cudaMemcpy(result, scratch, sizeof result, cudaMemcpyDefault), "cudaMemcpy");
  say(when + ": value of a kernel, 1 is right", static_cast<double>(result[31]), "");
}

void finalize_beside(int threads) {
  say_program("before");
  if (!profile("first")) return;
  std::atomic<bool> ended{false};
  std::vector<std::thread> others;
  for (int i = 0; i < threads; ++i)
    others.emplace_back([&] {
      while (!ended) microseconds_per_launch(10, 10);
    });
  finalize = kWanted;
  launch(10);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (const Stopwatch watch; finalize != kDone && watch.microseconds() < 1e6;)
    std::this_thread::yield();
  say("cuptiFinalize was called", finalize == kDone ? "yes" : "no");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  ended = true;
  for (std::thread& other : others) other.join();
  say_program("after");
  profile("again");
}

}  // namespace

void finalize_at_exit() {
  const std::string alone = "one thread", beside = "four threads that launch meanwhile";
  if (part.empty()) {
    in_child("finalize_at_exit", alone);
    in_child("finalize_at_exit", beside);
  } else {
    finalize_beside(part == beside ? 4 : 0);
  }
}

}  // namespace probe
