#include <injector/launches.h>
#include <injector/process/thread_context.h>

namespace flopinj {
namespace {

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

void Launches::enter(ThreadContext& thread, CallFrame& frame, const LaunchFunction& function,
                     const CUpti_CallbackData& data) {
  if (!frame.outermost) return bump(thread.state->nested_calls);
  thread.modules_loaded.clear();  // a launch may load its kernel's module
  LaunchInProgress& launch = thread.launch;
  launch.reset();
  launch.record.called = host_ticks();
  thread.state->ranges.note(launch.record.called);
  launch.context = contexts_.find(thread, data.context);
  launch.record.path = thread.state->ranges.path();
  launch.record.sequence_plus_1 = thread.state->ranges.sequence_plus_1();
  launch.record.correlation = data.correlationId;

  const KernelFunction* kernel = nullptr;
  if (function.read != nullptr) {
    function.read(data.functionParams, launch.asked);
    launch.asked.per_thread_stream = function.per_thread_stream;
    launch.beside_capture = beside_capture(launch);
    if (function.kind == LaunchKind::kKernel) {
      kernel = this->function(thread, launch.asked, data.symbolName);
      if (choice_.any() && !launch.beside_capture) launch.turn = turn_of(thread, kernel);
    }
  }
  if (is_recorded(launch.turn)) {
    // The plan comes first: it decides what a new signature wants.
    if (launch.context != nullptr) windows_.await_plan(*launch.context, thread);
    launch.signature = signature(thread, launch.asked, kernel);
  }
  launch.waits = function.kind == LaunchKind::kGraph ? graphs_.may_wait(thread, launch.asked.graph)
                                                     : kernel != nullptr && kernel->never_measure;
  if (launch.context != nullptr) {
    if (launch.waits) launch.context->waiting.begin(frame);
    const bool green =
        function.read != nullptr && !launch.beside_capture && on_green_context(thread);
    if (green) windows_.entering_green(*launch.context, thread.calls);
    const bool may_be_measured = !green && !launch.beside_capture;
    windows_.enter(*launch.context, thread, may_be_measured ? launch.signature : nullptr);
  }
}

bool Launches::beside_capture(const LaunchInProgress& launch) {
  if (!captures_.any()) return false;
  if (launch.context != nullptr && captures_.asks_first() &&
      !questions_.capturing(*launch.context, launch.asked.stream, launch.asked.per_thread_stream))
    captures_.seen(false);
  return captures_.any();
}

bool Launches::made_node(const LaunchInProgress& launch, const CallFrame& frame) {
  // Of a kernel wherever it is reported: a capture may be from before the recording.
  const bool made = frame.made_node && (launch.beside_capture || launch.node != nullptr);
  if (launch.beside_capture || made) captures_.seen(made);
  return made;
}

bool Launches::on_green_context(ThreadContext& thread) {
  LaunchInProgress& launch = thread.launch;
  if (!streams_.on_green_context(thread, *launch.context, launch.asked.stream,
                                 launch.asked.per_thread_stream))
    return false;
  launch.record.flags |= LaunchRecord::kGreenContext;
  return true;
}

const KernelFunction* Launches::function(ThreadContext& thread, const LaunchCall& call,
                                         const char* symbol) {
  const KernelFunction* const function = functions_.find(thread, call.function, symbol);
  return function != nullptr && !call.parameters_readable ? functions_.without_parameters(*function)
                                                          : function;
}

// A kernel without a name is none that was chosen by its name.
LaunchTurn Launches::turn_of(ThreadContext& thread, const KernelFunction* kernel) {
  if (choice_.over()) return LaunchTurn::kAfter;
  const bool named = kernel != nullptr ? !kernel->passed_over : edge_.settings.kernel_name.empty();
  return named ? choice_.take(thread.state->ranges) : LaunchTurn::kOther;
}

// Of one call for several kernels, each of which is looked at by name.
LaunchTurn Launches::turn_of_several(ThreadContext& thread) {
  return choice_.any() ? choice_.take(thread.state->ranges) : LaunchTurn::kFree;
}

void Launches::pass_over(ThreadContext& thread, LaunchTurn turn, uint32_t launches) {
  if (turn != LaunchTurn::kAfter) bump(thread.state->passed_over, launches);
}

const Signature* Launches::signature(ThreadContext& thread, const LaunchCall& call,
                                     const KernelFunction* function) {
  if (function == nullptr || will_be_refused(call.shape)) return nullptr;
  return edge_.collector->signature(*thread.state, *function, call.shape, call.parameters);
}

void Launches::exit(ThreadContext& thread, const CallFrame& frame, const LaunchFunction& function,
                    const CUpti_CallbackData& data) {
  if (!frame.outermost) return;
  LaunchInProgress& launch = thread.launch;
  const bool made = succeeded(data) && !made_node(launch, frame);
  if (made && launch.beside_capture && choice_.any() && function.kind == LaunchKind::kKernel)
    launch.turn = turn_of(thread, this->function(thread, launch.asked, data.symbolName));
  if (frame.raised != nullptr && made)
    windows_.wait_made(*launch.context, launch.asked.stream, launch.asked.per_thread_stream);
  // The driver loaded the kernel's module only now: what it is follows from its code too.
  if (succeeded(data) && function.kind == LaunchKind::kKernel && thread.modules_loaded.count != 0) {
    functions_.loaded_for(thread, launch.asked.function);
    if (is_recorded(launch.turn))
      launch.signature =
          signature(thread, launch.asked, this->function(thread, launch.asked, data.symbolName));
    if (launch.node != nullptr && launch.signature != nullptr)
      graphs_.captured_as(launch.node, *launch.signature);
  }
  if (launch.context != nullptr &&
      windows_.exit(*launch.context, thread,
                    {launch.signature, launch.record.path, launch.record.correlation},
                    made ? CUDA_SUCCESS : result_of(data))) {
    launch.record.flags |= LaunchRecord::kWindowed;
    if (launch.window_entered_ns != 0) launch.record.flags |= LaunchRecord::kNotBefore;
    if (launch.record.called == 0) {
      launch.record.called = launch.window_entered_ns;
      launch.record.flags |= LaunchRecord::kCallUntold;
    }
  }
  if (!made) return choice_.failed(launch.turn);
  if (!is_recorded(launch.turn)) return pass_over(thread, launch.turn, 1);

  const DeviceId device = launch.context != nullptr ? launch.context->device : DeviceId{};
  if (function.kind == LaunchKind::kMultiDevice) return record_devices(thread, data, device);
  LaunchRecord& record = launch.record;
  if (launch.context != nullptr)
    record.stream =
        streams_.find(thread, *launch.context, launch.asked.stream, launch.asked.per_thread_stream);
  if (launch.context != nullptr && launch.beside_capture) on_green_context(thread);
  if (function.kind == LaunchKind::kGraph) return record_graph(thread, record, device);
  if (launch.signature != nullptr) {
    record.signature = launch.signature->id;
    record.flags |= work_flags(*launch.signature->function);
  }
  edge_.collector->record(*thread.state, device, record);
  choice_.recorded();
}

void Launches::record_graph(ThreadContext& thread, LaunchRecord record, DeviceId device) {
  const LaunchedGraph graph = graphs_.launched(thread, thread.launch.asked.graph);
  if (graph.bodies_lost) edge_.collector->count_unseen("conditional_body");
  if (choice_.over()) return;
  if (graph.passed_over != 0) pass_over(thread, LaunchTurn::kOther, graph.passed_over);
  // Copies only, or unknown: then the ledger says so.
  if (graph.kernels == 0 && !graph.id) return;
  if (const LaunchTurn turn = turn_of_several(thread); !is_recorded(turn))
    return pass_over(thread, turn, graph.kernels);
  record.graph = graph.id;
  if (!graph.timed) record.correlation = 0;
  record.flags |= LaunchRecord::kGraph;
  edge_.collector->record(*thread.state, device, record, graph.kernels);
  choice_.recorded();
}

// One call, one correlation id, a launch on each device: times cannot be kept apart, so only the
// launches are recorded.
void Launches::record_devices(ThreadContext& thread, const CUpti_CallbackData& data,
                              DeviceId device) {
  LaunchRecord record = thread.launch.record;
  record.correlation = 0;
  const uint32_t devices = devices_of_launch(data.functionParams);
  if (const LaunchTurn turn = turn_of_several(thread); !is_recorded(turn))
    return pass_over(thread, turn, devices);
  for (uint32_t i = 0; i < devices; ++i) {
    LaunchCall call;
    read_device_launch(data.functionParams, i, call);
    const KernelFunction* const kernel = function(thread, call, nullptr);
    if (kernel != nullptr && kernel->passed_over) {
      pass_over(thread, LaunchTurn::kOther, 1);
      continue;
    }
    const Signature* const made = signature(thread, call, kernel);
    record.signature = made != nullptr ? made->id : SignatureId{};
    edge_.collector->record(*thread.state, device, record);
  }
  choice_.recorded();
}

}  // namespace flopinj
