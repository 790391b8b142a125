#include <injector/counters/access/leases.h>
#include <injector/counters/access/open_window.h>
#include <injector/counters/profiler/range_profiler.h>
#include <injector/process/process.h>
#include <injector/process/this_thread.h>

namespace flopinj {

Leases::Leases(const Edge& edge, Backoff& backoff)
    : backoff_(backoff),
      scheduler_(edge.collector->scheduler()),
      keeps_(edge.settings.mode == Mode::kFull) {}

Leases::Seat& Leases::seat(Device& device, Context& context) {
  if (context.seat == WindowMachine::kNone) {
    device.seats.emplace_back().context = &context;
    context.seat = device.machine.add();
  }
  return device.seats[context.seat];
}

Leases::Seat* Leases::known_seat(Device& device, const Context& context) {
  return context.seat != WindowMachine::kNone ? &device.seats[context.seat] : nullptr;
}

void Leases::publish(Device& device) {
  for (Seat& seat : device.seats) seat.context->gate.show(device.machine, seat.context->seat);
}

Leases::Command Leases::take(Device& device, Seat& seat, Event event, Facts facts, uintptr_t who) {
  const size_t index = seat.context->seat;
  const Command command = device.machine.step(index, event, facts, who);
  seat.owned = device.machine.contexts[index].owner != 0;
  if (!seat.owned) seat.seen.inside = {};
  publish(device);
  return command;
}

Leases::Command Leases::await(Context& context, Event event, Facts facts, uintptr_t who,
                              Until until) {
  if (context.ordinal >= devices_.size()) return Command::kPass;  // it is not measured
  Device& device = device_of(context);
  MutexLock lock(device.mutex);
  Seat& mine = seat(device, context);
  Command command = take(device, mine, event, facts, who);
  while (command == Command::kHold && std::chrono::steady_clock::now() < until) {
    const NoCancellation whole;
    ++mine.waiting;
    mine.freed.wait_until(lock.native(), until);
    --mine.waiting;
    command = take(device, mine, event, facts, who);
  }
  const bool wakes = !mine.owned && mine.waiting != 0;
  lock.unlock();
  if (wakes) mine.freed.notify_one();
  return command;
}

void Leases::left(Context& context, const CallFrames& by, LeftWindow how) noexcept {
  using enum WindowMachine::Fact;
  const Facts facts = how == LeftWindow::kUntold ? Facts(kUntold)
                      : how == LeftWindow::kLast ? Facts(kLast)
                                                 : Facts();
  step(context, Event::kLeft, facts, token(by));
}

WindowMachine::Context Leases::state(const Context& context) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  return context.seat != WindowMachine::kNone ? device.machine.contexts[context.seat]
                                              : WindowMachine::Context();
}

void Leases::spoil(Context& context) { step(context, Event::kDeadline, {}, 0); }

void Leases::give_up(Context& context) {
  step(context, Event::kGivesUp, {}, 0);
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  seat(device, context).freed.notify_all();
}

void Leases::forget(Context& context) {
  if (context.ordinal >= devices_.size()) return;
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  Seat& gone = seat(device, context);
  device.machine.forget(context.seat);
  gone.seen = {};
  gone.freed.notify_all();
  publish(device);
}

void Leases::taken(const Context& context) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  device.taken_ns = device.used_ns = monotonic_ns();
  device.due_since_ns = 0;
}

void Leases::opened(const Context& context, uint64_t clock_ns) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  device.used_ns = monotonic_ns();
  if (Seat* const mine = known_seat(device, context)) {
    mine->seen.opened_ns = clock_ns;
    mine->kept_since_ns = 0;
  }
}

void Leases::closed(const Context& context) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  device.used_ns = monotonic_ns();
}

void Leases::entered(const Context& context, LaunchInside launch) {
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  if (Seat* const mine = known_seat(device, context)) mine->seen.inside = launch;
}

Leases::Seen Leases::seen(const Context& context) {
  if (context.ordinal >= devices_.size()) return {};
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  const Seat* const of = known_seat(device, context);
  return of != nullptr ? of->seen : Seen();
}

void Leases::set_trial(Context& context, Trial trial) {
  if (context.ordinal >= devices_.size()) return;
  Device& device = device_of(context);
  const MutexLock lock(device.mutex);
  seat(device, context).seen.trial = trial;
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
  return holder != WindowMachine::kNone ? device.seats[holder].context : nullptr;
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

bool Leases::kept_for_launch(const Context& context) {
  Device& device = device_of(context);
  const uint64_t now = monotonic_ns();
  const MutexLock lock(device.mutex);
  Seat* const mine = known_seat(device, context);
  if (mine == nullptr) return false;
  if (mine->kept_since_ns == 0) mine->kept_since_ns = now;
  return now < mine->kept_since_ns + kKeptForLaunchNs;
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
