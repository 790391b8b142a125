// The trial of what opening a window costs that instruments kernels (windows.h).
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

constexpr uint64_t kMostWaitForTrialNs = 1'000'000'000;
constexpr auto kLookForTrial = std::chrono::microseconds(50);

GroupSet instrumented_groups(const DevicePlan& plan) {
  return plan.instrumented(GroupSet::first(static_cast<uint32_t>(plan.groups.size())));
}

}  // namespace

bool Windows::is_to_be_tried(const Context& context, const DevicePlan& plan, GroupSet groups) {
  return leases_.seen(context).trial.state != Trial::State::kDone &&
         !plan.instrumented(groups).empty() && !scheduler_.config().every_launch &&
         scheduler_.config().budget != MeasuringBudget::kUnlimited;
}

// Without a lock of ours. True: there is an answer.
bool Windows::wait_for_trial(const Context& context, const Signature& signature) {
  const uint64_t began = monotonic_ns(), began_ns = edge_.cuda.clock_ns();
  const NoCancellation whole;
  const auto goes_on = [&] {
    const uint64_t now_ns = edge_.cuda.clock_ns();
    return monotonic_ns() - began < kMostWaitForTrialNs && on_.load(std::memory_order_relaxed) &&
           scheduler_.affords(context.device, signature, now_ns - began_ns, now_ns);
  };
  const auto asked = [&] { return leases_.seen(context).trial.state == Trial::State::kAsked; };
  while (asked() && goes_on()) std::this_thread::sleep_for(kLookForTrial);
  // A clock that a simulated driver moves may have gone on by all that the trial takes at once.
  scheduler_.add_cost(std::min(edge_.cuda.clock_ns() - began_ns, kMostWaitForTrialNs));
  return !asked();
}

// On the planner's thread. True: one is asked for still.
bool Windows::try_asked() {
  bool asked = false;
  for (Context* const context : contexts_.all()) {
    if (leases_.seen(*context).trial.state != Trial::State::kAsked) continue;
    try_out(*context);
    asked = asked || leases_.seen(*context).trial.state == Trial::State::kAsked;
  }
  return asked;
}

void Windows::try_out(Context& context) {
  if (!on_.load(std::memory_order_relaxed) || scheduler_.stopped())
    return leases_.set_trial(context, {});
  const DevicePlan& plan = *planner_.plan(context.ordinal);
  Trial trial = leases_.seen(context).trial;
  if (open_for_trial(context, plan, trial)) {
    read_closed();  // its cost is known now
    judge_trial(context, plan, trial);
  }
  leases_.set_trial(context, trial);
}

// And closes it. False: there was no window, and another trial may come where one is asked for
// still.
bool Windows::open_for_trial(Context& context, const DevicePlan& plan, Trial& trial) {
  if (context.asked.gone.load() || leases_.holder(context.ordinal) != &context ||
      !has_memory(context, plan, trial.group, questions_.ask_free_memory(context))) {
    trial.state = Trial::State::kNone;
    return false;
  }
  Run run{.context = context, .facts = Fact::kOutside};
  run.plan = &plan;
  run.group = trial.group;
  run.decision.open = trial.group;
  run.began_ns = edge_.cuda.clock_ns();
  questions_.ask(context);
  drive(run, Event::kTrial);
  if (run.refused || run.tried) trial.state = Trial::State::kDone;
  if (run.tried) trial.took_ns = edge_.cuda.clock_ns() - run.began_ns;
  return run.tried;
}

void Windows::judge_trial(const Context& context, const DevicePlan& plan, const Trial& trial) {
  if (scheduler_.affords_window(context.device, trial.group, edge_.cuda.clock_ns())) return;
  for (const uint32_t g : instrumented_groups(plan)) scheduler_.pause(context.device, g);
  if (!costly_.insert(context.ordinal).second) return;
  const std::string line =
      "a window that instruments kernels took " + std::to_string(trial.took_ns / 1'000'000) +
      " ms to open and close in a trial without launches, and the budget has no room for another: "
      "until it has, instructions are not counted, and FLOP have upper bounds. --budget makes room";
  edge_.collector->diagnostic(Severity::kWarning, "counters.costly", line);
  log::warn(line);
}

// True while there are devices whose kernels are not instrumented for what it costs.
bool Windows::resume_costly() {
  std::erase_if(costly_, [&](uint32_t ordinal) {
    const DevicePlan& plan = *planner_.plan(ordinal);
    const DeviceId device{ordinal + 1};
    const GroupSet groups = instrumented_groups(plan);
    if (!scheduler_.affords_window(device, *groups.begin(), edge_.cuda.clock_ns())) return false;
    for (const uint32_t g : groups) scheduler_.resume(device, g);
    return true;
  });
  return !costly_.empty();
}

}  // namespace flopinj
