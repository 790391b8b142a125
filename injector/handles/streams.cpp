#include <injector/handles/streams.h>
#include <injector/process/thread_context.h>
#include <injector/vendor/relaxed_capture.h>

namespace flopinj {

StreamId Streams::find(ThreadContext& thread, const Context& context, CUstream stream,
                       bool per_thread) {
  const uint32_t epoch = epoch_.load(std::memory_order_acquire);
  const size_t slot_number =
      (reinterpret_cast<uintptr_t>(stream) >> 4 ^ reinterpret_cast<uintptr_t>(stream) >> 12) %
      thread.streams.size();
  StreamSlot& slot = thread.streams[slot_number];
  if (slot.context == &context && slot.stream == stream && slot.per_thread == per_thread &&
      slot.epoch == epoch)
    return slot.id;
  const StreamId id = look_up(context, stream, per_thread);
  slot = {&context, stream, id, epoch, per_thread};
  return id;
}

StreamId Streams::look_up(const Context& context, CUstream stream, bool per_thread) {
  const RelaxedCapture relaxed(edge_.cuda);
  uint32_t number = 0;
  // The stream is not checked against the context (null): it may belong to a green context.
  if (edge_.cupti.GetStreamIdEx(nullptr, stream, per_thread ? 1 : 0, &number) != CUPTI_SUCCESS &&
      edge_.cupti.GetStreamIdEx(context.handle, stream, per_thread ? 1 : 0, &number) !=
          CUPTI_SUCCESS)
    return {};
  const MutexLock lock(mutex_);
  const auto known = ids_.find({context.id, number});
  if (known != ids_.end()) return known->second;
  if (ids_.size() >= kMost) return {};
  const StreamId id = edge_.collector->add_stream(context.device, context.id, number);
  ids_.emplace(std::pair{context.id, number}, id);
  return id;
}

void Streams::stream_destroying() { epoch_.fetch_add(1, std::memory_order_release); }

}  // namespace flopinj
