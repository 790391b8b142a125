// Measurement windows: stretches of launches on one context whose counters are read.
//
// Protocol
//   1. A launch whose signature wants a group (or that finds the gate shut) becomes the context's
//      owner at its ENTER, and the scheduler decides. It does not want one while work that waits is
//      in flight, unless that ends in a time that it may wait (drains.h). A window is to be opened:
//      the gate is shut, launches that other threads are in the middle of are waited for, and CUPTI
//      is started.
//   2. While a window is open, every launch on the context owns it from ENTER to EXIT: rows are in
//      the order of execution. A launch that succeeded appends its row.
//   3. It is closed at the ENTER of the next launch where that must not be inside (a graph, a
//      collective) or wants another group's window, or where the window has all its launches
//      (finished); then also at the ENTER of a call that waits for the GPU. So NVIDIA's own sample
//      of an injection does it; at EXIT the launch's range may not be complete. Only where windows
//      hold one launch each they are closed there (window_size.h). It is closed, too,
//      when a stream is about to be captured (captures.h), when its context is destroyed, and at
//      exit; and by the planner's thread once it has all its launches or has been open for
//      max_open_ns, unless a launch is in it just then: the counts of a program that idles are
//      written, however it ends. Where CUPTI refuses it there, launching threads do it. As many
//      ranges as rows, and none dropped: the planner's thread evaluates the image of the counters,
//      and those of rows that the scheduler chose become samples. Else all are thrown away, and
//      windows are smaller for a while (window_size.h).
//   4. A call that CUPTI refuses ends the window. The group is tried again after a pause, or never,
//      by the reason (backoff.h); other groups go on.
//
// A launch that finds no window and wants none says so in its thread's context (`launching`) and
// takes no lock.
//
// Before the first window of a context that instruments kernels the planner's thread opens and
// closes one without any launch: a trial of its cost, which may be that of patching all kernels of
// a program. The launch that wanted the window waits for the trial, as long as the budget allows.
// Of the other launches only those wait that must not be instrumented. The launch has
// enabled the profiler: only launching threads do. There is no trial where the budget has no end.
//
// What decides is the machine (collector/schedule/window_machine.h), whose step takes the device's
// lock alone (leases.h); the owner of a context carries out its commands (commands.cpp), and only
// it touches the window and the profiler. Nobody holds a lock of windows while CUPTI is called.
//
// Waiting for a context is bounded everywhere: a launch that waits for too long goes on, and the
// window is spoiled, and will be discarded. It says that it launches before it spoils the window:
// so a window that is opened later sees it. Where a recording ends, who waits for a moment at which
// a window could be opened goes on at once; so does, a little later, who waits for another thread's
// launch in a window, if it may be in any window.
//
// Order of locks: device's -> backoff's; reading -> group's evaluation; all others one at a time.
#pragma once
#include <collector/schedule/backoff.h>
#include <collector/schedule/scheduler.h>
#include <collector/schedule/window_size.h>
#include <injector/counters/access/captures.h>
#include <injector/counters/access/contexts.h>
#include <injector/counters/access/leases.h>
#include <injector/counters/access/questions.h>
#include <injector/counters/profiler/planner.h>
#include <injector/counters/profiler/range_profiler.h>
#include <injector/counters/windows/unread_windows.h>
#include <injector/process/edge.h>
#include <injector/process/thread_context.h>
#include <injector/vendor/driver_calls.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>

namespace flopinj {

struct WindowPatience {
  std::chrono::milliseconds for_owner, for_launches, for_reading;
};

// For messages; null: a kernel without a signature.
inline std::string name_of(const Signature* signature) {
  return signature != nullptr ? signature->function->info.name : "an unknown kernel";
}

class Windows {
 public:
  Windows(Edge& edge, Planner& planner, Contexts& contexts, const Captures& captures,
          Questions& questions);

  // Before the first launch on a context: the wait of Settings::plan_wait_ms(). Not while a capture
  // goes on or may go on, when nothing can be measured.
  void await_plan(Context&, ThreadContext&);
  // ENTER. `signature` is null for what must not be in a window. Follow with exit(), on this
  // thread. Where an exception prevents that, the call's frame leaves the window, which will be
  // discarded.
  void enter(Context&, ThreadContext&, const Signature*);
  // ENTER of a launch on a green context, before enter() without a signature. What CUPTI would make
  // of it in the window of another context of the device is not known.
  void entering_green(const Context&, const CallFrames&);
  // EXIT. True when the launch was made inside a window. Of the row, what enter() left open is
  // filled in.
  bool exit(Context&, ThreadContext&, WindowRow&&, CUresult);

  // ENTER of a call that puts waiting work into a stream (waiting_streams.h), and EXIT of one that
  // did.
  void wait_beginning(Context&, const CallFrames&, CallFrame&);
  void wait_made(Context&, CUstream, bool per_thread);

  // ENTER and EXIT of a call that waits for the GPU, or that has found something ended.
  void synchronizing(Context&, ThreadContext&);
  void synchronized(Context&, ThreadContext&, const SyncFunction&, const void* parameters);

  // MODULE_LOADED. CUPTI may not count a kernel of it in a window that is open.
  void module_loaded(Context&);

  // ENTER of a call that destroys a stream.
  void stream_destroying(CUstream);

  // ENTER of a call that begins a capture, which Captures knows of already. `own`: of the calling
  // thread; null: it has none.
  void capture_beginning(const Context* own, const CallFrames&);

  // False when a launch on it does not return: then nothing is left to serve another context.
  bool context_destroying(Context&);
  // No new windows, and counters are due to be given back.
  void end_measuring() noexcept;
  // finish() could not give them back: work that waits is in flight where they are held.
  bool keeps_counters();
  // At exit: no new windows, open ones are closed. Any thread, with or without a context.
  void finish();

 private:
  void enter_slowly(Context&, ThreadContext&, const Signature*);
  using Command = WindowMachine::Command;
  using Event = WindowMachine::Event;
  using Fact = WindowMachine::Fact;
  using Facts = WindowMachine::Facts;
  // A call's way through the machine.
  struct Run {
    Context& context;
    uintptr_t who = reinterpret_cast<uintptr_t>(this);  // unless it is a call of the program's
    Facts facts = {};
    Leases::Until until = Leases::Until::min();  // while the context has another owner
    ThreadContext* thread = nullptr;             // of a launch
    const Signature* signature = nullptr;        // likewise
    bool gone = false;                           // the driver is
    bool must_close = false;                     // the window must not stay open
    bool ends = false;                           // the context, or measuring
    bool decided = false, for_trial = false, tried = false, refused = false, asked = false;
    LaunchDecision decision = {};
    std::optional<LaunchDecision> next = {};  // once the window is closed
    const DevicePlan* plan = nullptr;         // what is to be opened
    const JointGroup* joint = nullptr;
    uint32_t group = 0;
    uint64_t began_ns = 0;
    std::vector<uint8_t> image = {};  // of counters' availability
  };
  static uintptr_t token(const ThreadContext& thread) { return Leases::token(thread.calls); }
  Leases::Until within(std::chrono::milliseconds most) const {
    return std::chrono::steady_clock::now() + most;
  }
  // What the call that `event` is of is told in the end; kHold: it has waited for long enough. What
  // it calls meanwhile, the owner of the context calls.
  Command drive(Run& run, Event);
  Event carry_out(Run& run, Command);
  Event decide(Run& run);
  static Event ends_window(Run& run);
  Event wants_window(Run& run);
  bool is_quiet(const Run& run);
  Event scan(const Run& run);
  Event enable(Run& run);
  Event start(Run& run);
  Event stop(Run& run);
  Event discard(Run& run, std::unique_ptr<OpenWindow>, RangeProfiler::Outcome, Problem&);
  Event disable(Run& run);
  Event inquire(Run& run);
  Command from_outside(Context& context, Event, Facts);

  // True: the launch is in a window, which its thread owns until exit().
  bool enter_window(Context& context, ThreadContext&, const Signature*, Leases::Until);
  void entered(Context& context, ThreadContext&, const Signature*);
  std::unique_ptr<OpenWindow> make_window(const Context&, const DevicePlan&, const JointGroup*,
                                          const LaunchDecision&, size_t most_rows);
  // By another thread than `self` (null: than none that launches). False: still, after a while.
  bool none_launching(const ThreadContext* self, const Context&) const;
  bool must_come(const Context&, const ThreadContext&, const Signature*, bool came) const;
  bool goes_anywhere(const Context&, const ThreadContext&, const Signature*) const;
  bool goes_outside(Context&, ThreadContext&, const Signature*, bool came) const;
  bool is_to_be_tried(const Context&, const DevicePlan&, GroupSet groups);
  bool wait_for_trial(const Context&, const Signature&);
  bool try_asked();
  void try_out(Context&);
  bool open_for_trial(Context& context, const DevicePlan&, Trial&);
  void judge_trial(const Context&, const DevicePlan&, const Trial&);
  bool resume_costly();
  void deliver(const OpenWindow&, uint32_t number, uint32_t group, std::span<const double> values,
               size_t column);
  bool due(const Context& context, const ThreadContext&, const Signature* next);
  void hand_over(std::unique_ptr<OpenWindow>, std::vector<uint8_t> image);
  bool read_closed();
  void read(UnreadWindow&);
  void leave_out_unpatched(OpenWindow&, std::span<const double> values);
  void log_closed(const Context&, const OpenWindow&) const;
  void close_before(Context&, const CallFrames&);
  void shut(Context&, const Context* own, const CallFrames&);
  bool close_asked(Context&);
  // No work that waits is in flight, perhaps after a wait for its end.
  bool quiet(Context&, ThreadContext&, const Signature&);
  bool wait_for_end(Context&, const Signature&);
  bool in_flight(Context&, uint64_t call_ns);
  bool say_not_measured(bool at_end);
  void say_waiting_lost();
  bool visit() noexcept;
  bool close_old();
  bool give_back_due();
  void say_kept(const Context&);
  std::vector<uint8_t> availability(uint32_t ordinal);
  bool watch_launches();
  std::atomic<bool>& failed(bool instrumented) { return failed_[instrumented ? 1 : 0]; }
  const std::atomic<bool>& failed(bool instrumented) const { return failed_[instrumented ? 1 : 0]; }
  bool may_instrument(Context&, const ThreadContext&, const DevicePlan&, GroupSet groups);
  bool has_memory(const Context&, const DevicePlan&, uint32_t group, size_t free_bytes);
  std::optional<const JointGroup*> joint_for(Context&, const ThreadContext&, const DevicePlan&,
                                             uint32_t group);
  bool may_patch(const DevicePlan&, const ThreadContext&, const Signature&) const;
  void launch_failed(const Context&, const OpenWindow&, const Signature*, CUresult);
  bool resume_paused();
  bool disagreed(const Context&, OpenWindow&, Problem&);
  void refused(DeviceId, const DevicePlan&, uint32_t group, const Problem&);
  void give_up(DeviceId, const Problem&);

  Edge& edge_;
  Planner& planner_;
  Contexts& contexts_;
  const Captures& captures_;
  Backoff backoff_;
  Questions& questions_;
  Leases leases_;
  MeasurementScheduler& scheduler_;
  const WindowPatience patience_;
  WindowSize size_;
  UnreadWindows unread_;
  Mutex reading_;  // one after another, in the order in which they were closed
  std::set<uint32_t>
      costly_;  // the planner's thread: ordinals of devices without instrumented windows
  std::set<const Signature*> long_said_;  // the planner's thread: kernels that it has named
  // A launch did, in a window that does not instrument kernels, and in one that does.
  std::atomic<bool> failed_[2]{};
  std::atomic<bool> cooperative_said_{false}, green_said_{false}, kept_said_{false};
  std::atomic<bool> refusal_said_{false};  // on stderr, once in a process
  std::atomic<bool> on_;
  std::atomic<uint32_t> windows_{0};  // number of the last window
  // A launch wanted a window while work that waits was in flight; so many windows were opened.
  std::atomic<bool> turned_away_{false};
  std::atomic<uint64_t> opened_{0};
  // Launches that are said, and how long no window was opened.
  Mutex saying_;
  uint64_t turned_away_said_ FLOPINJ_GUARDED_BY(saying_) = 0;
  uint64_t opened_seen_ FLOPINJ_GUARDED_BY(saying_) = 0;
  uint64_t none_opened_since_ns_ FLOPINJ_GUARDED_BY(saying_) = 0;
};

}  // namespace flopinj
