#include <injector/counters/windows/instrumenting.h>
#include <injector/counters/windows/windows.h>
#include <injector/process/log.h>
#include <injector/process/process.h>
#include <injector/process/this_thread.h>
#include <injector/process/thread_context.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace flopinj {

namespace {

using namespace std::chrono_literals;
constexpr auto kMostWaitAtEnd = 500ms;
// A launch that has been inside a window for so long is reported.
constexpr uint64_t kLongLaunchNs = 10'000'000'000;
// Windows are wanted, and none is opened for so long, or in a short recording.
constexpr uint64_t kNoneOpenedNs = 5'000'000'000, kNoneOpenedAtEndNs = 1'000'000'000;
// While a launch waits: each look asks the planner's thread, so looks of a long wait lie further
// apart, and it ends by a sixteenth too late at most.
constexpr std::chrono::nanoseconds kLookEvery = 50us;
constexpr uint64_t kLooksInWait = 16;
// A moment to ask for a device's counters in: so long is it waited for, without captures, during
// which no window can be opened either, and with them.
constexpr uint64_t kMostWaitForAvailabilityNs = 1'000'000'000;
constexpr uint64_t kMostWaitWithCapturesNs = Captures::kUnknownAtMostNs;
constexpr std::chrono::nanoseconds kLookForMoment = 10ms;
constexpr int kMostSteps = 4;  // of a launch, each of which ends something

// How long a launch waits for another one in a window, a window for launches that are being made
// and for the planner's thread, and the end for a thread that reads windows. Where cost does not
// matter, one that waits too little is a count that lacks.
constexpr WindowPatience kWithinBudget{2s, 20ms, 500ms}, kWithoutBudget{2s, 1s, 5s};
constexpr WindowPatience kEveryLaunch{20s, 20s, 20s};

const WindowPatience& patience_of(const Settings& settings) {
  if (settings.mode == Mode::kFull) return kEveryLaunch;
  return settings.at_any_cost() ? kWithoutBudget : kWithinBudget;
}

// What a call of the program's has waited for, of the work up to that number.
void note_end(Context& context, const SyncFunction& call, const void* parameters, uint64_t work,
              uint64_t took_ns) {
  using Of = SyncFunction::Of;
  const bool all =
      call.of == Of::kThisContext ||
      (call.of == Of::kContext && *static_cast<const CUcontext*>(parameters) == context.handle);
  if (all)
    context.waiting.all_ended(work, took_ns);
  else if (call.of == Of::kStream)
    context.waiting.stream_ended(call.stream(parameters), call.per_thread_stream, work, took_ns);
}

}  // namespace

Windows::Windows(Edge& edge, Planner& planner, Contexts& contexts, const Captures& captures,
                 Questions& questions)
    : edge_(edge),
      planner_(planner),
      contexts_(contexts),
      captures_(captures),
      questions_(questions),
      leases_(edge, backoff_),
      scheduler_(edge.collector->scheduler()),
      patience_(patience_of(edge.settings)),
      size_(scheduler_.config().max_ranges),
      on_(edge.measures && edge.cupti.range_profiler) {
  planner_.set_visit([this] { return visit(); });
  questions_.set_close([this](Context& context) { return close_asked(context); });
  planner_.set_availability([this](uint32_t ordinal) { return availability(ordinal); });
}

void Windows::await_plan(Context& context, ThreadContext& thread) {
  if (planner_.awaited(context.ordinal)) return;
  const uint64_t began = monotonic_ns();
  planner_.device_seen(context.ordinal);
  if (captures_.any()) return;
  planner_.wait(context.ordinal,
                on_.load(std::memory_order_relaxed) ? edge_.settings.plan_wait_ms() : 0);
  edge_.collector->add_startup_ns(monotonic_ns() - began);
  thread.slow_callback = true;
}

void Windows::enter(Context& context, ThreadContext& thread, const Signature* signature) {
  // Nothing is measured, or not any more: launches are only counted, but for the last window, and
  // where counters are just being given back.
  const bool measures = on_.load(std::memory_order_relaxed) && !scheduler_.stopped();
  if (!measures && context.gate.level() < Gate::Level::kCalls) return;
  const bool wants = measures && signature != nullptr &&
                     signature->wanted_groups.load(std::memory_order_relaxed) != 0 &&
                     planner_.plan(context.ordinal) != nullptr &&
                     scheduler_.may_want(context.device, *signature) && !captures_.any() &&
                     context.gate.may_open() && quiet(context, thread, *signature);
  if (!wants && goes_outside(context, thread, signature, false)) return;
  thread.slow_callback = true;
  enter_slowly(context, thread, signature);
}

// The store of `launching` and the load of the gate, and in a step the store of the gate and
// thereafter the loads of `launching`, are sequentially consistent: at least one of the two
// threads sees the other.
bool Windows::goes_outside(Context& context, ThreadContext& thread, const Signature* signature,
                           bool came) const {
  thread.calls.launching.store(&context, std::memory_order_seq_cst);
  if (!must_come(context, thread, signature, came)) return true;
  thread.calls.launching.store(nullptr, std::memory_order_release);
  return false;
}

// To the machine, where it wants no window itself. `came`: not for the first time.
bool Windows::must_come(const Context& context, const ThreadContext& thread,
                        const Signature* signature, bool came) const {
  const Gate::Level level = context.gate.level();
  if (level < Gate::Level::kCalls) return false;
  if (level == Gate::Level::kOnce) return !came;
  if (thread.launch.waits || level == Gate::Level::kShut) return true;
  return level == Gate::Level::kUnpatched && !goes_anywhere(context, thread, signature);
}

// It may be in any window, and any may be beside it.
bool Windows::goes_anywhere(const Context& context, const ThreadContext& thread,
                            const Signature* signature) const {
  const DevicePlan* const plan = planner_.plan(context.ordinal);
  return signature != nullptr && plan != nullptr && !thread.launch.waits &&
         may_patch(*plan, thread, *signature);
}

bool Windows::quiet(Context& context, ThreadContext& thread, const Signature& signature) {
  context.waiting.wanted(monotonic_ns());
  if (!context.waiting.any()) return true;
  thread.slow_callback = true;
  if (!in_flight(context, 0) || wait_for_end(context, signature)) return true;
  context.waiting.turn_away();
  if (!turned_away_.load(std::memory_order_relaxed) && !turned_away_.exchange(true))
    planner_.visit_soon();
  return false;
}

// What it takes is at the cost of the budget.
bool Windows::in_flight(Context& context, uint64_t call_ns) {
  const uint64_t began = edge_.cuda.clock_ns();
  uint64_t asking_ns = 0;  // in real time
  const bool some = questions_.in_flight(context, call_ns, asking_ns);
  if (asking_ns != 0) scheduler_.add_cost(edge_.cuda.clock_ns() - began);
  return some;
}

// Without a lock of ours: a launch of another thread may be what the work waits for.
bool Windows::wait_for_end(Context& context, const Signature& signature) {
  const uint64_t began = monotonic_ns(), began_ns = edge_.cuda.clock_ns();
  const uint64_t most = context.waiting.may_wait_ns(began);
  if (most == 0 || !scheduler_.affords(context.device, signature, most / 2, began_ns)) return false;
  const NoCancellation whole;
  uint64_t took = 0;  // in real time: the program's may not move meanwhile
  bool some = true;
  while (some && took < most && on_.load(std::memory_order_relaxed)) {
    std::this_thread::sleep_for(
        std::max(kLookEvery, std::chrono::nanoseconds(took / kLooksInWait)));
    some = questions_.unfinished(context, std::chrono::nanoseconds(most - took));
    took = monotonic_ns() - began;
  }
  context.waiting.waited(began + took, took, some);
  scheduler_.add_cost(edge_.cuda.clock_ns() - began_ns);
  return !some;
}

void Windows::synchronizing(Context& context, ThreadContext& thread) {
  if (context.gate.level() == Gate::Level::kShut && !thread.calls.in_window_of(context)) {
    Run run{.context = context, .who = token(thread)};
    drive(run, Event::kWaits);  // before a copy or a pause that would lie in a full window
  }
  const bool in_row = thread.state->callbacks.count() == thread.row_callbacks + 1;  // this one
  thread.synchronizing_since_ns = context.waiting.any() ? monotonic_ns() : 0;
  thread.synchronizing_work = context.waiting.added();
  if (!in_row) thread.row_waited_ns = 0;
}

void Windows::synchronized(Context& context, ThreadContext& thread, const SyncFunction& call,
                           const void* parameters) {
  const uint64_t since = std::exchange(thread.synchronizing_since_ns, 0);
  const uint64_t took = since != 0 ? monotonic_ns() - since : 0;
  // A thread that waits for one device after the other has waited for the last of them all along.
  thread.row_waited_ns += took;
  const uint64_t waited = took != 0 ? thread.row_waited_ns : 0;
  thread.row_callbacks = thread.state->callbacks.count();
  if (took != 0) note_end(context, call, parameters, thread.synchronizing_work, waited);
  context.waiting.call_waited(waited);
  const bool some = context.waiting.any() && in_flight(context, took);
  context.waiting.call_waited(0);
  if (some) return;
  if (!context.gate.owes()) return;
  if (context.waiting.turned_away() && !leases_.ended() && leases_.kept_for_launch(context)) return;
  const uint64_t began = edge_.cuda.clock_ns();
  Run run{.context = context, .who = token(thread), .facts = Fact::kPauses};
  drive(run, Event::kWaited);
  scheduler_.add_cost(edge_.cuda.clock_ns() - began);
}

void Windows::enter_slowly(Context& context, ThreadContext& thread, const Signature* signature) {
  const auto until = within(patience_.for_owner);
  if (enter_window(context, thread, signature, until)) return;
  if (signature != nullptr && leases_.seen(context).trial.state == Trial::State::kAsked &&
      wait_for_trial(context, *signature) && enter_window(context, thread, signature, until))
    return;
  // Another thread may have shut the gate since, and not have seen this one.
  while (!goes_outside(context, thread, signature, true)) {
    if (std::chrono::steady_clock::now() > until) {
      thread.calls.launching.store(&context, std::memory_order_seq_cst);
      return leases_.spoil(context);
    }
    if (enter_window(context, thread, signature, until)) return;
  }
}

bool Windows::enter_window(Context& context, ThreadContext& thread, const Signature* signature,
                           Leases::Until until) {
  Facts facts;
  facts.set(Fact::kAnywhere, goes_anywhere(context, thread, signature));
  Run run{.context = context, .who = token(thread), .facts = facts, .until = until};
  run.facts.set(Fact::kFirst, true);
  run.thread = &thread;
  run.signature = signature;
  // Counters are to be given back here, at the cost of the budget, and not beside waiting work.
  const bool once = context.gate.level() == Gate::Level::kOnce;
  const uint64_t began = edge_.cuda.clock_ns();
  if (once && context.waiting.any() && in_flight(context, 0)) run.facts = facts;
  Command command = drive(run, Event::kEnter);
  if (once && !run.decided) scheduler_.add_cost(edge_.cuda.clock_ns() - began);
  // A window was closed, or counters were given back.
  for (int again = 0; again < kMostSteps && command == Command::kPass && !run.decided; ++again) {
    run.facts = facts;
    command = drive(run, Event::kEnter);
  }
  if (command == Command::kAskTrial) {
    leases_.set_trial(context, {Trial::State::kAsked, *run.decision.open});
    planner_.visit_now();
  }
  if (command != Command::kAdmit) return false;
  thread.launch.chosen = run.decision.chosen;
  entered(context, thread, signature);
  return true;
}

void Windows::entered(Context& context, ThreadContext& thread, const Signature* signature) {
  thread.calls.enter_window(context, leases_);
  // A simulated GPU's times are not comparable where the driver does not show its clock.
  const bool timed = edge_.kernel_records_off == 0 && (!edge_.cuda.simulated || edge_.own_clock);
  thread.launch.window_entered_ns = timed ? edge_.now_ns() : 0;
  thread.launch.window_call_began_ns = edge_.cuda.clock_ns();
  leases_.entered(context, {signature, thread.launch.window_call_began_ns});
}

bool Windows::may_patch(const DevicePlan& plan, const ThreadContext& thread,
                        const Signature& signature) const {
  return !failed(true).load(std::memory_order_relaxed) &&
         (edge_.cuda.instruments_all ||
          (!thread.launch.asked.cooperative && fits_instrumented(signature, plan.shown)));
}

// What a window for the group is to read: null, only the group itself. Nothing: it must not be
// opened. In mode full a launch that must not be instrumented is read with what needs no patching.
std::optional<const JointGroup*> Windows::joint_for(Context& context, const ThreadContext& thread,
                                                    const DevicePlan& plan, uint32_t group) {
  const GroupSet groups = plan.joint != nullptr ? plan.joint->parts : GroupSet(group);
  const GroupSet patched = plan.instrumented(groups);
  const bool fails = failed(!patched.empty()).load(std::memory_order_relaxed);
  const GroupSet given_up = !fails ? GroupSet() : patched.empty() ? groups : patched;
  for (const uint32_t g : given_up) scheduler_.disable(context.device, g);
  if (!fails && (patched.empty() || may_instrument(context, thread, plan, patched)))
    return plan.joint;
  if (patched.empty() || plan.unpatched == nullptr || failed(false).load(std::memory_order_relaxed))
    return std::nullopt;
  return plan.unpatched;
}

bool Windows::none_launching(const ThreadContext* self, const Context& context) const {
  const auto give_up = std::chrono::steady_clock::now() + patience_.for_launches;
  while (others_launching(self, context)) {
    const bool ends = !on_.load(std::memory_order_relaxed);
    if (ends || std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

std::unique_ptr<OpenWindow> Windows::make_window(const Context& context, const DevicePlan& plan,
                                                 const JointGroup* joint,
                                                 const LaunchDecision& decision, size_t most_rows) {
  auto window = std::make_unique<OpenWindow>(scheduler_);
  window->plan = &plan;
  window->joint = joint;
  window->measured.device = context.device;
  window->measured.group = *decision.open;
  window->instrumented = !plan.instrumented(window->groups()).empty();
  if (window->joint != nullptr) window->measured.together = window->joint->parts;
  window->measured.shared = decision.shared;
  window->measured.rows.reserve(most_rows);
  return window;
}

void Windows::module_loaded(Context& context) {
  if (context.gate.level() == Gate::Level::kShut) leases_.step(context, Event::kLoads, {}, 0);
}

// Is the open window to be closed before the launch `next`?
bool Windows::due(const Context& context, const ThreadContext& thread, const Signature* next) {
  const OpenWindow& window = *context.window;
  if (failed(window.instrumented).load(std::memory_order_relaxed)) return true;
  if (scheduler_.close_before(next)) return true;
  const bool patched = may_patch(*window.plan, thread, *next);
  if (window.instrumented
          ? !patched
          : patched && window.joint == window.plan->unpatched && window.joint != nullptr)
    return true;
  return window.instrumented && leases_.state(context).stale;  // see leave_out_unpatched()
}

bool Windows::exit(Context& context, ThreadContext& thread, WindowRow&& row, CUresult result) {
  struct Leave {
    CallFrames& calls;
    LeftWindow how = LeftWindow::kUntold;
    ~Leave() { calls.leave_window(how); }
  } leave{thread.calls};
  if (!thread.calls.in_window()) return false;
  thread.slow_callback = true;
  if (result != CUDA_SUCCESS) {
    leave.how = LeftWindow::kMade;
    launch_failed(context, *context.window, row.signature, result);
    return false;
  }
  if (row.signature == nullptr) return false;  // there is a range, and no row
  const uint64_t now = edge_.cuda.clock_ns();
  row.chosen = thread.launch.chosen;
  row.call_ns = now - thread.launch.window_call_began_ns;
  row.late = context.window->instrumented && leases_.state(context).stale;  // in this very launch
  const bool last = scheduler_.row_added(context.window->measured, row, now) ||
                    context.window->measured.rows.size() >= size_.most_rows();
  leave.how = last ? LeftWindow::kLast : LeftWindow::kMade;
  // Copies and other work have become ranges before: here none can have come yet. The window is
  // another thread's then.
  if (last && size_.most_rows() == 1) {
    Run run{.context = context, .who = token(thread)};
    drive(run, Event::kEndsWindow);
  }
  return true;
}

void Windows::wait_beginning(Context& context, const CallFrames& calls, CallFrame& frame) {
  context.waiting.begin(frame);
  close_before(context, calls);
}

// Closes the window of the context that is current before a call that must not be made in it.
void Windows::close_before(Context& context, const CallFrames& calls) {
  if (context.gate.level() < Gate::Level::kCalls || calls.in_window_of(context)) return;
  Run run{.context = context, .who = Leases::token(calls), .until = within(patience_.for_owner)};
  if (drive(run, Event::kComes) == Command::kHold) leases_.spoil(context);
}

void Windows::wait_made(Context& context, CUstream stream, bool per_thread) {
  if (!context.waiting.add(stream, per_thread)) say_waiting_lost();
}

void Windows::stream_destroying(CUstream stream) { questions_.stream_destroying(stream); }

void Windows::entering_green(const Context& context, const CallFrames& calls) {
  if (!on_.load(std::memory_order_relaxed)) return;
  if (!green_said_.exchange(true, std::memory_order_relaxed))
    edge_.collector->diagnostic(Severity::kInfo, "counters.green_context",
                                "launches on green contexts are not measured: kernels that are "
                                "only launched so have no FLOP count");
  Context* const holder = leases_.holder(context.ordinal);
  if (holder != nullptr && holder != &context) shut(*holder, &context, calls);
}

void Windows::say_waiting_lost() {
  edge_.collector->diagnostic(
      Severity::kWarning, "counters.waiting_lost",
      "work that waits for the host or another device was in too many streams to be followed: no "
      "window opens on its context until the program waits for all of it (cuCtxSynchronize)");
}

bool Windows::context_destroying(Context& context) {
  questions_.context_destroying(context);
  Run run{.context = context,
          .who = reinterpret_cast<uintptr_t>(&context),
          .facts = Fact::kDue,
          .until = within(kMostWaitAtEnd)};
  drive(run, Event::kEnds);                                      // its window
  if (drive(run, Event::kEnds) == Command::kHold) return false;  // the counters
  context.profiler.reset();
  leases_.forget(context);
  context.waiting.clear();
  return true;
}

void Windows::capture_beginning(const Context* own, const CallFrames& calls) {
  for (Context* const context : contexts_.all()) shut(*context, own, calls);
  questions_.capture_beginning();
}

// Closes the window of a context. Of another one than the thread's the planner's thread does. Left
// open, its closing would disturb a capture.
void Windows::shut(Context& context, const Context* own, const CallFrames& calls) {
  if (&context == own) return close_before(context, calls);
  if (context.gate.level() >= Gate::Level::kCalls && !calls.in_window_of(context))
    questions_.close(context, patience_.for_owner);
}

// False: a launch is in it.
bool Windows::close_asked(Context& context) {
  return from_outside(context, Event::kComes, Fact::kOutside) != Command::kHold;
}

// On a thread that may have another context, or none. A context that is going away is left to the
// thread on which it does.
WindowMachine::Command Windows::from_outside(Context& context, Event event, Facts facts) {
  if (context.asked.gone.load()) return Command::kPass;
  Run run{.context = context, .facts = facts};
  run.must_close = event == Event::kComes;
  run.ends = event == Event::kEnds;
  if (run.ends) run.until = within(kMostWaitAtEnd);
  return drive(run, event);
}

// On the planner's thread. True while there is a reason to come again.
bool Windows::visit() noexcept {
  try {
    const bool unread = read_closed();
    const bool open = close_old();
    const bool launching = watch_launches();
    const bool leased = give_back_due();
    const bool wanted = say_not_measured(false);
    const bool tried = try_asked(), costly = resume_costly();
    return resume_paused() || open || launching || leased || unread || wanted || tried || costly;
  } catch (const std::exception&) {  // memory; the gate is open again where a window was closed
    return true;
  }
}

// Those that have all their launches, too. True while a window is open that is to be looked at
// again.
bool Windows::close_old() {
  bool open = false;
  for (Context* const context : contexts_.all()) {
    if (context->gate.level() != Gate::Level::kShut) continue;
    open = true;
    const uint64_t open_ns = edge_.cuda.clock_ns() - leases_.seen(*context).opened_ns;
    Facts facts = Fact::kOutside;
    facts.set(Fact::kOld, open_ns >= scheduler_.config().max_open_ns);
    from_outside(*context, Event::kVisit, facts);
  }
  return open;
}

// Counters that are due. True while a context has them, or will have.
bool Windows::give_back_due() {
  for (Context* const context : contexts_.all()) {
    if (leases_.holder(context->ordinal) != context) continue;
    if (context->gate.level() == Gate::Level::kShut || !leases_.due(*context)) {
      leases_.not_due(*context);
      continue;
    }
    questions_.ask(*context);
    from_outside(*context, Event::kVisit, {Fact::kOutside, Fact::kDue, Fact::kPauses});
    if (leases_.holder(context->ordinal) == context && leases_.kept_for_long(*context))
      say_kept(*context);
  }
  return leases_.resume();
}

bool Windows::keeps_counters() {
  return std::ranges::any_of(contexts_.all(), [&](Context* context) {
    return leases_.holder(context->ordinal) == context && questions_.ask(*context);
  });
}

void Windows::say_kept(const Context& context) {
  if (kept_said_.exchange(true)) return;
  const std::string line =
      "no window was opened for a while, and the counters of device " +
      std::to_string(context.ordinal) +
      " are kept all the same: giving them back waits for all work in flight, and collectives or "
      "other work that waits has been in flight since. A call that waits for the GPU "
      "(cuCtxSynchronize, loss.item()) lets them be given back";
  edge_.collector->diagnostic(Severity::kWarning, "counters.kept", line);
  log::info(line);
}

// The counter availability image of a device, before the profiler is enabled on any context of it:
// CUPTI may refuse it while a session is active there (cupti_profiler_target.h). Empty where it
// does, where the last context of the device is gone, and where there was no moment for it. A
// context that is still being created cannot be made current. One that is being destroyed waits for
// this, but not for long (context_destroying()).
std::vector<uint8_t> Windows::availability(uint32_t ordinal) {
  std::vector<uint8_t> image;
  if (edge_.cupti.ProfilerGetCounterAvailability == nullptr) return image;
  const uint64_t began = monotonic_ns();
  uint64_t captured_ns = 0;
  while (!leases_.ended()) {
    const uint64_t looked = monotonic_ns();
    bool any = false;
    for (Context* const context : contexts_.all()) {
      if (context->ordinal != ordinal) continue;
      any = true;
      questions_.ask(*context);
      if (context->asked.gone.load()) continue;
      Run run{.context = *context, .facts = Fact::kOutside};
      drive(run, Event::kInquiry);
      if (run.asked) return std::move(run.image);
    }
    const uint64_t waited = monotonic_ns() - began;
    if (!any || waited > kMostWaitForAvailabilityNs + captured_ns ||
        waited > kMostWaitWithCapturesNs)
      break;
    const bool captured = captures_.any();
    if (!planner_.pause(kLookForMoment)) break;
    if (captured) captured_ns += monotonic_ns() - looked;
  }
  return image;
}

// Reports a launch that stays in its window. True while one is in a window.
bool Windows::watch_launches() {
  bool launching = false;
  for (Context* const context : contexts_.all()) {
    const auto [signature, since_ns] = leases_.seen(*context).inside;
    if (since_ns == 0) continue;
    launching = true;
    if (edge_.cuda.clock_ns() < since_ns + kLongLaunchNs) continue;
    if (!long_said_.insert(signature).second) continue;
    const std::string line =
        "a launch of " + name_of(signature) +
        " has been inside a measurement window for 10 s: it may wait for work that the program "
        "makes later. If it does not end, run the program with --never-measure and this kernel, "
        "or with --mode timing";
    edge_.collector->diagnostic(Severity::kWarning, "counters.long_launch", line);
    log::warn(line);
  }
  return launching;
}

// True while a group is paused.
bool Windows::resume_paused() {
  bool waiting = false;
  for (const auto& [device, group] : backoff_.take_due(monotonic_ns(), waiting))
    scheduler_.resume(device, group);
  return waiting;
}

// Where windows were wanted in vain and kernels have no count for it. True: look again.
bool Windows::say_not_measured(bool at_end) {
  if (!turned_away_.load(std::memory_order_relaxed)) return false;
  const MutexLock lock(saying_);
  const uint64_t now = edge_.cuda.clock_ns();
  const uint64_t opened = opened_.load(std::memory_order_relaxed);
  if (std::exchange(opened_seen_, opened) != opened || none_opened_since_ns_ == 0)
    none_opened_since_ns_ = now;
  const bool said = turned_away_said_ != 0;
  const uint64_t patience = at_end ? kNoneOpenedAtEndNs : kNoneOpenedNs;
  if (!said && now < none_opened_since_ns_ + patience && !(at_end && opened == 0)) return !at_end;
  if (said && !at_end) return false;
  const Coverage coverage = scheduler_.coverage();
  const uint64_t lack =
      coverage.launches - coverage.covered_launches - coverage.unmeasurable_launches;
  if (lack <= turned_away_said_) return false;
  edge_.collector->diagnostic(
      Severity::kWarning, "counters.in_flight",
      "launches have no FLOP count, since collectives or other work that waits was in flight "
      "wherever they were to be measured. A window opens behind a call that waits for the GPU "
      "(cuCtxSynchronize, cuStreamSynchronize, loss.item()), and the program makes none, or seldom",
      lack - std::exchange(turned_away_said_, lack));
  return false;
}

void Windows::end_measuring() noexcept {
  on_.store(false, std::memory_order_relaxed);
  leases_.end();
  planner_.visit_soon();
}

void Windows::finish() {
  on_.store(false, std::memory_order_relaxed);
  for (Context* const context : contexts_.all()) {
    if (leases_.holder(context->ordinal) != context) continue;
    if (context->gate.level() == Gate::Level::kShut &&
        from_outside(*context, Event::kEnds, Fact::kOutside) == Command::kHold) {
      leases_.give_up(*context);
      continue;
    }
    if (leases_.holder(context->ordinal) != context) continue;
    if (questions_.ask(*context))
      say_kept(*context);
    else
      from_outside(*context, Event::kEnds, {Fact::kOutside, Fact::kDue});
  }
  say_not_measured(true);
  read_closed();
}

}  // namespace flopinj
