// What every part of the injector works with. Owned by the Session; alive until the process ends.
#pragma once
#include <collector/collector.h>
#include <injector/cuda_api.h>
#include <injector/cupti_api.h>
#include <injector/settings.h>

#include <cstdint>

namespace flopinj {

struct Edge {
  Settings settings;
  bool measures = false;  // counters are read in this process
  CuptiApi cupti;
  CudaApi cuda;
  Collector* collector = nullptr;
  uint64_t now_ns() const;  // the trace's clock: CUPTI's time stamp, else CLOCK_REALTIME
};

// The calling thread's state, made on its first call and retired when the thread ends. Null when
// recording is off or the table of threads is full.
ThreadState* this_thread() noexcept;

// True while this thread is inside our own code, so that CUDA calls that we make (or that CUPTI
// makes for us) are not taken for the program's.
class Guard {
 public:
  Guard() noexcept : outer_(inside_) { inside_ = true; }
  ~Guard() { inside_ = outer_; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  static bool inside() noexcept { return inside_; }

 private:
  static thread_local bool inside_ __attribute__((tls_model("initial-exec")));
  bool outer_;
};

}  // namespace flopinj
