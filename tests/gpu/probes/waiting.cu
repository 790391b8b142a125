// Whether a launch inside a window waits for unfinished work of other streams. Work in flight waits
// for a flag that the host sets once the measured launch has returned; a watchdog sets it after two
// seconds, so that a wait is seen and never ends in a hang.
#include <atomic>
#include <thread>

#include "probe.h"

namespace probe {
namespace {

__global__ void spin(const volatile int* flag) {
  while (*flag == 0) {
  }
}

class Flag {
 public:
  Flag() {
    observe(cudaHostAlloc(const_cast<int**>(&host_), sizeof *host_, cudaHostAllocMapped),
            "cudaHostAlloc");
    *host_ = 0;
    observe(cudaHostGetDevicePointer(&device_, const_cast<int*>(host_), 0),
            "cudaHostGetDevicePointer");
    watchdog_ = std::thread([this] {
      for (int i = 0; i < 200 && *host_ == 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (*host_ == 0) late_ = true;
      *host_ = 1;
    });
  }
  // True when the watchdog had to set the flag: the launch had not returned.
  bool set() {
    *host_ = 1;
    watchdog_.join();
    return late_;
  }
  int* device() const { return device_; }
  volatile int* host() const { return host_; }

 private:
  volatile int* host_ = nullptr;
  int* device_ = nullptr;
  std::atomic<bool> late_{false};
  std::thread watchdog_;
};

void CUDART_CB wait_on_host(void* flag) {
  while (*static_cast<volatile int*>(flag) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

enum class Waiting { kKernel, kHostFunction, kStreamValue };

void measure_beside(Waiting waiting, const char* name, RangeWindows* windows) {
  cudaStream_t busy = nullptr, other = nullptr;
  observe(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking), "cudaStreamCreate");
  observe(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
  launch(1, other);  // its code is loaded
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  Flag flag;
  switch (waiting) {
    case Waiting::kKernel:
      spin<<<1, 1, 0, busy>>>(flag.device());
      break;
    case Waiting::kHostFunction:
      observe(cudaLaunchHostFunc(busy, wait_on_host, const_cast<int*>(flag.host())),
              "cudaLaunchHostFunc");
      break;
    case Waiting::kStreamValue:
      if (cuStreamWaitValue32(busy, reinterpret_cast<CUdeviceptr>(flag.device()), 1,
                              CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS)
        say(std::string(name), "cuStreamWaitValue32 is refused");
      break;
  }
  const Stopwatch opening;
  const bool open = windows != nullptr && windows->open(16);
  const double opened = opening.microseconds();
  const Stopwatch watch;
  launch(10, other);
  const double took = watch.microseconds();
  const Stopwatch closing;
  const size_t ranges = open ? windows->close() : 0;
  const double closed = closing.microseconds();
  const bool waited = flag.set();
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const std::string what =
      std::string(name) + (windows == nullptr ? ", no window" : ", in a window");
  say(what + ": the watchdog had to end the wait", waited ? "yes" : "no");
  say(what + ": open", opened, "us");
  say(what + ": launch on another stream", took, "us");
  say(what + ": close", closed, "us");
  if (open) say_count(what + ": ranges of 1 launch", ranges);
}

// Each edge of a user range, with the kernel that spins in flight at that edge only.
void range_beside(RangeWindows& windows, bool at_begin, bool at_end) {
  cudaStream_t busy = nullptr, other = nullptr;
  observe(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking), "cudaStreamCreate");
  observe(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
  const std::string what = std::string("user range beside a kernel that spins") +
                           (at_begin ? ", in flight at its begin" : "") +
                           (at_end ? ", in flight at its end" : "");
  if (!windows.open(16, CUPTI_UserRange, CUPTI_UserReplay)) return;
  Flag flag;
  bool waited = false;
  if (at_begin) spin<<<1, 1, 0, busy>>>(flag.device());
  const Stopwatch pushing;
  windows.push("work");
  say(what + ": PushRange", pushing.microseconds(), "us");
  if (at_begin && !at_end) {
    waited = flag.set();
    observe(cudaStreamSynchronize(busy), "cudaStreamSynchronize");
  }
  if (!at_begin && at_end) spin<<<1, 1, 0, busy>>>(flag.device());
  launch(10, other);
  observe(cudaStreamSynchronize(other), "cudaStreamSynchronize");
  const Stopwatch popping;
  windows.pop();
  say(what + ": PopRange", popping.microseconds(), "us");
  if (at_end) waited = flag.set();
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  say(what + ": the watchdog had to end the wait", waited ? "yes" : "no");
  say_count(what + ": ranges", windows.close());
}

}  // namespace

void user_range_in_flight() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kHardware)) return;
  launch(1);  // its code is loaded
  range_beside(windows, true, false);
  range_beside(windows, false, true);
  range_beside(windows, true, true);
  windows.disable();
}

void waiting_in_flight() {
  const std::pair<Waiting, const char*> kinds[] = {
      {Waiting::kKernel, "a kernel that spins on a flag in flight"},
      {Waiting::kHostFunction, "a host function that waits in flight"},
      {Waiting::kStreamValue, "a stream that waits for a value in flight"}};
  for (const auto& [kind, name] : kinds) measure_beside(kind, name, nullptr);
  RangeWindows windows;
  if (!windows.enable()) return;
  for (const Metrics* metrics : {&kInstructions, &kHardware})
    for (const auto& [kind, name] : kinds)
      if (windows.plan(*metrics))
        measure_beside(kind, (std::string(metrics->front()) + ": " + name).c_str(), &windows);
  windows.disable();
}

}  // namespace probe
