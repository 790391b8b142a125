// The machines of all devices (collector/schedule/window_machine.h): who has a device's counters,
// and where the windows of its contexts stand. Other threads see of them what a context's gate
// says.
//
//   taken         by the launch that opens a window: it enables the profiler
//   idle          no window for kIdleNs: the planner's thread disables it. It is taken again once a
//                 pause is over, which grows unless the counters were held for kLongNs (backoff.h)
//   another context of the device wants them    the planner's thread disables the one, once it has
//                 not opened a window for kHandOverNs; the other takes them at a launch
//
// Only launching threads enable the profiler, since CUPTI's documents say nothing of other
// threads; disabling only ends things. CUPTI may wait for all work in flight in either: where some
// of it waits for the program (waiting_streams.h), as where collectives are always in flight, the
// planner's thread leaves it alone. Then a call of the program's that has waited for all of it
// disables the profiler. Where no such call comes, counters are kept, and a diagnostic says so
// after kKeptNs. Where CUPTI refuses to disable it on the planner's thread, a launching thread
// does.
//
// Threads: any. A device's lock is held for one step, and never while CUPTI is called.
#pragma once
#include <collector/identity/mutex.h>
#include <collector/schedule/backoff.h>
#include <collector/schedule/scheduler.h>
#include <collector/schedule/window_machine.h>
#include <injector/counters/access/contexts.h>
#include <injector/counters/profiler/planner.h>
#include <injector/process/edge.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace flopinj {

class Leases {
 public:
  using Command = WindowMachine::Command;
  using Event = WindowMachine::Event;
  using Facts = WindowMachine::Facts;

  Leases(const Edge&, Backoff&);

  // Of a context whose lock the caller has.
  Command step(Context&, Event, Facts, uintptr_t who);
  bool spoiled(const Context&);
  void spoil(Context&);
  void forget(Context&);  // it is gone
  void taken(const Context&);
  void used(const Context&);  // a window was opened or closed
  // The counters were disabled, since they were not used, or another context wants them. False: the
  // latter, and no pause follows.
  bool given_back(const Context&);

  // Null: no context of the device has the counters.
  Context* holder(uint32_t ordinal);
  // To be given back now.
  bool due(const Context&);
  // They were due for kKeptNs. The planner's thread.
  bool kept_for_long(const Context&);
  void not_due(const Context&);
  bool resume();  // ends pauses that are over; true while there is a reason to come again
  // Measuring is over: counters are due.
  void end() { ended_.store(true, std::memory_order_relaxed); }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kIdleNs = 2'000'000'000, kLongNs = 60'000'000'000;
  static constexpr uint64_t kHandOverNs = 100'000'000, kKeptNs = 5'000'000'000;
  static constexpr uint64_t kReservedNs = 1'000'000'000;

  struct Device {
    Mutex mutex;
    WindowMachine machine FLOPINJ_GUARDED_BY(mutex);
    std::vector<Context*> contexts FLOPINJ_GUARDED_BY(mutex);  // by their seats in the machine
    uint64_t taken_ns FLOPINJ_GUARDED_BY(mutex) = 0;
    uint64_t used_ns FLOPINJ_GUARDED_BY(mutex) = 0;
    uint64_t wanted_since_ns FLOPINJ_GUARDED_BY(mutex) = 0;
    uint64_t due_since_ns FLOPINJ_GUARDED_BY(mutex) = 0;  // of the holder; 0: it is not due
  };
  Device& device_of(const Context& context) { return devices_[context.ordinal]; }
  static size_t seat(Device& device, Context&) FLOPINJ_REQUIRES(device.mutex);
  static void publish(Device& device) FLOPINJ_REQUIRES(device.mutex);

  Backoff& backoff_;
  MeasurementScheduler& scheduler_;
  const bool keeps_;                // every launch is to be measured
  std::atomic<bool> ended_{false};  // measuring is over
  std::array<Device, Planner::kMostDevices> devices_;
};

}  // namespace flopinj
