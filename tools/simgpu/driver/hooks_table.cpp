#include "driver/hooks_table.h"

#include "driver/context.h"
#include "driver/execution/clock.h"
#include "driver/execution/stream.h"
#include "driver/graphs/capture.h"
#include "driver/graphs/graph_exec.h"
#include "driver/observer.h"
#include "driver/settings.h"

namespace simgpu {
namespace {

uint32_t stream_id(CUcontext context_handle, CUstream handle) {
  if (handle != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
    const auto stream = Runtime::get().streams.find(handle);
    return stream ? stream->id : 0;
  }
  const auto context = find_context(context_handle != nullptr ? context_handle : current_handle());
  if (!context) return 0;
  const std::lock_guard lock(context->mutex);
  if (handle != CU_STREAM_PER_THREAD)
    return context->legacy_stream ? context->legacy_stream->id : 0;
  const auto it = context->per_thread_streams.find(std::this_thread::get_id());
  return it != context->per_thread_streams.end() ? it->second->id : 0;
}

constexpr Driver kTable = {
    .abi_version = kAbiVersion,
    .set_observer = &set_observer,
    .set_session =
        [](CUcontext handle, const Session& session) {
          if (const auto context = find_context(handle)) context->session = session;
        },
    .timestamp_ns = &now_ns,
    .spend_ns = &spend_ns,
    .driver_version = &driver_version,
    .device_count = [] { return Runtime::get().device_count(); },
    .chip_name = [](int ordinal) -> const char* {
      const Device* device = Runtime::get().device(ordinal);
      return device != nullptr ? device->chip().cupti_name : nullptr;
    },
    .current_context = &current_handle,
    .context_id = [](CUcontext handle) -> uint32_t {
      if (const auto green = Runtime::get().converted_contexts.find(handle)) return green->id;
      const auto context = find_context(handle);
      return context ? context->id : 0;
    },
    .device_of_context = [](CUcontext handle) -> uint32_t {
      const auto context = find_context(handle);
      return context ? static_cast<uint32_t>(context->device->ordinal()) : 0;
    },
    .stream_id = &stream_id,
    .graph_node_id = [](CUgraphNode handle) -> uint64_t {
      const auto node = Runtime::get().nodes.find(handle);
      return node ? node->id : 0;
    },
    .synchronize_for_tool = [](CUcontext handle) -> CUresult {
      const auto context = find_context(handle);
      if (!context) return CUDA_ERROR_INVALID_CONTEXT;
      const CUresult here = refuse_in_context_capture(*context);
      const CUresult anywhere = refuse_unsafe_call();
      drain(*context);
      return here != CUDA_SUCCESS ? here : anywhere;
    },
};

}  // namespace

const Driver* hooks_table() { return &kTable; }

}  // namespace simgpu
