// Which context holds its device's counters: at most one of each device, and none while no window
// is wanted (counter_lease.h says when).
//
//   first time    the launch that opens the first window enables the profiler
//   idle          the planner's thread disables it
//   wanted again  a launch asks, and goes on without a window; the planner's thread enables it
//   another context of the device wants them    the planner's thread disables the one, once it has
//                 not opened a window for kHandOverNs, and enables the other
//
// So what enabling and disabling cost is not the launching threads' to pay. But CUPTI may wait for
// all work in flight in either: where some of it waits for the program (waiting_streams.h), as
// where collectives are always in flight, the planner's thread leaves it alone. Then a call of the
// program's that has waited for all of it disables the profiler (synchronized()), and a launch that
// opens a window enables it. Where no such call comes, counters are kept, and a diagnostic says so
// after kKeptNs. Where CUPTI refuses either on the planner's thread, launching threads do it.
//
// Threads: visit() and availability() are the planner's; the rest is for launching threads. Who
// switches shuts the gate first (Context::State), as who opens a window: a thread that begins a
// capture, or launches work that waits, sees it, or is seen.
#pragma once
#include <collector/schedule/counter_lease.h>
#include <collector/schedule/scheduler.h>
#include <injector/counters/access/captures.h>
#include <injector/counters/access/contexts.h>
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
  Leases(Edge&, Planner&, Contexts&, const Captures&);

  // ENTER of a launch that wants a window. False: not now; the counters have been asked for.
  bool available(Context&);
  // Before the profiler is enabled by a launching thread. False: another context has them, and was
  // asked for them.
  bool take(Context&);
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

  // CUPTI has not refused yet to enable or disable the profiler on the planner's thread.
  bool by_planner() const { return by_planner_.load(std::memory_order_relaxed); }
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
  static constexpr uint64_t kHandOverNs = 100'000'000, kKeptNs = 5'000'000'000;
  static constexpr uint64_t kKeptForLaunchNs = 200'000'000;

  struct Device {
    std::atomic<Context*> holder{nullptr};
    std::atomic<bool> wanted_by_another{false};
    std::atomic<uint64_t> used_ns{0};
    uint64_t due_since_ns = 0;  // the planner's thread: of the holder; 0: it is not due
    CounterLease lease;
  };
  Device& device_of(const Context& context) { return devices_[context.ordinal]; }
  const Device& device_of(const Context& context) const { return devices_[context.ordinal]; }
  bool due(const Context&, uint64_t now_ns) const;
  // True: asked, whatever the answer was.
  bool ask_availability(Context&, std::vector<uint8_t>& image);
  void ask(Context&);
  void release(Context&, uint64_t now_ns);
  void say_kept(const Context&);
  void enable(Context&, uint64_t now_ns);
  // There is nothing that switching would disturb, or wait for.
  bool quiet(Context& context) FLOPINJ_REQUIRES(context.lock);
  // What the context's state is then.
  Context::State give_back(Context& context) FLOPINJ_REQUIRES(context.lock);
  bool disable(Context& context) FLOPINJ_REQUIRES(context.lock);
  bool try_enable(Context& context, uint64_t now_ns) FLOPINJ_REQUIRES(context.lock);
  void enable_refused(Context&, const Problem&, uint64_t now_ns);

  Edge& edge_;
  Planner& planner_;
  Contexts& contexts_;
  const Captures& captures_;
  MeasurementScheduler& scheduler_;
  const bool keeps_;                    // every launch is to be measured
  std::atomic<bool> by_planner_{true};  // its thread may enable and disable
  std::atomic<bool> ended_{false};      // measuring is over
  std::atomic<bool> kept_said_{false};
  std::array<Device, Planner::kMostDevices> devices_;
};

}  // namespace flopinj
