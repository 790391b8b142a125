// Streams and their capture.
#include <algorithm>

#include "driver/api.h"
#include "driver/capture.h"
#include "driver/context.h"
#include "driver/observer.h"
#include "driver/stream.h"

namespace simgpu::api {
namespace {

CUcontext handle_of(const std::shared_ptr<Context>& context) {
  return HandleTable<CUcontext, Context>::handle_of(context.get());
}

// Any call that only asks about a stream.
template <class T, class Read>
CUresult ask(CUstream handle, T* out, Read read) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(handle);
  if (!stream) return stream.error;
  *out = read(*stream.object);
  return CUDA_SUCCESS;
}

CUstreamCaptureStatus status_of(const std::shared_ptr<Capture>& capture) {
  if (!capture) return CU_STREAM_CAPTURE_STATUS_NONE;
  const std::lock_guard lock(capture->mutex);
  return capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                              : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* phStream, unsigned int flags, int priority) {
  if (phStream == nullptr || (flags & ~static_cast<unsigned int>(CU_STREAM_NON_BLOCKING)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_context();
  if (!context) return context.error;
  int least = 0, greatest = 0;
  api::cuCtxGetStreamPriorityRange(&least, &greatest);
  const auto stream = make_stream(context.object, Stream::Kind::kCreated, flags,
                                  std::clamp(priority, greatest, least));
  *phStream = Runtime::get().streams.insert(stream);
  notify([&](const Observer& o) {
    if (o.stream_created)
      o.stream_created(o.self, handle_of(context.object), *phStream, stream->id);
  });
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* phStream, unsigned int Flags) {
  return api::cuStreamCreateWithPriority(phStream, Flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream hStream) {
  const auto stream = Runtime::get().streams.find(hStream);
  if (!stream) return CUDA_ERROR_INVALID_HANDLE;
  refuse_in_capture(*stream);  // a capture cannot outlive a stream of its
  CUgraph none = nullptr;
  end_capture(*stream, &none);  // if it began on this one
  notify([&](const Observer& o) {
    if (o.stream_destroying)
      o.stream_destroying(o.self, handle_of(stream->context), hStream, stream->id);
  });
  Runtime::get().streams.erase(hStream);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetPriority(CUstream hStream, int* priority) {
  return ask(hStream, priority, [](const Stream& s) { return s.priority; });
}
CUresult cuStreamGetFlags(CUstream hStream, unsigned int* flags) {
  return ask(hStream, flags, [](const Stream& s) { return s.flags; });
}
CUresult cuStreamGetId(CUstream hStream, unsigned long long* streamId) {
  return ask(hStream, streamId,
             [](const Stream& s) { return static_cast<unsigned long long>(s.id); });
}
CUresult cuStreamGetCtx(CUstream hStream, CUcontext* pctx) {
  return ask(hStream, pctx, [](const Stream& s) { return handle_of(s.context); });
}
#if CUDA_VERSION >= 12080
CUresult cuStreamGetDevice(CUstream hStream, CUdevice* device) {
  return ask(hStream, device, [](const Stream& s) { return s.context->device->ordinal(); });
}
#endif

CUresult cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags) {
  if ((Flags & ~static_cast<unsigned int>(CU_EVENT_WAIT_EXTERNAL)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto event = Runtime::get().events.find(hEvent);
  if (!event) return CUDA_ERROR_INVALID_HANDLE;
  const auto stream = resolve_stream(hStream);
  return stream ? wait_event(stream.object, *event) : stream.error;
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
  synchronize(*stream.object);
  notify([&](const Observer& o) {
    if (o.synchronized) o.synchronized(o.self, handle_of(stream->context), hStream);
  });
  return CUDA_SUCCESS;
}

// Host functions run at once, on the calling thread: all earlier work is done by then.
CUresult cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void* userData) {
  if (fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  return stream ? submit(stream.object, HostWork{fn, userData}) : stream.error;
}

CUresult cuStreamAddCallback(CUstream hStream, CUstreamCallback callback, void* userData,
                             unsigned int flags) {
  if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (const CUresult error = refuse_in_capture(*stream.object); error != CUDA_SUCCESS) return error;
  callback(hStream, CUDA_SUCCESS, userData);
  return CUDA_SUCCESS;
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
  return ask(hStream, captureStatus, [](Stream& s) { return status_of(capture_of(s)); });
}

CUresult cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   const CUgraphEdgeData** edgeData_out,
                                   size_t* numDependencies_out) {
  if (captureStatus_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  const auto capture = capture_of(*stream.object);
  *captureStatus_out = status_of(capture);
  if (*captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id_out != nullptr) *id_out = capture->id;
  if (graph_out != nullptr) *graph_out = simgpu::handle_of(*capture->graph);
  if (edgeData_out != nullptr) *edgeData_out = nullptr;
  // The list stays valid until the thread's next call, as the manual allows.
  thread_local std::vector<CUgraphNode> dependencies;
  const std::lock_guard lock(capture->mutex);
  dependencies.clear();
  for (const GraphNode* node : capture->tails[stream.object.get()])
    dependencies.push_back(simgpu::handle_of(*node));
  if (dependencies_out != nullptr) *dependencies_out = dependencies.data();
  if (numDependencies_out != nullptr) *numDependencies_out = dependencies.size();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus* captureStatus_out,
                                   cuuint64_t* id_out, CUgraph* graph_out,
                                   const CUgraphNode** dependencies_out,
                                   size_t* numDependencies_out) {
  return api::cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
                                        dependencies_out, nullptr, numDependencies_out);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
      *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_ERROR_INVALID_VALUE;
  *mode = exchange_thread_mode(*mode);
  return CUDA_SUCCESS;
}

}  // namespace simgpu::api
