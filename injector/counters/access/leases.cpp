#include <injector/counters/access/leases.h>
#include <injector/counters/access/open_window.h>
#include <injector/counters/access/with_context.h>
#include <injector/counters/profiler/range_profiler.h>
#include <injector/process/log.h>
#include <injector/process/process.h>

#include <memory>
#include <string>

namespace flopinj {

using Counters = Context::Counters;

Leases::Leases(Edge& edge, Planner& planner, Contexts& contexts, const Captures& captures)
    : edge_(edge),
      planner_(planner),
      contexts_(contexts),
      captures_(captures),
      scheduler_(edge.collector->scheduler()),
      keeps_(edge.settings.mode == Mode::kFull) {}

namespace {

// Counters that are being switched; at the end of the scope they are as `becomes` says, also where
// memory was short.
struct Switching {
  std::atomic<Counters>& counters;
  Counters becomes;
  ~Switching() { counters.store(becomes); }
};

}  // namespace

bool Leases::available(Context& context) {
  const Counters state = context.counters.load(std::memory_order_acquire);
  if (state == Counters::kUntaken || state == Counters::kHeld) return true;
  if (state == Counters::kReleased && !by_planner_.load(std::memory_order_relaxed) &&
      device_of(context).lease.may_be_taken(monotonic_ns()))
    return true;
  ask(context);
  return false;
}

void Leases::ask(Context& context) {
  if (context.counters_asked.load(std::memory_order_relaxed)) return;
  if (!context.counters_asked.exchange(true, std::memory_order_relaxed)) planner_.visit_soon();
}

bool Leases::take(Context& context) {
  if (!available(context)) return false;
  Device& device = device_of(context);
  Context* holder = nullptr;
  if (device.holder.compare_exchange_strong(holder, &context) || holder == &context) {
    if (context.counters.exchange(Counters::kHeld) != Counters::kHeld)
      device.lease.taken(monotonic_ns());
    return true;
  }
  context.counters.store(Counters::kReleased, std::memory_order_release);
  device.wanted_by_another.store(true, std::memory_order_relaxed);
  ask(context);
  return false;
}

void Leases::used(const Context& context) {
  Device& device = device_of(context);
  const uint64_t now = monotonic_ns();
  device.used_ns.store(now, std::memory_order_relaxed);
  device.lease.used(now);
}

void Leases::drop(Context& context) {
  if (context.ordinal >= devices_.size()) return;  // not measured
  if (context.profiler != nullptr && !context.profiler->disable()) return;
  context.counters.store(Counters::kUntaken, std::memory_order_release);
  Context* self = &context;
  device_of(context).holder.compare_exchange_strong(self, nullptr);
}

void Leases::forget(Context& context) {
  drop(context);
  context.profiler.reset();
  context.counters_asked.store(false, std::memory_order_relaxed);
  context.release_here.store(false, std::memory_order_relaxed);
  context.counters.store(Counters::kUntaken, std::memory_order_release);
  Context* self = &context;
  if (context.ordinal < devices_.size())
    device_of(context).holder.compare_exchange_strong(self, nullptr);
}

bool Leases::due(const Context& context, uint64_t now_ns) const {
  const Device& device = device_of(context);
  if (device.wanted_by_another.load(std::memory_order_relaxed) &&
      now_ns >= device.used_ns.load(std::memory_order_relaxed) + kHandOverNs)
    return true;
  return !keeps_ && (device.lease.idle(now_ns) || scheduler_.stopped());
}

bool Leases::visit() {
  bool again = false;
  const uint64_t now = monotonic_ns();
  for (Context* const context : contexts_.all()) {
    if (context->ordinal >= devices_.size()) continue;
    const Counters state = context->counters.load(std::memory_order_acquire);
    if (state == Counters::kHeld) {
      again = true;
      if (due(*context, now)) release(*context, now);
    } else if (state == Counters::kReleased && by_planner_.load(std::memory_order_relaxed) &&
               context->counters_asked.load(std::memory_order_relaxed)) {
      again = true;
      Device& device = device_of(*context);
      if (device.holder.load() != nullptr)
        device.wanted_by_another.store(true, std::memory_order_relaxed);
      else if (device.lease.may_be_taken(now))
        enable(*context, now);
    }
  }
  return again;
}

void Leases::release(Context& context, uint64_t now_ns) {
  if (!by_planner_.load(std::memory_order_relaxed)) {  // the next launch is to come to us
    context.release_here.store(true, std::memory_order_relaxed);
    context.gate.store(true, std::memory_order_seq_cst);
    return;
  }
  Counters held = Counters::kHeld;
  if (!context.counters.compare_exchange_strong(held, Counters::kSwitching)) return;
  Switching switching{context.counters, Counters::kHeld};
  if (!context.lock.try_lock()) return;
  const HeldLock lock(context.lock);
  if (!disable(context)) return;
  Device& device = device_of(context);
  const bool for_another = device.wanted_by_another.exchange(false);
  if (!for_another) device.lease.released(now_ns);
  device.holder.store(nullptr);
  switching.becomes = Counters::kReleased;
  log::debug(
      "the counters of device " + std::to_string(context.ordinal) +
      (for_another ? " go to another context" : " are free for others: no window is wanted"));
}

bool Leases::quiet(Context& context) {
  if (context.window != nullptr || captures_.any()) return false;
  const WithContext current(edge_.cuda, context.handle);  // its default streams are asked about
  return current && !context.waiting.unfinished(edge_.cuda);
}

bool Leases::disable(Context& context) {
  if (!quiet(context)) return false;
  if (context.profiler == nullptr) return true;  // there was no memory to make it
  const WithContext current(edge_.cuda, context.handle);
  if (!current) return false;
  if (context.profiler->disable()) return true;
  by_planner_.store(false, std::memory_order_relaxed);
  return false;
}

void Leases::release_here(Context& context) {
  if (!context.release_here.exchange(false, std::memory_order_relaxed)) return;
  if (context.window != nullptr) return;
  drop(context);
  if (context.counters.load(std::memory_order_relaxed) == Counters::kUntaken) {
    context.counters.store(Counters::kReleased, std::memory_order_release);
    Device& device = device_of(context);
    device.wanted_by_another.store(false, std::memory_order_relaxed);
    device.lease.released(monotonic_ns());
  }
  context.gate.store(false, std::memory_order_seq_cst);
}

void Leases::enable(Context& context, uint64_t now_ns) {
  Counters released = Counters::kReleased;
  if (!context.counters.compare_exchange_strong(released, Counters::kSwitching)) return;
  Switching switching{context.counters, Counters::kReleased};
  if (!context.lock.try_lock()) return;
  const HeldLock lock(context.lock);
  if (!try_enable(context, now_ns)) return;
  context.counters_asked.store(false, std::memory_order_relaxed);
  used(context);
  device_of(context).lease.taken(now_ns);
  switching.becomes = Counters::kHeld;
  log::debug("the counters of device " + std::to_string(context.ordinal) + " are ours again");
}

bool Leases::try_enable(Context& context, uint64_t now_ns) {
  if (!quiet(context)) return false;
  const WithContext current(edge_.cuda, context.handle);
  if (context.profiler == nullptr)
    context.profiler = std::make_unique<RangeProfiler>(edge_.cuda, edge_.cupti, context.handle);
  Device& device = device_of(context);
  Context* none = nullptr;
  if (!current || !device.holder.compare_exchange_strong(none, &context)) return false;
  Problem problem;
  if (context.profiler->enable(problem)) return true;
  device.holder.store(nullptr);
  enable_refused(context, problem, now_ns);
  return false;
}

// Others have the counters, or this is not the thread for it: then a launching thread tries, and
// what it is answered counts.
void Leases::enable_refused(Context& context, const Problem& problem, uint64_t now_ns) {
  if (problem.code != kCountersBusy) {
    by_planner_.store(false, std::memory_order_relaxed);
    return log::debug(problem.line + " on a thread of ours: launching threads enable them");
  }
  const uint64_t pause = device_of(context).lease.refused(now_ns);
  const std::string line = problem.line + "; the counters of device " +
                           std::to_string(context.ordinal) +
                           " were given back while no window was wanted, and are asked for again "
                           "in " +
                           std::to_string(pause / 1'000'000'000) + " s";
  edge_.collector->diagnostic(Severity::kWarning, problem.code, line);
  log::info(line);
}

}  // namespace flopinj
