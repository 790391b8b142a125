#include <injector/counters/access/leases.h>
#include <injector/counters/access/open_window.h>
#include <injector/counters/access/with_context.h>
#include <injector/counters/profiler/range_profiler.h>
#include <injector/process/log.h>
#include <injector/process/process.h>
#include <injector/vendor/cupti_structs.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

namespace flopinj {

using State = Context::State;

namespace {

constexpr uint64_t kMostWaitForAvailabilityNs = 1'000'000'000;
constexpr auto kLookForMoment = std::chrono::milliseconds(10);

}  // namespace

Leases::Leases(Edge& edge, Planner& planner, Contexts& contexts, const Captures& captures,
               Backoff& backoff, Questions& questions)
    : edge_(edge),
      planner_(planner),
      contexts_(contexts),
      captures_(captures),
      backoff_(backoff),
      questions_(questions),
      scheduler_(edge.collector->scheduler()),
      keeps_(edge.settings.mode == Mode::kFull) {}

bool Leases::available(const Context& context) const {
  switch (context.state.load(std::memory_order_acquire)) {
    case State::kUntaken:
    case State::kHeld:
      return true;
    case State::kDue:
      return !device_of(context).wanted_by_another.load(std::memory_order_relaxed);
    default:
      return false;
  }
}

std::vector<uint8_t> Leases::availability(uint32_t ordinal) {
  if (edge_.cupti.ProfilerGetCounterAvailability == nullptr) return {};
  std::vector<uint8_t> image;
  const uint64_t began = monotonic_ns();
  while (!ended_.load(std::memory_order_relaxed)) {
    bool any = false;
    for (Context* const context : contexts_.all()) {
      if (context->ordinal != ordinal) continue;
      any = true;
      if (ask_availability(*context, image)) return image;
    }
    if (!any || monotonic_ns() - began > kMostWaitForAvailabilityNs) break;
    std::this_thread::sleep_for(kLookForMoment);
  }
  return image;
}

// As enabling, it may synchronise the context: CUPTI's documents do not say. A context that is
// still being created cannot be made current. One that is being destroyed waits for the lock, but
// not for long (Windows::context_destroying).
bool Leases::ask_availability(Context& context, std::vector<uint8_t>& image) {
  questions_.ask(context);
  if (!context.lock.try_lock()) return false;
  const HeldLock lock(context.lock);
  const Shut shut(context, State::kSwitching);
  if (!quiet(context)) return false;
  const WithContext current(edge_.cuda, context.handle);
  if (!current) return false;
  auto p = sized<CUpti_Profiler_GetCounterAvailability_Params>();
  p.ctx = context.handle;
  CUptiResult answer = edge_.cupti.ProfilerGetCounterAvailability(&p);
  if (answer == CUPTI_SUCCESS) {
    image.resize(p.counterAvailabilityImageSize);
    p.pCounterAvailabilityImage = image.data();
    answer = edge_.cupti.ProfilerGetCounterAvailability(&p);
  }
  if (answer == CUPTI_SUCCESS) {
    image.resize(std::min(image.size(), p.counterAvailabilityImageSize));
    return true;
  }
  image.clear();
  log::debug("CUPTI does not say which counters device " + std::to_string(context.ordinal) +
             " has: " + describe(answer));
  return true;
}

bool Leases::take(Context& context) {
  Device& device = device_of(context);
  Context* holder = nullptr;
  if (device.holder.compare_exchange_strong(holder, &context)) {
    const uint64_t now = monotonic_ns();
    device.taken_ns.store(now, std::memory_order_relaxed);
    device.used_ns.store(now, std::memory_order_relaxed);
    return true;
  }
  if (holder == &context) return true;
  device.wanted_by_another.store(true, std::memory_order_relaxed);
  planner_.visit_soon();
  return false;
}

State Leases::enable(Context& context, Problem& problem) {
  if (context.profiler == nullptr)
    context.profiler = std::make_unique<RangeProfiler>(edge_, context.handle);
  if (!take(context)) return State::kReleased;
  return context.profiler->enable(problem) ? State::kHeld : drop(context);
}

void Leases::used(const Context& context) {
  device_of(context).used_ns.store(monotonic_ns(), std::memory_order_relaxed);
}

State Leases::drop(Context& context) {
  if (context.ordinal >= devices_.size()) return State::kUntaken;  // not measured
  if (context.profiler != nullptr && !context.profiler->disable()) return State::kHeld;
  Context* self = &context;
  device_of(context).holder.compare_exchange_strong(self, nullptr);
  return State::kUntaken;
}

void Leases::forget(Context& context) {
  drop(context);
  context.profiler.reset();
  context.state.store(State::kUntaken);
  Context* self = &context;
  if (context.ordinal < devices_.size())
    device_of(context).holder.compare_exchange_strong(self, nullptr);
}

void Leases::end() {
  ended_.store(true, std::memory_order_relaxed);
  planner_.visit_soon();
}

bool Leases::kept() {
  return std::ranges::any_of(devices_, [&](const Device& device) {
    Context* const holder = device.holder.load();
    return holder != nullptr && questions_.ask(*holder);
  });
}

void Leases::drop_at_end(Context& context) {
  const WithContext current(edge_.cuda, context.handle);
  if (!current || holder(context.ordinal) != &context) return;
  if (questions_.ask(context)) return say_kept(context);
  context.state.store(drop(context));
}

bool Leases::due(const Context& context, uint64_t now_ns) const {
  const Device& device = device_of(context);
  const uint64_t used_ns = device.used_ns.load(std::memory_order_relaxed);
  if (device.wanted_by_another.load(std::memory_order_relaxed) && now_ns >= used_ns + kHandOverNs)
    return true;
  return ended_.load(std::memory_order_relaxed) ||
         (!keeps_ && (now_ns >= used_ns + kIdleNs || scheduler_.stopped()));
}

bool Leases::visit() {
  bool again = false;
  const uint64_t now = monotonic_ns();
  for (Context* const context : contexts_.all()) {
    if (context->ordinal >= devices_.size()) continue;
    Device& device = device_of(*context);
    const State state = context->state.load(std::memory_order_acquire);
    if (State released = State::kReleased; state == released) {
      again = true;
      if (backoff_.over(context->device, Backoff::kCounters, now))
        context->state.compare_exchange_strong(released, State::kUntaken);
    } else if (device.holder.load() == context) {
      again = true;
      if (state > State::kDue || !due(*context, now))
        device.due_since_ns = 0;
      else
        release(*context, now);
    }
  }
  return again;
}

void Leases::release(Context& context, uint64_t now_ns) {
  Device& device = device_of(context);
  if (device.due_since_ns == 0) device.due_since_ns = now_ns;
  if (!by_planner_.load(std::memory_order_relaxed)) {  // the next launch is to come to us
    for (State held : {State::kHeld, State::kDue})
      context.state.compare_exchange_strong(held, State::kDueHere);
    return;
  }
  questions_.ask(context);
  if (!context.lock.try_lock()) return;
  {
    const HeldLock lock(context.lock);
    const WithContext current(edge_.cuda, context.handle);
    if (!current) return;
    Shut shut(context, State::kSwitching);
    if (shut.becomes == State::kHeld || shut.becomes == State::kDue)
      shut.becomes = give_back(context);
    if (shut.becomes != State::kDue) return;
  }
  if (now_ns >= device.due_since_ns + kKeptNs) say_kept(context);
}

void Leases::say_kept(const Context& context) {
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

bool Leases::quiet(const Context& context) const {
  return context.window == nullptr && !captures_.any() && !context.waiting.any();
}

State Leases::give_back(Context& context) {
  if (!quiet(context)) return State::kDue;
  if (!disable(context)) return State::kHeld;
  Device& device = device_of(context);
  const bool for_another = device.wanted_by_another.exchange(false);
  if (!for_another) {
    const bool was_long = device.used_ns.load() - device.taken_ns.load() >= kLongNs;
    if (was_long) backoff_.accepted(context.device, Backoff::kCounters);
    backoff_.pause(context.device, Backoff::kCounters, Backoff::Kind::kGivenBack, monotonic_ns());
  }
  device.holder.store(nullptr);
  log::debug(
      "the counters of device " + std::to_string(context.ordinal) +
      (for_another ? " go to another context" : " are free for others: no window is wanted"));
  return State::kReleased;
}

bool Leases::disable(Context& context) {
  if (context.profiler == nullptr) return true;  // there was no memory to make it
  if (context.profiler->disable()) return true;
  by_planner_.store(false, std::memory_order_relaxed);
  return false;
}

void Leases::release_here(Context& context) {
  if (context.state.load() != State::kDueHere || context.window != nullptr) return;
  const uint64_t began = edge_.cuda.clock_ns();
  uint64_t asking_ns = 0;  // in what is charged
  if (!questions_.in_flight(context, 0, asking_ns)) {
    Shut shut(context, State::kSwitching);
    shut.becomes = give_back(context);
    if (shut.becomes == State::kDue) shut.becomes = State::kDueHere;
  }
  scheduler_.add_cost(edge_.cuda.clock_ns() - began);
}

void Leases::synchronized(Context& context) {
  const State state = context.state.load(std::memory_order_acquire);
  if ((state != State::kDue && state != State::kDueHere) || !context.lock.try_lock()) return;
  const HeldLock lock(context.lock);
  const uint64_t now = monotonic_ns(), began = edge_.cuda.clock_ns();
  if (context.wanted.load(std::memory_order_relaxed) && !ended_.load(std::memory_order_relaxed)) {
    if (context.kept_since_ns == 0) context.kept_since_ns = now;
    if (now < context.kept_since_ns + kKeptForLaunchNs) return;
  }
  Shut shut(context, State::kSwitching);
  if (shut.becomes == State::kDue || shut.becomes == State::kDueHere)
    shut.becomes = give_back(context);
  scheduler_.add_cost(edge_.cuda.clock_ns() - began);
}

}  // namespace flopinj
