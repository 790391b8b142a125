#include <collector/writer/definition_feed.h>

#include <utility>

namespace flopinj {

// What refers to others is taken before them (NewDefinitions::take()).
void DefinitionFeed::write(TraceWriter& writer, std::span<ThreadState* const> threads) {
  const auto groups = state_.descriptions.take_groups();
  Definitions d;
  d.streams = state_.descriptions.take_streams();
  for (const auto& device : state_.descriptions.take_devices())
    writer.device(device.id, device.info);
  for (const auto& group : groups) writer.metric_group(group.id, group.device, group.plan);

  name_threads(threads);
  d.threads = std::exchange(new_threads_, {});
  tables_.take(d);
  writer.definitions(d);
}

// Threads that launched: new ones at once, the others every second, because programs name threads
// after they start.
void DefinitionFeed::name_threads(std::span<ThreadState* const> threads) {
  const auto now = Clock::now();
  const bool again = now >= next_naming_;
  if (again) next_naming_ = now + std::chrono::seconds(1);
  for (const ThreadState* const thread : threads) {
    if (thread == nullptr || thread->ring.pushed() == 0) continue;
    if (!again && names_.count(thread->id.value) != 0) continue;
    std::string name;
    state_.control.with_edge([&] {
      if (state_.hooks.thread_name) name = state_.hooks.thread_name(thread->os_tid);
    });
    define_thread(thread->id, thread->os_tid, name);
  }
}

// Once, and again under a new name. An empty name is no news: the thread may just have ended.
void DefinitionFeed::define_thread(ThreadId id, uint32_t os_tid, const std::string& name) {
  ThreadName& known = names_[id.value];
  if (known.defined && (name.empty() || name == known.text)) return;
  known = {name, true};
  new_threads_.push_back(
      {id, os_tid, name.empty() ? StringId{} : state_.paths.intern_string(name)});
}

void DefinitionFeed::thread_ended(ThreadId id, uint32_t os_tid, const std::string& name,
                                  bool launched) {
  if (launched) define_thread(id, os_tid, name);
  names_.erase(id.value);
}

}  // namespace flopinj
