// The commands of the machine (collector/schedule/window_machine.h), carried out: the only calls of
// CUPTI's range profiler. They are the context's owner's.
#include <injector/counters/access/with_context.h>
#include <injector/counters/windows/windows.h>
#include <injector/process/log.h>
#include <injector/process/process.h>
#include <injector/process/this_thread.h>
#include <injector/process/thread_context.h>
#include <injector/vendor/cupti_structs.h>

#include <algorithm>
#include <utility>

namespace flopinj {

WindowMachine::Command Windows::drive(Run& run, Event event) {
  Command command = leases_.await(run.context, event, run.facts, run.who, run.until);
  std::optional<WithContext> current;  // on a thread that may have another one, or none
  while (command != Command::kPass && command != Command::kAdmit && command != Command::kAskTrial &&
         command != Command::kHold) {
    if (run.facts.has(Fact::kOutside) && !current)
      run.gone = !current.emplace(edge_.cuda, run.context.handle);
    try {
      event = carry_out(run, command);
    } catch (const std::exception&) {  // memory
      run.context.window.reset();
      command = leases_.step(run.context, Event::kFails, run.facts, run.who);
      if (command == Command::kDisable) leases_.step(run.context, disable(run), run.facts, run.who);
      throw;
    }
    command = leases_.step(run.context, event, run.facts, run.who);
  }
  return command;
}

WindowMachine::Event Windows::carry_out(Run& run, Command command) {
  switch (command) {
    case Command::kDecide:
      return decide(run);
    case Command::kLook:
      return is_quiet(run) ? Event::kLooked : Event::kBusy;
    case Command::kScan:
      return scan(run);
    case Command::kEnable:
      return enable(run);
    case Command::kStart:
      return start(run);
    case Command::kStop:
      return stop(run);
    case Command::kDisable:
      return disable(run);
    case Command::kInquire:
      return inquire(run);
    default:
      return Event::kFails;
  }
}

WindowMachine::Event Windows::decide(Run& run) {
  Context& context = run.context;
  run.decided = true;
  const bool open = context.window != nullptr;
  if (open && due(context, *run.thread, run.signature)) return ends_window(run);
  LaunchDecision decision;
  if (run.signature != nullptr && on_.load(std::memory_order_relaxed)) {
    const auto* const window = open ? &context.window->measured : nullptr;
    decision = !open && run.next ? *std::exchange(run.next, std::nullopt)
                                 : scheduler_.decide(context.device, *run.signature, window,
                                                     edge_.cuda.clock_ns());
    if (open && decision.close) {
      if (decision.open) run.next = decision;
      return ends_window(run);
    }
    // A window that could not be read may have ended all measuring of this device.
    if (!open && decision.open && scheduler_.may_want(context.device, *run.signature)) {
      run.decision = decision;
      return wants_window(run);
    }
  }
  run.decision = decision;
  return open ? Event::kFits : Event::kPasses;
}

WindowMachine::Event Windows::ends_window(Run& run) {
  run.decided = false;
  return Event::kEndsWindow;
}

WindowMachine::Event Windows::wants_window(Run& run) {
  Context& context = run.context;
  run.plan = planner_.plan(context.ordinal);
  run.group = *run.decision.open;
  if (run.plan == nullptr || run.group >= run.plan->groups.size()) return Event::kPasses;
  const auto joint = joint_for(context, *run.thread, *run.plan, run.group);
  if (!joint) return Event::kPasses;
  run.joint = *joint;
  run.began_ns = edge_.cuda.clock_ns();
  run.for_trial = is_to_be_tried(context, *run.plan, GroupSet(run.group));
  return run.for_trial ? Event::kTries : Event::kOpens;
}

// A call that begins a capture, or makes waiting work, has counted itself before it reads the gate,
// which is shut here: one of the two sees the other.
bool Windows::is_quiet(const Run& run) {
  return !run.gone && !captures_.any() && !run.context.waiting.any();
}

WindowMachine::Event Windows::scan(const Run& run) {
  if (!is_quiet(run)) return Event::kBusy;
  if (none_launching(run.thread, run.context)) return Event::kLooked;
  if (run.thread != nullptr) scheduler_.add_cost(edge_.cuda.clock_ns() - run.began_ns);
  return Event::kBusy;  // the next launch tries again
}

WindowMachine::Event Windows::enable(Run& run) {
  Context& context = run.context;
  if (context.profiler == nullptr)
    context.profiler = std::make_unique<RangeProfiler>(edge_, context.handle);
  leases_.taken(context);
  Problem problem;
  const bool enabled = context.profiler->enable(problem);
  if (!enabled || run.for_trial) scheduler_.add_cost(edge_.cuda.clock_ns() - run.began_ns);
  if (enabled) return Event::kEnabled;
  refused(context.device, *run.plan, run.group, problem);
  return Event::kNotEnabled;
}

WindowMachine::Event Windows::start(Run& run) {
  Context& context = run.context;
  const bool trial = run.thread == nullptr;
  const size_t most = scheduler_.config().max_ranges;
  auto window = make_window(context, *run.plan, run.joint, run.decision, most);
  Problem problem;
  if (!context.profiler->open(window->reads(), most, problem)) {
    if (trial) {
      run.refused = true;
      log::debug(problem.line + " in a trial: the launch that wants the window hears it, too");
    } else {
      scheduler_.add_cost(edge_.cuda.clock_ns() - run.began_ns);
      refused(context.device, *run.plan, run.group, problem);
    }
    return Event::kNotStarted;
  }
  window->measured.trial = trial;
  window->measured.opened_ns = edge_.cuda.clock_ns();
  leases_.opened(context, window->measured.opened_ns);
  window->measured.cost.overhead_ns = window->measured.opened_ns - run.began_ns;
  context.window = std::move(window);
  run.tried = trial;
  if (trial) return Event::kStarted;
  context.waiting.opened();
  opened_.fetch_add(1, std::memory_order_relaxed);
  planner_.visit_soon();
  return Event::kStarted;
}

WindowMachine::Event Windows::stop(Run& run) {
  Context& context = run.context;
  const uint64_t began = edge_.cuda.clock_ns();
  auto window = std::move(context.window);
  if (run.gone) return Event::kStopped;  // the driver is gone, and the counters with it
  MeasurementWindow& measured = window->measured;
  Problem problem;
  std::vector<uint8_t> image;
  const auto outcome = context.profiler->close(measured.rows.size(), problem);
  if (outcome == RangeProfiler::Outcome::kRead) {
    try {
      image = context.profiler->take_image(unread_.spare());
    } catch (const std::exception&) {  // the window is closed, its counters are not read
      edge_.collector->diagnostic(Severity::kWarning, "counters.memory",
                                  "no memory for a window's counters: it was discarded");
      return Event::kStopped;
    }
  }
  measured.cost.open_ns = began - measured.opened_ns;
  measured.cost.overhead_ns += edge_.cuda.clock_ns() - began;
  leases_.closed(context);
  log_closed(context, *window);
  const bool counted =
      outcome == RangeProfiler::Outcome::kRead || outcome == RangeProfiler::Outcome::kMismatch;
  if (counted && leases_.state(context).spoiled) {  // CUPTI has no part in it
    edge_.collector->diagnostic(
        Severity::kWarning, "counters.spoiled",
        "a window was discarded, since a launch did not wait any longer for another thread's "
        "launch in it, or could not be told from others");
    return Event::kStopped;
  }
  if (outcome == RangeProfiler::Outcome::kRead) {
    if (!measured.rows.empty()) size_.agreed();
    hand_over(std::move(window), std::move(image));
    return Event::kStopped;
  }
  return discard(run, std::move(window), outcome, problem);
}

void Windows::log_closed(const Context& context, const OpenWindow& window) const {
  if (!log::debugging()) return;
  const MeasurementWindow& measured = window.measured;
  log::debug("window on device " + std::to_string(context.ordinal) + ": group " +
             window.plan->groups[measured.group]->plan.name + ", " +
             std::to_string(measured.rows.size()) + " launches, open for " +
             std::to_string(measured.cost.open_ns / 1'000) + " us, opening and closing took " +
             std::to_string(measured.cost.overhead_ns / 1'000) + " us");
}

// The counters of a window could not be had.
WindowMachine::Event Windows::discard(Run& run, std::unique_ptr<OpenWindow> window,
                                      RangeProfiler::Outcome outcome, Problem& problem) {
  Context& context = run.context;
  if (outcome == RangeProfiler::Outcome::kMismatch)
    return disagreed(context, *window, problem) ? Event::kStopped : Event::kLost;
  if (run.ends) return Event::kLost;
  const bool may_stay = run.facts.has(Fact::kOutside) && !run.must_close;
  if (outcome == RangeProfiler::Outcome::kNotClosed && may_stay && !problem.passing) {
    edge_.collector->diagnostic(
        Severity::kWarning, "counters.windows",
        problem.line +
            ". That was on another thread than the program's: from now on windows are "
            "closed only by threads that launch");
    context.window = std::move(window);
    return Event::kNotStopped;
  }
  refused(context.device, *window->plan, window->measured.group, problem);
  return Event::kLost;
}

WindowMachine::Event Windows::disable(Run& run) {
  Context& context = run.context;
  if (run.gone || (context.profiler != nullptr && !context.profiler->disable()))
    return Event::kNotDisabled;
  if (!run.facts.has(Fact::kPauses)) return Event::kDisabled;
  run.facts.set(Fact::kPauses, leases_.given_back(context));
  log::debug("the counters of device " + std::to_string(context.ordinal) +
             (run.facts.has(Fact::kPauses) ? " are free for others: no window is wanted"
                                           : " go to another context"));
  return Event::kDisabled;
}

// It may synchronise the context, as enabling does: CUPTI's documents do not say.
WindowMachine::Event Windows::inquire(Run& run) {
  run.asked = true;
  auto p = sized<CUpti_Profiler_GetCounterAvailability_Params>();
  p.ctx = run.context.handle;
  CUptiResult answer = edge_.cupti.ProfilerGetCounterAvailability(&p);
  if (answer == CUPTI_SUCCESS) {
    run.image.resize(p.counterAvailabilityImageSize);
    p.pCounterAvailabilityImage = run.image.data();
    answer = edge_.cupti.ProfilerGetCounterAvailability(&p);
  }
  if (answer == CUPTI_SUCCESS) {
    run.image.resize(std::min(run.image.size(), p.counterAvailabilityImageSize));
    return Event::kInquired;
  }
  run.image.clear();
  log::debug("CUPTI does not say which counters device " + std::to_string(run.context.ordinal) +
             " has: " + describe(answer));
  return Event::kInquired;
}

}  // namespace flopinj
