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
// A step makes a thread the owner of a context, or takes that back. While another thread is its
// owner a launch, and a call that must not go on beside a window, wait in await(): each step that
// leaves a context without an owner wakes one of those who wait, whose own step wakes the next.
//
// Threads: any. A device's lock is held for one step, and never while CUPTI is called; a thread
// that waits does not hold it. It is not cancelled meanwhile. A forked child has no device's lock,
// nor any of this (process_state.h).
#pragma once
#include <collector/base/mutex.h>
#include <collector/schedule/backoff.h>
#include <collector/schedule/scheduler.h>
#include <collector/schedule/window_machine.h>
#include <injector/counters/access/contexts.h>
#include <injector/counters/profiler/planner.h>
#include <injector/process/call_frames.h>
#include <injector/process/edge.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>

namespace flopinj {

struct Signature;

// Of what opening an instrumented window costs (Windows::try_out): a launch asked for it that
// wanted one; the group, of what it wanted; and what the trial took, once it is done.
struct Trial {
  enum class State : uint8_t { kNone, kAsked, kDone } state = State::kNone;
  uint32_t group = 0;
  uint64_t took_ns = 0;
};

// A launch that is in a window, and since when; 0: none is.
struct LaunchInside {
  const Signature* signature = nullptr;
  uint64_t since_ns = 0;
};

class Leases final : public WindowKeeper {
 public:
  using Command = WindowMachine::Command;
  using Event = WindowMachine::Event;
  using Facts = WindowMachine::Facts;

  Leases(const Edge&, Backoff&);

  using Until = std::chrono::steady_clock::time_point;
  // Who makes a call of the program's.
  static uintptr_t token(const CallFrames& calls) { return reinterpret_cast<uintptr_t>(&calls); }

  // Waits where the context has another owner. kHold: it has until then.
  Command await(Context&, Event, Facts, uintptr_t who, Until);
  // Does not wait.
  Command step(Context& context, Event event, Facts facts, uintptr_t who) {
    return await(context, event, facts, who, Until::min());
  }
  void left(Context&, const CallFrames& by, LeftWindow how) noexcept override;

  // --- The owner's ------------------------------------------------------------------------------
  WindowMachine::Context state(const Context&);
  void taken(const Context&);                      // the counters are
  void opened(const Context&, uint64_t clock_ns);  // a window was, at that time of the program's
  void closed(const Context&);
  void entered(const Context&, LaunchInside);  // until it has no owner any more
  // The counters were disabled, since they were not used, or another context wants them. False: the
  // latter, and no pause follows.
  bool given_back(const Context&);

  // --- Anybody's --------------------------------------------------------------------------------
  void spoil(Context&);  // its window
  // Measuring ends, and its owner does not let go of it: launches wait for it no more, but for
  // those that may not be in its window.
  void give_up(Context&);
  void forget(Context&);  // it is gone
  // The launch that is in its window, the trial, and when its last window was opened.
  struct Seen {
    LaunchInside inside;
    Trial trial;
    uint64_t opened_ns = 0;
  };
  Seen seen(const Context&);
  void set_trial(Context&, Trial);

  // Null: no context of the device has the counters.
  Context* holder(uint32_t ordinal);
  // To be given back now.
  bool due(const Context&);
  // They were due for kKeptNs. The planner's thread.
  bool kept_for_long(const Context&);
  void not_due(const Context&);
  // They are due, and kept for a moment, since a launch wanted a window: behind a call that waited.
  bool kept_for_launch(const Context&);
  bool resume();  // ends pauses that are over; true while there is a reason to come again
  // Measuring is over: counters are due.
  void end() { ended_.store(true, std::memory_order_relaxed); }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kIdleNs = 2'000'000'000, kLongNs = 60'000'000'000;
  static constexpr uint64_t kHandOverNs = 100'000'000, kKeptNs = 5'000'000'000;
  static constexpr uint64_t kReservedNs = 1'000'000'000, kKeptForLaunchNs = 200'000'000;

  struct Seat {
    Context* context;
    bool owned = false;
    uint32_t waiting = 0;  // so many threads do, for `freed`
    std::condition_variable freed;
    Seen seen;
    uint64_t kept_since_ns = 0;
  };
  struct Device {
    Mutex mutex;
    WindowMachine machine FLOPINJ_GUARDED_BY(mutex);
    std::deque<Seat> seats FLOPINJ_GUARDED_BY(mutex);  // by their places in the machine
    uint64_t taken_ns FLOPINJ_GUARDED_BY(mutex) = 0;
    uint64_t used_ns FLOPINJ_GUARDED_BY(mutex) = 0;
    uint64_t wanted_since_ns FLOPINJ_GUARDED_BY(mutex) = 0;
    uint64_t due_since_ns FLOPINJ_GUARDED_BY(mutex) = 0;  // of the holder; 0: it is not due
  };
  Device& device_of(const Context& context) { return devices_[context.ordinal]; }
  static Seat& seat(Device& device, Context&) FLOPINJ_REQUIRES(device.mutex);
  // Null: no step was made for the context.
  static Seat* known_seat(Device& device, const Context&) FLOPINJ_REQUIRES(device.mutex);
  static Command take(Device& device, Seat&, Event, Facts, uintptr_t who)
      FLOPINJ_REQUIRES(device.mutex);
  static void publish(Device& device) FLOPINJ_REQUIRES(device.mutex);

  Backoff& backoff_;
  MeasurementScheduler& scheduler_;
  const bool keeps_;                // every launch is to be measured
  std::atomic<bool> ended_{false};  // measuring is over
  std::array<Device, Planner::kMostDevices> devices_;
};

}  // namespace flopinj
