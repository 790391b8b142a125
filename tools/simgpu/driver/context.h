// Contexts, the stack of current contexts each thread has, and their default streams.
#pragma once
#include "driver/runtime.h"

namespace simgpu {

std::shared_ptr<Context> create_context(Device& device, bool primary);
// Ends the context and everything made in it: streams, events, modules.
void destroy_context(const std::shared_ptr<Context>& context);

// The context of a handle; of a green context, the primary one. Null when it is not alive.
std::shared_ptr<Context> find_context(CUcontext handle);
CUgreenCtx green_of(CUcontext handle);  // null for the handle of an ordinary context

// The calling thread's stack.
bool push_context(CUcontext context);  // false: the stack is full
CUcontext pop_context();               // null when empty
void set_context(CUcontext context);   // replaces the top; null pops it
inline CUcontext handle_of(const std::shared_ptr<Context>& context) {
  return HandleTable<CUcontext, Context>::handle_of(context.get());
}
CUcontext current_handle();  // null when none, or when it was destroyed
// CUDA_ERROR_INVALID_CONTEXT when there is none, CUDA_ERROR_CONTEXT_IS_DESTROYED when it has ended.
Found<Context> current_or_failed_context();
// Or its failure, once its work has failed: whatever needs the context is refused from then on.
Found<Context> current_context();

// Retains the primary context and makes nothing current.
CUresult retain_primary(Device& device, CUcontext* context);
CUresult release_primary(Device& device, bool all);

}  // namespace simgpu
