// The trial of what opening a window costs that instruments kernels (windows.h).
#include <injector/counters/access/with_context.h>
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

using Trial = Context::Trial;

namespace {

constexpr uint64_t kMostWaitForTrialNs = 1'000'000'000;
constexpr auto kLookForTrial = std::chrono::microseconds(50);

GroupSet instrumented_groups(const DevicePlan& plan) {
  return plan.instrumented(GroupSet::first(static_cast<uint32_t>(plan.groups.size())));
}

}  // namespace

bool Windows::is_to_be_tried(const Context& context, const DevicePlan& plan,
                             GroupSet groups) const {
  return context.trial.load(std::memory_order_relaxed) != Trial::kDone &&
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
  while (context.trial.load(std::memory_order_acquire) == Trial::kAsked && goes_on())
    std::this_thread::sleep_for(kLookForTrial);
  // A clock that a simulated driver moves may have gone on by all that the trial takes at once.
  scheduler_.add_cost(std::min(edge_.cuda.clock_ns() - began_ns, kMostWaitForTrialNs));
  return context.trial.load(std::memory_order_acquire) != Trial::kAsked;
}

// On the planner's thread. True: one is asked for still.
bool Windows::try_asked() {
  bool asked = false;
  for (Context* const context : contexts_.all()) {
    if (context->trial.load(std::memory_order_acquire) != Trial::kAsked) continue;
    try_out(*context);
    asked = asked || context->trial.load(std::memory_order_relaxed) == Trial::kAsked;
  }
  return asked;
}

void Windows::try_out(Context& context) {
  if (!on_.load(std::memory_order_relaxed) || scheduler_.stopped())
    return context.trial.store(Trial::kNone, std::memory_order_release);
  const DevicePlan& plan = *planner_.plan(context.ordinal);
  const uint32_t group = context.trial_group.load(std::memory_order_relaxed);
  {
    if (!context.lock.try_lock()) return;
    const HeldLock lock(context.lock);
    if (!open_for_trial(context, plan, group)) return;
  }
  read_closed();  // its cost is known now
  judge_trial(context, plan, group);
  context.trial.store(Trial::kDone, std::memory_order_release);
}

// And closes it. False: there was no window, and another trial may come where one is asked for
// still.
bool Windows::open_for_trial(Context& context, const DevicePlan& plan, uint32_t group) {
  const WithContext current(edge_.cuda, context.handle);
  if (!current) return false;
  if (leases_.holder(context.ordinal) != &context ||
      !has_memory(context, plan, group, questions_.ask_free_memory(context))) {
    context.trial.store(Trial::kNone, std::memory_order_release);
    return false;
  }
  Run run{.context = context, .who = reinterpret_cast<uintptr_t>(&current)};
  run.facts = Fact::kOutside;
  run.plan = &plan;
  run.group = group;
  run.decision.open = group;
  run.began_ns = edge_.cuda.clock_ns();
  questions_.ask(context);
  drive(run, Event::kTrial);
  if (run.refused) context.trial.store(Trial::kDone, std::memory_order_release);
  if (run.tried)
    context.trial_ns.store(edge_.cuda.clock_ns() - run.began_ns, std::memory_order_relaxed);
  return run.tried;
}

void Windows::judge_trial(const Context& context, const DevicePlan& plan, uint32_t group) {
  if (scheduler_.affords_window(context.device, group, edge_.cuda.clock_ns())) return;
  for (const uint32_t g : instrumented_groups(plan)) scheduler_.pause(context.device, g);
  if (!costly_.insert(context.ordinal).second) return;
  const std::string line =
      "a window that instruments kernels took " +
      std::to_string(context.trial_ns.load(std::memory_order_relaxed) / 1'000'000) +
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
