#include <injector/counters/access/green_context.h>
#include <injector/handles/streams.h>
#include <injector/process/thread_context.h>
#include <injector/vendor/relaxed_capture.h>

namespace flopinj {

StreamSlot& Streams::slot_of(ThreadContext& thread, CUstream stream) {
  const auto bits = reinterpret_cast<uintptr_t>(stream);
  return thread.streams[(bits >> 4 ^ bits >> 12) % thread.streams.size()];
}

bool Streams::remembers(const StreamSlot& slot, const Context& context, CUstream stream,
                        bool per_thread) const {
  return slot.context == &context && slot.stream == stream && slot.per_thread == per_thread &&
         slot.epoch == epoch_.load(std::memory_order_acquire);
}

StreamId Streams::find(ThreadContext& thread, const Context& context, CUstream stream,
                       bool per_thread) {
  StreamSlot& slot = slot_of(thread, stream);
  if (remembers(slot, context, stream, per_thread)) return slot.id;
  const uint32_t epoch = epoch_.load(std::memory_order_acquire);
  const bool green = on_green_context(thread, context, stream, per_thread);
  const StreamId id = look_up(context, stream, per_thread, green);
  slot = {&context, stream, id, epoch, per_thread, green};
  return slot.id;
}

bool Streams::on_green_context(ThreadContext& thread, const Context& context, CUstream stream,
                               bool per_thread) const {
  if (!may_be_green_.load(std::memory_order_acquire)) return false;
  const StreamSlot& slot = slot_of(thread, stream);
  if (remembers(slot, context, stream, per_thread)) return slot.green;
  const RelaxedCapture relaxed(edge_.cuda);
  return flopinj::on_green_context(edge_.cuda, stream, per_thread);
}

StreamId Streams::look_up(const Context& context, CUstream stream, bool per_thread, bool green) {
  const RelaxedCapture relaxed(edge_.cuda);
  uint32_t number = 0;
  // The stream is not checked against the context (null): it may belong to a green context.
  if (edge_.cupti.GetStreamIdEx(nullptr, stream, per_thread ? 1 : 0, &number) != CUPTI_SUCCESS &&
      edge_.cupti.GetStreamIdEx(context.handle, stream, per_thread ? 1 : 0, &number) !=
          CUPTI_SUCCESS)
    return {};
  const MutexLock lock(mutex_);
  const auto known = ids_.find({context.id, number, green});
  if (known != ids_.end()) return known->second;
  if (ids_.size() >= kMost) return {};
  const StreamId id = edge_.collector->add_stream(context.device, context.id, number, green);
  ids_.emplace(std::tuple{context.id, number, green}, id);
  return id;
}

void Streams::green_context_made() { may_be_green_.store(true, std::memory_order_release); }

void Streams::stream_destroying() { epoch_.fetch_add(1, std::memory_order_release); }

}  // namespace flopinj
