// The one object of this library per process. Never destroyed: CUDA calls may come during exit.
#pragma once
#include <simgpu/hooks.h>

#include <array>
#include <atomic>
#include <mutex>

#include "activity/activity.h"
#include "callbacks.h"
#include "counters/range_registry.h"
#include "entry.h"
#include "environment.h"
#include "versions.h"

namespace simgpu::cupti {

class Process {
 public:
  static Process& get();

  // Null when there is no simulated driver, or an older one than the simulated CUPTI needs.
  const Driver* driver();
  // The same, and from now on the driver reports to us. For calls that turn something on.
  const Driver* attach();
  // cuptiFinalize: everything off, and the driver reports nothing more. Waits for callbacks that
  // run on other threads, so it must not hold what they wait for; no other CUPTI call may be made
  // meanwhile.
  void detach();
  // As CUPTI does after a fatal error: it says so in the domain STATE, once, and finalizes itself.
  void fail_for_good();

  uint32_t version() const { return environment.cupti_version; }
  // What a call that needs a driver gives without one.
  CUptiResult no_driver() const { return no_driver_error(version()); }

  const Environment environment;
  Callbacks callbacks;
  Activity activity;  // of clients that name no subscriber
  RangeRegistry ranges;
  std::atomic<uint64_t> kernels{0};         // that have run since the process attached
  std::atomic<uint64_t> loaded_kernels{0};  // of modules that were loaded since, and are still

  // Of a subscriber that allows others; null for anybody else, and past a bound.
  Activity* activity_of(CUpti_SubscriberHandle subscriber);
  // By a fault: records of this kind cannot be had now.
  bool spoils_ranges(CUpti_ActivityKind kind);
  // Calls back with the activity of the process and of all subscribers.
  template <class Call>
  void each_activity(Call&& call) {
    call(activity);
    for (const OwnActivity& own : own_)
      if (Activity* const known = own.activity.load(std::memory_order_acquire); known != nullptr)
        call(*known);
  }

 private:
  Process();

  struct OwnActivity {
    std::atomic<Activity*> activity{nullptr};  // kept for the life of the process
    CUpti_SubscriberHandle subscriber = nullptr;
  };
  std::array<OwnActivity, 16> own_;
  std::mutex mutex_;
  std::atomic<const Driver*> driver_{nullptr};
  std::atomic<bool> attached_{false};
  std::atomic<bool> failed_{false};
  const Observer observer_;
};

// For exported functions that need a driver: `body` gets the process and it.
template <class Body>
CUptiResult with_driver(Body&& body) noexcept {
  return entry([&] {
    Process& process = Process::get();
    const Driver* driver = process.driver();
    return driver == nullptr ? process.no_driver() : body(process, *driver);
  });
}

// CUPTI's side of the seam: each function looks at the masks first and leaves when nobody wants the
// event.
Observer make_observer(Process& process);

}  // namespace simgpu::cupti
