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
  if (found == nullptr) return nullptr;
  found->set_observer(&observer_);
  driver_.store(found, std::memory_order_release);
  return found;
}

}  // namespace simgpu::cupti
