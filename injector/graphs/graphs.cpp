#include <injector/graphs/graphs.h>

#include <algorithm>

namespace flopinj {

namespace {

// Its work may wait for the host or for another device, as a collective among the kernels may.
bool may_wait_for_others(CUgraphNodeType type) {
  return type == CU_GRAPH_NODE_TYPE_HOST || type == CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT ||
         type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
}

void sign(NodeKernel& kernel, const Signature& signature) {
  kernel.signature = signature.id;
  kernel.flags = work_flags(*signature.function);
  kernel.passed_over = signature.function->passed_over;
}

}  // namespace

void Graphs::report(const char* code, std::string_view message) {
  edge_.collector->diagnostic(Severity::kWarning, code, message);
}

// --- calls -------------------------------------------------------------------------------------

void Graphs::call_enter(ThreadContext& thread, CallFrame& frame, const GraphFunction& function) {
  if (!frame.outermost) return;
  thread.graph_call.makes_exec =
      function.action == GraphAction::kInstantiate || function.action == GraphAction::kUpdate;
  thread.graph_call.conditional = thread.graph_call.waits = false;
  thread.graph_call.clones.clear();
  thread.graph_call.graphs.clear();
  thread.modules_loaded.clear();  // a kernel of a node may have its module loaded
  if (function.action == GraphAction::kBeginCapture) captures_.beginning(frame);
}

void Graphs::call_exit(ThreadContext& thread, CallFrame* frame, const GraphFunction& function,
                       const CUpti_CallbackData& data) {
  const CUresult result = data.functionReturnValue == nullptr
                              ? CUDA_ERROR_UNKNOWN
                              : *static_cast<const CUresult*>(data.functionReturnValue);
  GraphCall call{};
  call.action = function.action;
  call.relevant = true;
  if (call.action == GraphAction::kEndCapture) {
    function.read(data.functionParams, call);
    // A capture that was invalidated ends here too.
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
        result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED || result == CUDA_ERROR_ILLEGAL_STATE)
      captures_.ended(data.context, call.stream);
    return;
  }
  if (result != CUDA_SUCCESS || frame == nullptr || !frame->outermost) return;
  function.read(data.functionParams, call);
  if (!call.relevant) return;
  switch (call.action) {
    case GraphAction::kBeginCapture:
      if (!captures_.begun(*frame, data.context, call.stream))
        report("counters.capture_lost",
               "more streams are under capture than can be followed: nothing is measured any more");
      return;
    case GraphAction::kAddKernel:
    case GraphAction::kSetKernel: {
      if (call.action == GraphAction::kSetKernel) keep_cluster(call);
      const NodeKernel kernel = kernel_of(thread, call);
      const MutexLock lock(mutex_);
      return put(call.graph, call.node, kernel);
    }
    case GraphAction::kAddChild:
      return add_child(thread, call);
    case GraphAction::kAddConditional: {
      const MutexLock lock(mutex_);
      return nodes_.add_conditional(call.graph, call.node,
                                    {call.bodies.begin(), call.bodies.end()});
    }
    case GraphAction::kInstantiate:
      return instantiate(thread, call);
    case GraphAction::kSetAttribute:
      return set_attribute(call);
    case GraphAction::kTell: {
      const MutexLock lock(mutex_);
      if (const NodeKernel* const kernel = nodes_.find(call.node))
        functions_.same_kernel(call.kernel_call.function, kernel->handle);
      return;
    }
    case GraphAction::kSetExecKernel:
      keep_cluster(call);
      return change_exec(call, kernel_of(thread, call));
    case GraphAction::kSetExecChild:
    case GraphAction::kEnable:
    case GraphAction::kUpdate:
      return change_exec(call, {});
    case GraphAction::kEndCapture:
      return;
  }
}

NodeKernel Graphs::kernel_of(ThreadContext& thread, const GraphCall& call) {
  NodeKernel kernel;
  kernel.passed_over = !edge_.settings.kernel_name.empty();
  kernel.path = thread.state->ranges.path();
  kernel.sequence_plus_1 = thread.state->ranges.sequence_plus_1();
  CUfunction handle = call.kernel_call.function;
  if (handle == nullptr) handle = reinterpret_cast<CUfunction>(call.kernel);
  kernel.handle = handle;
  functions_.loaded_for(thread, handle);
  const KernelFunction* const function = functions_.find(thread, handle, nullptr);
  const Signature* signature = nullptr;
  if (function != nullptr)
    signature = edge_.collector->signature(*thread.state, *function, call.kernel_call.shape,
                                           call.kernel_call.parameters);
  if (signature != nullptr) {
    sign(kernel, *signature);
    kernel.waits = signature->function->never_measure;
    if (kernel.waits) may_wait_.store(true, std::memory_order_relaxed);
  } else {
    kernel.waits = true;
    report(
        "graph.unnamed_kernel",
        "no call was seen that tells the name of a kernel added to a graph by hand; its launches "
        "have no count");
  }
  return kernel;
}

void Graphs::add_child(ThreadContext& thread, const GraphCall& call) {
  const MutexLock lock(mutex_);
  ChildGraph child;
  child.node = call.node;
  if (!thread.graph_call.graphs.empty())
    child.copy = thread.graph_call.graphs.front();  // CUPTI reports the outermost copy first
  else
    child.contents = nodes_.flatten(call.other);
  if (nodes_.waits(call.other)) nodes_.add_waiting(call.graph);
  nodes_.add_child(call.graph, std::move(child));
}

void Graphs::captured_as(CUgraphNode node, const Signature& signature) {
  const MutexLock lock(mutex_);
  if (NodeKernel* const kernel = nodes_.find(node)) sign(*kernel, signature);
}

// Steps: the graph's kernel nodes as we know them; for each, the copy that CUPTI reported during
// this call, for its id; and the copies of nodes that we did not know.
void Graphs::instantiate(ThreadContext& thread, const GraphCall& call) {
  if (call.for_device) {
    edge_.collector->count_unseen("graph_for_device");
    report("graph.for_device",
           "a graph was made to be launched by kernels: such launches are in no count; those from "
           "the host are");
  }
  std::vector<SourceNode> source;
  ExecutableGraph exec;
  exec.waits = thread.graph_call.waits;
  {
    const MutexLock lock(mutex_);
    source = nodes_.flatten(call.graph);
    exec.waits = exec.waits || nodes_.waits(call.graph);
  }
  // A copy may be copied again: the last one is what runs, the first original is what we know.
  std::unordered_map<CUgraphNode, CUgraphNode> origin_of;  // copy -> first original
  std::unordered_map<CUgraphNode, CUgraphNode> runs_as;    // first original -> last copy
  std::vector<CUgraphNode> origins;                        // in the order of CUPTI's reports
  for (const auto& [copy, original] : thread.graph_call.clones) {
    const auto before = origin_of.find(original);
    const CUgraphNode origin = before != origin_of.end() ? before->second : original;
    origin_of[copy] = origin;
    if (runs_as.insert_or_assign(origin, copy).second) origins.push_back(origin);
  }

  for (const SourceNode& node : source) {
    const auto copy = runs_as.find(node.node);
    exec.nodes.push_back({node.node, node.kernel,
                          id_of(copy != runs_as.end() ? copy->second : node.node), true,
                          node.conditional});
    if (copy != runs_as.end()) runs_as.erase(copy);
  }
  // A node that we did not see made may be in a body: then its records say how often it ran.
  const bool conditional = thread.graph_call.conditional ||
                           std::ranges::any_of(source, [](auto& node) { return node.conditional; });
  for (const CUgraphNode origin : origins) {
    const auto copy = runs_as.find(origin);
    if (copy == runs_as.end()) continue;
    const std::optional<NodeKernel> kernel = kernel_of(origin);
    exec.waits = exec.waits || !kernel;
    exec.nodes.push_back(
        {origin, kernel.value_or(NodeKernel{}), id_of(copy->second), true, conditional});
  }

  const MutexLock lock(mutex_);
  if (!nodes_.put_executable(call.exec, std::move(exec)))
    return report("graph.too_many",
                  "more executable graphs than can be followed; launches of the "
                  "rest are not counted");
  epoch_.fetch_add(1, std::memory_order_release);
}

std::optional<NodeKernel> Graphs::kernel_of(CUgraphNode node) {
  {
    const MutexLock lock(mutex_);
    if (const NodeKernel* const known = nodes_.find(node)) return *known;
  }
  report("graph.unknown_node",
         "a graph holds a kernel node that was made before profiling began; its launches have no "
         "count");
  return std::nullopt;
}

void Graphs::change_exec(const GraphCall& call, const NodeKernel& kernel) {
  const MutexLock lock(mutex_);
  ExecutableGraph* const exec = nodes_.executable(call.exec);
  if (exec == nullptr) return;  // reported when it is launched
  exec->changed = true;
  epoch_.fetch_add(1, std::memory_order_release);

  if (call.action == GraphAction::kUpdate || call.action == GraphAction::kSetExecChild) {
    std::vector<SourceNode> places;
    if (call.action == GraphAction::kSetExecChild)
      places = nodes_.contents_of_child(call.node);
    else
      for (const ExecNode& node : exec->nodes)
        places.push_back({node.origin, node.kernel, node.conditional});
    if (exec->update(places, nodes_.flatten(call.other))) return;
    exec->waits = true;
    return report("graph.update",
                  "an executable graph was updated from a graph whose nodes are not all known; its "
                  "launches may be counted with former parameters");
  }
  ExecNode* const node = exec->find(call.node);
  if (node == nullptr) {
    exec->waits = true;
    return report("graph.unknown_node",
                  "an unknown kernel node of an executable graph was changed; launches of that "
                  "graph may be counted with its former parameters");
  }
  if (call.action == GraphAction::kEnable) {
    node->enabled = call.enabled;
  } else {
    node->kernel.run(kernel);
  }
}

void Graphs::put(CUgraph graph, CUgraphNode node, const NodeKernel& kernel) {
  if (!nodes_.put(graph, node, kernel))
    report("graph.too_many",
           "more graph nodes than can be followed; launches of the rest are not counted");
}

bool Graphs::may_wait(ThreadContext& thread, CUgraphExec handle) {
  if (!may_wait_.load(std::memory_order_relaxed)) return false;
  const LaunchedGraph* const graph = known(thread, handle);
  return graph == nullptr || graph->waits;
}

LaunchedGraph Graphs::launched(ThreadContext& thread, CUgraphExec handle) {
  if (const LaunchedGraph* const graph = known(thread, handle)) return *graph;
  report("graph.unknown",
         "a graph was launched that was instantiated before profiling began; its kernels are not "
         "counted");
  edge_.collector->count_unseen("graph_before_recording");
  return {};
}

const LaunchedGraph* Graphs::known(ThreadContext& thread, CUgraphExec handle) {
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  const auto place = reinterpret_cast<uintptr_t>(handle);
  GraphSlot& slot = thread.graphs[(place >> 4 ^ place >> 12) % thread.graphs.size()];
  if (slot.exec == handle && slot.epoch == epoch) return &slot.graph;

  const MutexLock lock(mutex_);
  ExecutableGraph* const executable = nodes_.executable(handle);
  if (executable == nullptr) return nullptr;
  ExecutableGraph& exec = *executable;
  if (exec.changed) {
    std::vector<GraphNode> nodes;
    const auto wanted = [](const ExecNode& n) { return n.enabled && !n.kernel.passed_over; };
    const auto left_out = [](const ExecNode& n) {
      return n.enabled && n.kernel.passed_over && !n.conditional;
    };
    exec.launched.passed_over = static_cast<uint32_t>(std::ranges::count_if(exec.nodes, left_out));
    for (const bool conditional : {false, true}) {
      for (const ExecNode& node : exec.nodes)
        if (wanted(node) && node.conditional == conditional)
          nodes.push_back({node.kernel.signature, node.kernel.path, node.kernel.sequence_plus_1,
                           node.id, node.kernel.flags, conditional});
      if (!conditional) exec.launched.kernels = static_cast<uint32_t>(nodes.size());
    }
    // A node without an id has the times of all that have none: no time may be its own then.
    exec.launched.timed =
        exec.launched.passed_over == 0 ||
        std::ranges::all_of(nodes, [](const GraphNode& n) { return n.node != 0; });
    const bool bodies = nodes.size() > exec.launched.kernels;
    exec.launched.id = nodes.empty() ? GraphId{} : edge_.collector->add_graph(std::move(nodes));
    exec.launched.bodies_lost = bodies && !exec.launched.id;
    exec.launched.waits = exec.waits || std::ranges::any_of(exec.nodes, [](const ExecNode& n) {
                            return n.kernel.waits;
                          });
    exec.changed = false;
  }
  slot = {handle, exec.launched, epoch};
  return &slot.graph;
}

uint64_t Graphs::id_of(CUgraphNode node) const {
  uint64_t id = 0;
  if (edge_.cupti.GetGraphNodeId == nullptr ||
      edge_.cupti.GetGraphNodeId(node, &id) != CUPTI_SUCCESS)
    return 0;
  return id;
}

// --- what CUPTI reports ------------------------------------------------------------------------

void Graphs::resource(ThreadContext& thread, CUpti_CallbackIdResource id,
                      const CUpti_GraphData& data) {
  GraphCallInProgress& call = thread.graph_call;
  const bool kernel = data.nodeType == CU_GRAPH_NODE_TYPE_KERNEL;
  switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
      thread.calls.made_node();
      if (data.nodeType == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        report("graph.conditional",
               "a graph has conditional nodes: how often their bodies run is decided on the GPU; "
               "kernels in them are counted by CUPTI's records of them, where times are recorded");
      if (may_wait_for_others(data.nodeType)) {
        may_wait_.store(true, std::memory_order_relaxed);
        const MutexLock lock(mutex_);
        nodes_.add_waiting(data.graph);
      }
      if (!kernel) return;
      if (thread.calls.inside(CallKind::kLaunch)) {  // a launch under capture
        const LaunchInProgress& launch = thread.launch;
        if (launch.waits) may_wait_.store(true, std::memory_order_relaxed);
        if (launch.asked.device_updatable) {
          edge_.collector->count_unseen("device_updatable_node");
          report("graph.device_updatable",
                 "a graph holds a kernel node that kernels may change, switch off or on: it is "
                 "counted as it was captured");
        }
        NodeKernel captured{{}, launch.record.path, launch.record.sequence_plus_1};
        captured.handle = launch.asked.function;
        captured.passed_over = !edge_.settings.kernel_name.empty();
        captured.waits = launch.waits;
        if (launch.signature != nullptr) sign(captured, *launch.signature);
        thread.launch.node = data.node;
        const MutexLock lock(mutex_);
        put(data.graph, data.node, captured);
      }
      return;  // by hand: known at the EXIT of that call
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED: {
      call.conditional |= data.nodeType == CU_GRAPH_NODE_TYPE_CONDITIONAL;
      const bool waits = may_wait_for_others(data.nodeType);
      if (waits) may_wait_.store(true, std::memory_order_relaxed);
      if (!kernel && !waits) return;
      if (thread.calls.inside(CallKind::kGraph) && call.makes_exec) {
        call.waits |= waits;
        if (kernel) call.clones.push_back({data.node, data.originalNode});
        return;
      }
      const MutexLock lock(mutex_);
      if (waits) return nodes_.add_waiting(data.graph);
      if (const NodeKernel* const original = nodes_.find(data.originalNode))
        put(data.graph, data.node, NodeKernel{*original});
      return;
    }
    case CUPTI_CBID_RESOURCE_GRAPH_CLONED:
      if (thread.calls.inside(CallKind::kGraph)) call.graphs.push_back(data.graph);
      if (captures_.any()) thread.calls.made_node();  // a graph that is launched under capture
      return;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING: {
      const MutexLock lock(mutex_);
      return nodes_.drop_node(data.node, data.nodeType == CU_GRAPH_NODE_TYPE_GRAPH ||
                                             data.nodeType == CU_GRAPH_NODE_TYPE_CONDITIONAL);
    }
    case CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING: {
      const MutexLock lock(mutex_);
      return nodes_.drop_graph(data.graph);
    }
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING: {
      const MutexLock lock(mutex_);
      if (nodes_.drop_executable(data.graphExec)) epoch_.fetch_add(1, std::memory_order_release);
      return;
    }
    default:
      return;
  }
}

}  // namespace flopinj
