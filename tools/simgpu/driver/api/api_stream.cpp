// Streams and their capture.
#include <algorithm>

#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/execution/clock.h"
#include "driver/execution/patience.h"
#include "driver/execution/stream.h"
#include "driver/graphs/capture.h"
#include "driver/observer.h"

namespace simgpu::api {
namespace {

// Any call that only asks about a stream.
template <class T, class Read>
CUresult ask(CUstream handle, T* out, Read read) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(handle);
  if (!stream) return stream.error;
  *out = read(*stream.object);
  return CUDA_SUCCESS;
}

CUresult create(CUstream* phStream, unsigned int Flags, int priority) {
  if (phStream == nullptr || (Flags & ~static_cast<unsigned int>(CU_STREAM_NON_BLOCKING)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_context();
  if (!context) return context.error;
  const auto stream = make_stream(context.object, Stream::Kind::kCreated, Flags);
  stream->priority = priority;
  stream->green = green_of(current_handle());
  *phStream = Runtime::get().streams.insert(stream);
  tell(&Observer::stream_created, handle_of(context.object), *phStream, stream->id);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return create(phStream, Flags, Stream::kLeastPriority);
}

// One kernel runs at a time: a priority is kept, and changes nothing.
CUresult cuCtxGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  const auto context = current_context();
  if (!context) return context.error;
  if (leastPriority != nullptr) *leastPriority = Stream::kLeastPriority;
  if (greatestPriority != nullptr) *greatestPriority = Stream::kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  return create(phStream, flags,
                std::clamp(priority, Stream::kGreatestPriority, Stream::kLeastPriority));
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  return ask(hStream, priority, [](const Stream& stream) { return stream.priority; });
}

CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  return ask(hStream, flags, [](const Stream& stream) { return stream.flags; });
}

CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return ask(hStream, streamId, [](const Stream& stream) { return stream.id; });
}

CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return ask(hStream, pctx, [](const Stream& stream) { return handle_of(stream.context); });
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  const auto stream = Runtime::get().streams.find(hStream);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  refuse_in_capture(*stream);  // a capture cannot outlive a stream of its
  CUgraph none = nullptr;
  end_capture(*stream, &none);  // if it began on this one
  tell(&Observer::stream_destroying, handle_of(stream->context), hStream, stream->id);
  {
    const std::lock_guard lock(stream->context->mutex);
    auto& destroyed = stream->context->destroyed_streams;
    std::erase_if(destroyed, [](const Mark& mark) { return mark.reached(); });
    if (const Mark last = newest(*stream); !last.reached()) destroyed.push_back(last);
  }
  Runtime::get().streams.erase(hStream);
  return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  if ((Flags & ~static_cast<unsigned int>(CU_EVENT_WAIT_EXTERNAL)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto event = Runtime::get().events.find(hEvent);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  const auto stream = resolve_stream(hStream);
  return stream ? wait_event(stream.object, event) : stream.error;
}

CUresult cuStreamQuery(CUstream hStream) {
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  return is_idle(*stream.object) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream hStream) {
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  const CUresult failure = synchronize(*stream.object);
  tell(&Observer::synchronized, handle_of(stream->context), hStream);
  return failure;
}

// Host functions are work of the stream. Where that is done at once, it is on the calling thread.
CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  return stream ? submit(stream.object, HostWork{fn, userData}) : stream.error;
}

// Of the conditions equality and "at least" (by the signed difference, as the manual has it).
CUresult cuStreamWaitValue32_v2(CUstream hStream, CUdeviceptr addr, cuuint32_t value,
                                unsigned int flags) {
  if (addr == 0 || flags > CU_STREAM_WAIT_VALUE_EQ) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  return give(stream.object, [=] {
    const auto* const word = reinterpret_cast<const uint32_t*>(addr);
    const auto met = [&] {
      const uint32_t now = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      return flags == CU_STREAM_WAIT_VALUE_EQ ? now == value
                                              : static_cast<int32_t>(now - value) >= 0;
    };
    const Patience patience;
    while (!met()) patience.rest();
    place(*stream.object, 0, now_ns());
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamWriteValue32_v2(CUstream hStream, CUdeviceptr addr, cuuint32_t value,
                                 unsigned int flags) {
  if (addr == 0 || flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  return give(stream.object, [=] {
    __atomic_store_n(reinterpret_cast<uint32_t*>(addr), value, __ATOMIC_RELEASE);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  return give(stream.object, [=] {
    callback(hStream, CUDA_SUCCESS, userData);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                     const CUgraphNode* dependencies,
                                     const CUgraphEdgeData* dependencyData, size_t numDependencies,
                                     CUstreamCaptureMode mode) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED ||
      (numDependencies > 0 && dependencies == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  if (dependencyData != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // whole kernels only
  const auto graph = Runtime::get().graphs.find(hGraph);
  const auto stream = resolve_stream(hStream);
  if (!graph || !stream) return CUDA_ERROR_INVALID_VALUE;
  std::vector<GraphNode*> behind;
  for (size_t i = 0; i < numDependencies; ++i) {
    const auto node = Runtime::get().nodes.find(dependencies[i]);
    if (!node || node->graph != graph.get()) return CUDA_ERROR_INVALID_VALUE;
    behind.push_back(node.get());
  }
  return begin_capture(stream.object, mode, graph, behind);
}

CUresult cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode) {
  if (mode < CU_STREAM_CAPTURE_MODE_GLOBAL || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  return stream ? begin_capture(stream.object, mode) : stream.error;
}

CUresult cuStreamEndCapture(CUstream hStream, CUgraph* phGraph) {
  if (phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  return stream ? end_capture(*stream.object, phGraph) : stream.error;
}

CUresult cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus* captureStatus) {
  return ask(hStream, captureStatus, [](Stream& s) { return capture_state(s).status; });
}

// Without edges' data: only the order of whole kernels is simulated.
CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
  if (captureStatus_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  const CaptureState state = capture_state(*stream.object);
  *captureStatus_out = state.status;
  if (state.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id_out != nullptr) *id_out = state.id;
  if (graph_out != nullptr) *graph_out = state.graph;
  if (dependencies_out != nullptr) *dependencies_out = state.behind.data();
  if (edgeData_out != nullptr) *edgeData_out = nullptr;
  if (numDependencies_out != nullptr) *numDependencies_out = state.behind.size();
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   size_t* numDependencies_out) {
  return api::cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
                                        dependencies_out, nullptr, numDependencies_out);
}

CUresult cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode* dependencies,
                                              const CUgraphEdgeData* dependencyData,
                                              size_t numDependencies, unsigned int flags) {
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES ||
      (numDependencies > 0 && dependencies == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  if (dependencyData != nullptr) return CUDA_ERROR_NOT_SUPPORTED;  // whole kernels only
  const auto stream = resolve_stream(hStream);
  return stream ? put_behind(*stream.object, {dependencies, numDependencies},
                             flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
                : stream.error;
}
CUresult cuStreamUpdateCaptureDependencies(CUstream hStream, CUgraphNode* dependencies,
                                           size_t numDependencies, unsigned int flags) {
  return api::cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, nullptr, numDependencies,
                                                   flags);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
      *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  *mode = exchange_thread_mode(*mode);
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
