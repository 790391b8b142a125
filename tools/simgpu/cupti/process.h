// The one object of this library per process. Never destroyed: CUDA calls may come during exit.
#pragma once
#include <simgpu/hooks.h>

#include <atomic>
#include <mutex>

#include "activity.h"
#include "callbacks.h"
#include "environment.h"
#include "range_registry.h"

namespace simgpu::cupti {

class Process {
 public:
  static Process& get();

  // Null when there is no simulated driver. The first call that finds one installs our observer,
  // which stays for good: removing it from inside a callback could wait for itself, and with
  // everything off it costs a load per call.
  const Driver* driver();

  const Environment environment;
  Callbacks callbacks;
  Activity activity;
  RangeRegistry ranges;

 private:
  Process();

  std::mutex mutex_;
  std::atomic<const Driver*> driver_{nullptr};
  Observer observer_;
};

// CUPTI's side of the seam: each function looks at the masks first and leaves when nobody wants the
// event.
Observer make_observer(Process& process);

}  // namespace simgpu::cupti
