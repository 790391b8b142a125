#include <injector/launches.h>
#include <injector/thread_cache.h>

namespace flopinj {
namespace {

// Leaves the window that a launch is in, when an exception keeps its row from being told.
class LeaveWindow {
 public:
  LeaveWindow(Windows& windows, ThreadCache& thread) : windows_(windows), thread_(thread) {}
  ~LeaveWindow() { windows_.leave(thread_); }
  LeaveWindow(const LeaveWindow&) = delete;
  LeaveWindow& operator=(const LeaveWindow&) = delete;

 private:
  Windows& windows_;
  ThreadCache& thread_;
};

// Limits that every GPU has. The driver refuses such a launch before it looks at the parameters, so
// they may well be unreadable.
bool will_be_refused(const LaunchShape& shape) {
  constexpr uint64_t kMostThreads = 1'024;
  const auto& [x, y, z] = shape.block;
  const auto& [gx, gy, gz] = shape.grid;
  return gx == 0 || gy == 0 || gz == 0 || x > kMostThreads || y > kMostThreads ||
         uint64_t{x} * y * z > kMostThreads;
}

}  // namespace

void Launches::enter(ThreadState& thread, ThreadCache& cache, const LaunchFunction& function,
                     const CUpti_CallbackData& data) {
  LaunchInProgress& launch = cache.launch;
  if (launch.depth++ > 0) {
    bump(thread.nested_calls);
    return;
  }
  Modules::call_enter(cache);
  launch.captured = launch.in_window = launch.chosen = launch.device_updatable = false;
  launch.call_began_ns = 0;
  launch.signature = nullptr;
  launch.graph_known = false;
  launch.context = contexts_.find(cache, data.context);
  launch.record = {};
  launch.record.path = thread.ranges.path();
  launch.record.sequence_plus_1 = thread.ranges.sequence_plus_1();
  launch.record.correlation = data.correlationId;

  // The plan comes first: it decides what a new signature wants.
  if (launch.context != nullptr) windows_.await_plan(*launch.context);
  CUgraphExec graph = nullptr;
  if (function.kind != LaunchKind::kMultiDevice) {
    LaunchCall call;
    function.read(data.functionParams, 0, call);
    graph = call.graph;
    if (function.kind == LaunchKind::kKernel)
      launch.signature = signature(thread, cache, call, data.symbolName);
    launch.captured = captures_.any() && captured(call);
    launch.device_updatable = call.device_updatable;
  }
  if (launch.context == nullptr || launch.captured) return;
  launch.graph_known = function.kind == LaunchKind::kGraph && edge_.settings.measure_graphs &&
                       graphs_.look_up(cache, graph, launch.graph);
  windows_.enter(*launch.context, cache, launch.signature,
                 launch.graph_known ? launch.graph.measured : nullptr);
}

const Signature* Launches::signature(ThreadState& thread, ThreadCache& cache,
                                     const LaunchCall& call, const char* symbol) {
  const KernelFunction* function = functions_.find(cache, call.function, symbol);
  if (function != nullptr && !call.parameters_readable)
    function = functions_.without_parameters(*function);
  if (function == nullptr || will_be_refused(call.shape)) return nullptr;
  return edge_.collector->signature(thread, *function, call.shape, call.parameters);
}

// Asked only while some stream of the process is being captured.
bool Launches::captured(const LaunchCall& call) const {
  const bool own = call.stream == nullptr && call.per_thread_stream;
  const CUstream stream = own ? CU_STREAM_PER_THREAD : call.stream;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return edge_.cuda.StreamIsCapturing != nullptr &&
         edge_.cuda.StreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

void Launches::exit(ThreadState& thread, ThreadCache& cache, const LaunchFunction& function,
                    const CUpti_CallbackData& data) {
  LaunchInProgress& launch = cache.launch;
  if (launch.depth == 0 || --launch.depth > 0) return;  // 0: its ENTER was before our time
  const LeaveWindow leave(windows_, cache);
  const bool made = data.functionReturnValue != nullptr &&
                    *static_cast<const CUresult*>(data.functionReturnValue) == CUDA_SUCCESS &&
                    !launch.captured;
  // The driver loaded the kernel's module only now: what it is follows from its code too.
  if (made && function.kind == LaunchKind::kKernel && cache.modules_loaded.count != 0) {
    LaunchCall call;
    function.read(data.functionParams, 0, call);
    functions_.loaded_by_launch(cache, call.function);
    launch.signature = signature(thread, cache, call, data.symbolName);
  }
  if (launch.context != nullptr &&
      windows_.exit(*launch.context, cache,
                    {launch.signature, launch.record.path, launch.record.correlation}, made))
    launch.record.flags |= LaunchRecord::kWindowed;
  if (!made) return;

  const DeviceId device = launch.context != nullptr ? launch.context->device : DeviceId{};
  LaunchRecord record = launch.record;
  if (function.kind == LaunchKind::kMultiDevice)
    return record_devices(thread, cache, function, data, record, device);
  LaunchCall call;
  function.read(data.functionParams, 0, call);
  if (launch.context != nullptr)
    record.stream = streams_.find(cache, *launch.context, call.stream, call.per_thread_stream);
  if (function.kind == LaunchKind::kGraph)
    return record_graph(thread, cache, call.graph, record, device);
  if (launch.signature != nullptr) {
    record.signature = launch.signature->id;
    record.flags |= work_flags(*launch.signature->function);
  }
  edge_.collector->record(thread, device, record);
}

void Launches::record_graph(ThreadState& thread, ThreadCache& cache, CUgraphExec exec,
                            LaunchRecord record, DeviceId device) {
  const LaunchedGraph graph =
      cache.launch.graph_known ? cache.launch.graph : graphs_.launched(cache, exec);
  if (graph.bodies_lost) edge_.collector->count_unseen("conditional_body");
  // Copies only, or unknown: then the ledger says so.
  if (graph.kernels == 0 && !graph.id) return;
  record.graph = graph.id;
  record.flags |= LaunchRecord::kGraph;
  edge_.collector->record(thread, device, record, graph.kernels);
}

// One call, one correlation id, a launch on each device: times cannot be told apart, so only the
// launches are recorded.
void Launches::record_devices(ThreadState& thread, ThreadCache& cache,
                              const LaunchFunction& function, const CUpti_CallbackData& data,
                              LaunchRecord record, DeviceId device) {
  const uint32_t devices = devices_of_launch(data.functionParams);
  record.correlation = 0;
  for (uint32_t i = 0; i < devices; ++i) {
    LaunchCall call;
    function.read(data.functionParams, i, call);
    const Signature* const made = signature(thread, cache, call, nullptr);
    record.signature = made != nullptr ? made->id : SignatureId{};
    edge_.collector->record(thread, device, record);
  }
}

}  // namespace flopinj
