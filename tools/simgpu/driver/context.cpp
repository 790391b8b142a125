#include "driver/context.h"

#include <array>

#include "driver/execution/stream.h"
#include "driver/observer.h"

namespace simgpu {
namespace {

// Handles, not objects: a thread that never comes back must not keep a destroyed context alive.
// Trivially destructible: the driver can be called at exit, when the main thread's other
// thread-local objects are gone.
struct ContextStack {
  std::array<CUcontext, 256> entries;
  size_t depth;
};
thread_local ContextStack context_stack;

}  // namespace

std::shared_ptr<Context> create_context(Device& device, bool primary) {
  Runtime& runtime = Runtime::get();
  auto context = std::make_shared<Context>();
  context->id = runtime.next_id(runtime.context_ids);
  context->device = &device;
  context->primary = primary;
  context->legacy_stream = make_stream(context, Stream::Kind::kLegacyDefault, 0);
  runtime.contexts.insert(context);
  tell(&Observer::context_created, handle_of(context), context->id,
       static_cast<uint32_t>(device.ordinal()));
  return context;
}

void destroy_context(const std::shared_ptr<Context>& context) {
  Runtime& runtime = Runtime::get();
  const CUcontext handle = handle_of(context);
  synchronize_context(*context);
  tell(&Observer::context_destroying, handle, context->id,
       static_cast<uint32_t>(context->device->ordinal()));
  const auto here = [&](const auto& object) { return object.context == context; };
  for (const auto& module : runtime.modules.find_all(here)) {
    for (const auto& [name, function] : module->functions)
      runtime.functions.erase(HandleTable<CUfunction, Function>::handle_of(function.get()));
    runtime.modules.erase(HandleTable<CUmodule, Module>::handle_of(module.get()));
  }
  for (const auto& event : runtime.events.find_all(here))
    runtime.events.erase(HandleTable<CUevent, Event>::handle_of(event.get()));
  for (const auto& stream : runtime.streams.find_all(here))
    runtime.streams.erase(HandleTable<CUstream, Stream>::handle_of(stream.get()));
  runtime.contexts.erase(handle);
  context->heap.clear(*context->device);
  // Streams point back at their context: break the circle.
  const std::lock_guard lock(context->mutex);
  context->per_thread_streams.clear();
  context->legacy_stream.reset();
}

std::shared_ptr<Context> find_context(CUcontext handle) {
  Runtime& runtime = Runtime::get();
  if (auto context = runtime.contexts.find(handle)) return context;
  const auto green = runtime.converted_contexts.find(handle);
  return green ? green->primary : nullptr;
}

CUgreenCtx green_of(CUcontext handle) {
  const auto green = Runtime::get().converted_contexts.find(handle);
  return HandleTable<CUgreenCtx, GreenContext>::handle_of(green.get());
}

bool push_context(CUcontext context) {
  if (context_stack.depth == context_stack.entries.size()) return false;
  context_stack.entries[context_stack.depth++] = context;
  return true;
}

CUcontext pop_context() {
  return context_stack.depth == 0 ? nullptr : context_stack.entries[--context_stack.depth];
}

void set_context(CUcontext context) {
  pop_context();
  if (context != nullptr) push_context(context);
}

CUcontext current_handle() {
  return context_stack.depth == 0 ? nullptr : context_stack.entries[context_stack.depth - 1];
}

Found<Context> current_or_failed_context() {
  const CUcontext handle = current_handle();
  if (handle == nullptr) return {CUDA_ERROR_INVALID_CONTEXT, nullptr};
  auto context = find_context(handle);
  if (!context) return {CUDA_ERROR_CONTEXT_IS_DESTROYED, nullptr};
  return {CUDA_SUCCESS, std::move(context)};
}

Found<Context> current_context() {
  auto context = current_or_failed_context();
  if (!context || context->failure == CUDA_SUCCESS) return context;
  return {context->failure, nullptr};
}

CUresult retain_primary(Device& device, CUcontext* context) {
  Device::Primary& primary = device.primary();
  const std::lock_guard lock(primary.mutex);
  if (!primary.context) primary.context = create_context(device, true);
  ++primary.references;
  *context = handle_of(primary.context);
  return CUDA_SUCCESS;
}

CUresult release_primary(Device& device, bool all) {
  Device::Primary& primary = device.primary();
  std::shared_ptr<Context> ended;
  {
    const std::lock_guard lock(primary.mutex);
    if (!primary.context) return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    primary.references = all ? 0 : primary.references - 1;
    if (primary.references == 0) ended = std::move(primary.context);
  }
  if (ended) destroy_context(ended);
  return CUDA_SUCCESS;
}

}  // namespace simgpu
