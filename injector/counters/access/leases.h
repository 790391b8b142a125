// Which context holds its device's counters: at most one of each device, and none while no window
// is wanted.
//
//   taken         by the launch that opens a window: it enables the profiler
//   idle          no window for kIdleNs: the planner's thread disables it. It is taken again once a
//                 pause is over, which grows unless the counters were held for kLongNs (backoff.h)
//   another context of the device wants them    the planner's thread disables the one, once it has
//                 not opened a window for kHandOverNs; the other takes them at a launch
//
// Only launching threads enable the profiler, since CUPTI's documents say nothing of other threads;
// disabling only ends things. CUPTI may wait for all work in flight in either: where some of it
// waits for the program (waiting_streams.h), as where collectives are always in flight, the
// planner's thread leaves it alone. Then a call of the program's that has waited for all of it
// disables the profiler (synchronized()). Where no such call comes, counters are kept, and a
// diagnostic says so after kKeptNs. Where CUPTI refuses to disable it on the planner's thread, a
// launching thread does.
//
// Threads: visit() and availability() are the planner's; the rest is for launching threads. Who
// switches shuts the gate first (Context::State), as who opens a window: a thread that begins a
// capture, or launches work that waits, sees it, or is seen.
#pragma once
#include <collector/schedule/backoff.h>
#include <collector/schedule/scheduler.h>
#include <injector/counters/access/captures.h>
#include <injector/counters/access/contexts.h>
#include <injector/counters/access/questions.h>
#include <injector/counters/profiler/planner.h>
#include <injector/process/edge.h>
#include <injector/vendor/cupti_check.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

namespace flopinj {

class Leases {
 public:
  Leases(Edge&, Planner&, Contexts&, const Captures&, Backoff&, Questions&);

  // ENTER of a launch that wants a window. False: not now.
  bool available(const Context&) const;
  // Before the profiler is enabled by a launching thread. False: another context has them, and was
  // asked for them.
  bool take(Context&);
  // Takes them and enables the profiler, by a launching thread. What the context's state is then:
  // kHeld; kUntaken, with the reason, where CUPTI refuses; kReleased, where another has them.
  Context::State enable(Context& context, Problem&) FLOPINJ_REQUIRES(context.lock);
  void used(const Context&);  // a window was opened or closed
  // Disables the profiler, if it is there. Any thread that has the context current. What the
  // context's state is then.
  Context::State drop(Context& context) FLOPINJ_REQUIRES(context.lock);
  void forget(Context& context) FLOPINJ_REQUIRES(context.lock);  // it is being destroyed
  // Measuring is over: they are due. The thread that ends the recording.
  void end();
  // Held by a context where work that waits is in flight, so that drop_at_end() would leave them.
  bool kept();
  void drop_at_end(Context& context) FLOPINJ_REQUIRES(context.lock);
  // Does what the planner's thread could not. At a launch, with the lock.
  void release_here(Context& context) FLOPINJ_REQUIRES(context.lock);
  // The same at EXIT of a call that has waited for all that was in flight.
  void synchronized(Context&);

  // Only its windows can be open; null: no context of the device has the counters.
  Context* holder(uint32_t ordinal) const {
    return ordinal < devices_.size() ? devices_[ordinal].holder.load() : nullptr;
  }

  bool visit();  // true while there is a reason to come again

  // The counter availability image of a device, before the profiler is enabled on any context of
  // it: CUPTI may refuse it while a session is active there (cupti_profiler_target.h). Empty where
  // it does, where the last context of the device is gone, and where there was no moment for it
  // within a second.
  std::vector<uint8_t> availability(uint32_t ordinal);

 private:
  static constexpr uint64_t kIdleNs = 2'000'000'000, kLongNs = 60'000'000'000;
  static constexpr uint64_t kHandOverNs = 100'000'000, kKeptNs = 5'000'000'000;
  static constexpr uint64_t kKeptForLaunchNs = 200'000'000;

  struct Device {
    std::atomic<Context*> holder{nullptr};
    std::atomic<bool> wanted_by_another{false};
    std::atomic<uint64_t> taken_ns{0}, used_ns{0};  // the latter: a window was opened or closed
    uint64_t due_since_ns = 0;  // the planner's thread: of the holder; 0: it is not due
  };
  Device& device_of(const Context& context) { return devices_[context.ordinal]; }
  const Device& device_of(const Context& context) const { return devices_[context.ordinal]; }
  bool due(const Context&, uint64_t now_ns) const;
  // True: asked, whatever the answer was.
  bool ask_availability(Context&, std::vector<uint8_t>& image);
  void release(Context&, uint64_t now_ns);
  void say_kept(const Context&);
  // There is nothing that switching would disturb, or wait for.
  bool quiet(const Context& context) const FLOPINJ_REQUIRES(context.lock);
  // The context is current. What its state is then.
  Context::State give_back(Context& context) FLOPINJ_REQUIRES(context.lock);
  bool disable(Context& context) FLOPINJ_REQUIRES(context.lock);

  Edge& edge_;
  Planner& planner_;
  Contexts& contexts_;
  const Captures& captures_;
  Backoff& backoff_;
  Questions& questions_;
  MeasurementScheduler& scheduler_;
  const bool keeps_;                    // every launch is to be measured
  std::atomic<bool> by_planner_{true};  // CUPTI has not refused that its thread disables
  std::atomic<bool> ended_{false};      // measuring is over
  std::atomic<bool> kept_said_{false};
  std::array<Device, Planner::kMostDevices> devices_;
};

}  // namespace flopinj
