#include <collector/writer/definition_feed.h>

#include <utility>

namespace flopinj {

// Every list is taken after the lists that refer to it, and written before them: another thread may
// define something between two of these lines, and its definition may refer to something just as
// new.
void DefinitionFeed::write(TraceWriter& writer, std::span<ThreadState* const> threads) {
  const auto groups = state_.descriptions.take_groups();
  Definitions d;
  d.streams = state_.descriptions.take_streams();
  for (const auto& device : state_.descriptions.take_devices())
    writer.device(device.id, device.info);
  for (const auto& group : groups) writer.metric_group(group.id, group.device, group.plan);

  name_threads(threads);
  d.threads = std::exchange(new_threads_, {});
  d.signatures = state_.signatures.signatures_after(last_signature_);
  d.functions = state_.signatures.functions_after(last_function_);
  for (const KernelFunction* function : d.functions)
    d.function_names.push_back(state_.paths.intern_string(function->info.name));
  d.paths = state_.paths.paths_after(last_path_);
  d.strings = state_.paths.strings_after(last_string_);

  if (!d.signatures.empty()) last_signature_ = d.signatures.back()->id;
  if (!d.functions.empty()) last_function_ = d.functions.back()->id;
  if (!d.paths.empty()) last_path_ = d.paths.back().id;
  if (!d.strings.empty()) last_string_ = d.strings.back().id;
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
