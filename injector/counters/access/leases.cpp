#include <injector/counters/access/leases.h>
#include <injector/counters/access/open_window.h>
#include <injector/counters/profiler/range_profiler.h>
#include <injector/process/process.h>

namespace flopinj {

Leases::Leases(const Edge& edge, Backoff& backoff)
    : backoff_(backoff),
      scheduler_(edge.collector->scheduler()),
      keeps_(edge.settings.mode == Mode::kFull) {}

size_t Leases::seat(Device& device, Context& context) {
  if (context.seat == WindowMachine::kNone) {
    device.contexts.push_back(&context);
    context.seat = device.machine.add();
  }
  return context.seat;
}

void Leases::publish(Device& device) {
  for (Context* const context : device.contexts) context->gate.show(device.machine, context->seat);
}

Leases::Command Leases::step(Context& context, Event event, Facts facts, uintptr_t who) {
  if (context.ordinal >= devices_.size()) return Command::kPass;  // it is not measured
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  const Command command = device.machine.step(seat(device, context), event, facts, who);
  publish(device);
  return command;
}

bool Leases::spoiled(const Context& context) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  return context.seat != WindowMachine::kNone && device.machine.contexts[context.seat].spoiled;
}

void Leases::spoil(Context& context) { step(context, Event::kDeadline, {}, 0); }

void Leases::forget(Context& context) {
  if (context.ordinal >= devices_.size()) return;
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  device.machine.forget(seat(device, context));
  publish(device);
}

void Leases::taken(const Context& context) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  device.taken_ns = device.used_ns = monotonic_ns();
  device.due_since_ns = 0;
}

void Leases::used(const Context& context) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  device.used_ns = monotonic_ns();
}

bool Leases::given_back(const Context& context) {
  Device& device = device_of(context);
  bool was_long = false;
  {
    const MutexLock lock(device.mutex);
    if (device.machine.wanted_by_another()) return false;
    was_long = device.used_ns - device.taken_ns >= kLongNs;
  }
  if (was_long) backoff_.accepted(context.device, Backoff::kCounters);
  backoff_.pause(context.device, Backoff::kCounters, Backoff::Kind::kGivenBack, monotonic_ns());
  return true;
}

Context* Leases::holder(uint32_t ordinal) {
  if (ordinal >= devices_.size()) return nullptr;
  Device& device = devices_[ordinal];
  const MutexLock lock(device.mutex);
  const size_t holder = device.machine.holder;
  return holder != WindowMachine::kNone ? device.contexts[holder] : nullptr;
}

bool Leases::due(const Context& context) {
  Device& device = device_of(context);
  const uint64_t now = monotonic_ns();
  const bool stopped = scheduler_.stopped();
  const MutexLock lock(device.mutex);
  const bool handed_over =
      device.machine.wanted_by_another() && now >= device.used_ns + kHandOverNs;
  const bool idle = !keeps_ && (now >= device.used_ns + kIdleNs || stopped);
  return handed_over || idle || ended();
}

bool Leases::kept_for_long(const Context& context) {
  Device& device = device_of(context);
  const uint64_t now = monotonic_ns();
  const MutexLock lock(device.mutex);
  if (device.due_since_ns == 0) device.due_since_ns = now;
  return now >= device.due_since_ns + kKeptNs;
}

void Leases::not_due(const Context& context) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  device.due_since_ns = 0;
}

bool Leases::resume() {
  bool again = false;
  const uint64_t now = monotonic_ns();
  for (uint32_t ordinal = 0; ordinal < devices_.size(); ++ordinal) {
    Device& device = devices_[ordinal];
    const MutexLock lock(device.mutex);
    WindowMachine& machine = device.machine;
    const bool free = machine.lease == WindowMachine::Lease::kFree;
    if (machine.paused && backoff_.over({ordinal + 1}, Backoff::kCounters, now)) machine.resume();
    // A context that wanted them, and does not come.
    if (!free || machine.wanted_by == WindowMachine::kNone) device.wanted_since_ns = now;
    if (now >= device.wanted_since_ns + kReservedNs) machine.wanted_by = WindowMachine::kNone;
    again |= machine.paused || machine.wanted_by != WindowMachine::kNone || !free;
    publish(device);
  }
  return again;
}

}  // namespace flopinj
