#include <collector/writer/thread_registry.h>

#include <utility>

namespace flopinj {

// `made` is raised before a launch is pushed or dropped, so reading it last never gives fewer
// launches than outcomes.
void ThreadTotals::add(const ThreadState& thread) {
  for (size_t d = 0; d < kDeviceSlots; ++d) {
    ring_full[d] += thread.launches[d].dropped.load(std::memory_order_acquire);
    made[d] += thread.launches[d].made.load(std::memory_order_relaxed);
  }
  callbacks += thread.callbacks.count();
  callback_ns += thread.callbacks.estimate_ns();
  timed_calls += thread.timed_calls.load(std::memory_order_relaxed);
  timed_call_ns += thread.timed_call_ns.load(std::memory_order_relaxed);
  passed_over += thread.passed_over.load(std::memory_order_relaxed);
  nested_calls += thread.nested_calls.load(std::memory_order_relaxed);
  unmatched_pops += thread.ranges.unmatched_pops();
  too_deep += thread.ranges.too_deep();
}

ThreadState* ThreadRegistry::add(uint32_t os_tid, RangePathTable& paths,
                                 const ProcessRanges& process) {
  const MutexLock lock(mutex_);
  if (slots_.size() >= kMaxThreads) return nullptr;
  auto state = std::make_unique<ThreadState>(ThreadId{next_id_}, os_tid, paths, process);
  ThreadState* result = state.get();
  caches_.reserve(kMostCaches);
  slots_.emplace(result, Slot{std::move(state), {}});
  ++next_id_;
  if (caches_.empty()) return result;
  result->signatures = std::move(caches_.back());
  caches_.pop_back();
  return result;
}

void ThreadRegistry::retire(ThreadState* thread, std::string name) {
  const MutexLock lock(mutex_);
  const auto at = slots_.find(thread);
  if (at == slots_.end()) return;
  at->second.last_name = std::move(name);
  if (!thread->signatures.empty() && caches_.size() < kMostCaches)
    caches_.push_back(std::move(thread->signatures));
  thread->retired.store(true, std::memory_order_release);
}

void ThreadRegistry::list(std::vector<ThreadState*>& out) const {
  out.clear();
  const MutexLock lock(mutex_);
  out.reserve(slots_.size());
  for (const auto& [key, slot] : slots_) out.push_back(slot.state.get());
}

std::string ThreadRegistry::reap(ThreadState* thread) {
  Slot slot;
  const MutexLock lock(mutex_);
  const auto at = slots_.find(thread);
  if (at == slots_.end()) return {};
  ended_.add(*thread);
  slot = std::move(at->second);
  slots_.erase(at);
  return std::move(slot.last_name);
}

ThreadTotals ThreadRegistry::totals() const {
  const MutexLock lock(mutex_);
  ThreadTotals totals = ended_;
  for (const auto& [key, slot] : slots_) totals.add(*slot.state);
  return totals;
}

}  // namespace flopinj
