#include "process.h"

#include "driver_link.h"

namespace simgpu::cupti {

Process::Process()
    : environment(read_environment()),
      callbacks(environment),
      activity(environment),
      ranges(environment),
      observer_(make_observer(*this)) {}

Process& Process::get() {
  static Process* const process = new Process;
  return *process;
}

const Driver* Process::driver() {
  if (const Driver* known = driver_.load(std::memory_order_acquire)) return known;
  const std::scoped_lock lock(mutex_);
  if (const Driver* known = driver_.load(std::memory_order_relaxed)) return known;
  const Driver* found = link_driver();
  driver_.store(found, std::memory_order_release);
  return found;
}

const Driver* Process::attach() {
  const Driver* linked = driver();
  if (linked == nullptr || attached_.load(std::memory_order_acquire)) return linked;
  const std::scoped_lock lock(mutex_);
  if (!attached_.load(std::memory_order_relaxed)) {
    linked->set_observer(&observer_);
    attached_.store(true, std::memory_order_release);
  }
  return linked;
}

void Process::detach() {
  callbacks.reset();
  ranges.reset();
  activity.reset();
  if (attached_.exchange(false)) driver()->set_observer(nullptr);  // our lock is free: it may wait
}

}  // namespace simgpu::cupti
