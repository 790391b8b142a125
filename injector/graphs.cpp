#include <injector/graphs.h>

#include <algorithm>

namespace flopinj {

void Graphs::report(const char* code, std::string_view message) {
  edge_.collector->diagnostic(Severity::kWarning, code, message);
}

// --- calls -------------------------------------------------------------------------------------

void Graphs::call_enter(ThreadCache& cache, const GraphFunction& function) {
  if (cache.graph_call.depth++ > 0) return;
  cache.graph_call.makes_exec =
      function.action == GraphAction::kInstantiate || function.action == GraphAction::kUpdate;
  cache.graph_call.conditional = false;
  cache.graph_call.clones.clear();
  cache.graph_call.graphs.clear();
  if (function.action == GraphAction::kBeginCapture) captures_.beginning();
}

void Graphs::call_exit(ThreadState& thread, ThreadCache& cache, const GraphFunction& function,
                       const CUpti_CallbackData& data) {
  if (cache.graph_call.depth == 0 || --cache.graph_call.depth > 0) return;
  const CUresult result = data.functionReturnValue == nullptr
                              ? CUDA_ERROR_UNKNOWN
                              : *static_cast<const CUresult*>(data.functionReturnValue);
  GraphCall call{};
  call.action = function.action;
  call.relevant = true;
  if (call.action == GraphAction::kEndCapture) {
    function.read(data.functionParams, true, call);
    // A capture that was invalidated ends here too.
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
        result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED || result == CUDA_ERROR_ILLEGAL_STATE)
      captures_.ended(data.context, call.stream);
    return;
  }
  if (result != CUDA_SUCCESS) {
    if (call.action == GraphAction::kBeginCapture) captures_.not_begun();
    return;
  }
  function.read(data.functionParams, true, call);
  if (!call.relevant) return;
  switch (call.action) {
    case GraphAction::kBeginCapture:
      return captures_.begun(data.context, call.stream);
    case GraphAction::kAddKernel:
    case GraphAction::kSetKernel: {
      if (call.action == GraphAction::kSetKernel) add_cluster(call);
      const Kernel kernel = kernel_of(thread, cache, call);
      const std::lock_guard lock(mutex_);
      const auto known = nodes_.find(call.node);
      put_node(call.graph != nullptr || known == nodes_.end() ? call.graph : known->second.graph,
               call.node, kernel);
      return;
    }
    case GraphAction::kAddChild:
      return add_child(cache, call);
    case GraphAction::kAddConditional: {
      const std::lock_guard lock(mutex_);
      graphs_[call.graph].conditionals.push_back(
          {call.node, {call.bodies.begin(), call.bodies.end()}});
      return;
    }
    case GraphAction::kInstantiate:
      return instantiate(thread, cache, call);
    case GraphAction::kSetAttribute:
      return set_attribute(thread, cache, call);
    case GraphAction::kSetExecKernel:
      add_cluster(call);
      return change_exec(call, kernel_of(thread, cache, call));
    case GraphAction::kSetExecChild:
    case GraphAction::kEnable:
    case GraphAction::kUpdate:
      return change_exec(call, {});
    case GraphAction::kEndCapture:
      return;
  }
}

Graphs::Kernel Graphs::kernel_of(ThreadState& thread, ThreadCache& cache, const GraphCall& call) {
  Kernel kernel;
  kernel.path = thread.ranges.path();
  kernel.sequence_plus_1 = thread.ranges.sequence_plus_1();
  const KernelFunction* const function =
      call.kernel_call.function != nullptr
          ? functions_.find(cache, call.kernel_call.function, nullptr)
          : functions_.of_kernel(cache, call.kernel);
  const Signature* signature = nullptr;
  if (function != nullptr)
    signature = edge_.collector->signature(thread, *function, call.kernel_call.shape,
                                           call.kernel_call.parameters);
  if (signature != nullptr) {
    kernel.signature = signature->id;
    kernel.flags = work_flags(*signature->function);
  } else {
    report("graph.unnamed_kernel",
           "the driver does not tell the name of a kernel added to a graph by hand (it can since "
           "CUDA 12.3); its launches have no count");
  }
  return kernel;
}

void Graphs::add_child(ThreadCache& cache, const GraphCall& call) {
  const std::lock_guard lock(mutex_);
  Child child;
  child.node = call.node;
  if (!cache.graph_call.graphs.empty())
    child.copy = cache.graph_call.graphs.front();  // the outermost copy is told first
  else
    flatten(call.other, child.contents);
  graphs_[call.graph].children.push_back(std::move(child));
}

// Steps: the graph's kernel nodes as we know them; for each, the copy that CUPTI told of during
// this call, for its id; and the copies of nodes that we did not know.
void Graphs::instantiate(ThreadState& thread, ThreadCache& cache, const GraphCall& call) {
  if (call.for_device) {
    edge_.collector->count_unseen("graph_for_device");
    report("graph.for_device",
           "a graph was made to be launched by kernels: such launches are in no count; those from "
           "the host are");
  }
  std::vector<SourceNode> source;
  {
    const std::lock_guard lock(mutex_);
    flatten(call.graph, source);
  }
  // A copy may be copied again: the last one is what runs, the first original is what we know.
  std::unordered_map<CUgraphNode, CUgraphNode> origin_of;  // copy -> first original
  std::unordered_map<CUgraphNode, CUgraphNode> runs_as;    // first original -> last copy
  std::vector<CUgraphNode> origins;                        // in the order they were told
  for (const auto& [copy, original] : cache.graph_call.clones) {
    const auto before = origin_of.find(original);
    const CUgraphNode origin = before != origin_of.end() ? before->second : original;
    origin_of[copy] = origin;
    if (runs_as.insert_or_assign(origin, copy).second) origins.push_back(origin);
  }

  Exec exec;
  for (const SourceNode& node : source) {
    const auto copy = runs_as.find(node.node);
    exec.nodes.push_back({node.node, node.kernel,
                          id_of(copy != runs_as.end() ? copy->second : node.node), true,
                          node.conditional});
    if (copy != runs_as.end()) runs_as.erase(copy);
  }
  // A node that we did not see made may be in a body: then its records say how often it ran.
  const bool conditional = cache.graph_call.conditional ||
                           std::ranges::any_of(source, [](auto& node) { return node.conditional; });
  for (const CUgraphNode origin : origins) {
    const auto copy = runs_as.find(origin);
    if (copy == runs_as.end()) continue;
    const std::optional<Kernel> kernel = ask_driver(thread, cache, origin);
    exec.nodes.push_back(
        {origin, kernel.value_or(Kernel{}), id_of(copy->second), true, conditional});
  }
  if (edge_.settings.measure_graphs && edge_.measures && !call.for_device)
    set_order(call.graph, exec);

  const std::lock_guard lock(mutex_);
  if (execs_.size() >= kMostExecs && !execs_.contains(call.exec))
    return report("graph.too_many",
                  "more executable graphs than can be followed; launches of the "
                  "rest are not counted");
  execs_.insert_or_assign(call.exec, std::move(exec));
  epoch_.fetch_add(1, std::memory_order_release);
}

std::optional<Graphs::Kernel> Graphs::ask_driver(ThreadState& thread, ThreadCache& cache,
                                                 CUgraphNode node) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = nodes_.find(node); known != nodes_.end()) return known->second.kernel;
  }
  if (std::optional<Kernel> kernel = read_node(thread, cache, node)) {
    kernel->path = {};  // not made here
    kernel->sequence_plus_1 = 0;
    return kernel;
  }
  report("graph.unknown_node",
         "a graph holds a kernel node that was made before profiling began; its launches have no "
         "count");
  return std::nullopt;
}

void Graphs::change_exec(const GraphCall& call, const Kernel& kernel) {
  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(call.exec);
  if (found == execs_.end()) return;  // reported when it is launched
  Exec& exec = found->second;
  exec.changed = true;
  epoch_.fetch_add(1, std::memory_order_release);

  if (call.action == GraphAction::kUpdate) {
    std::vector<SourceNode> places, values;
    for (const ExecNode& node : exec.nodes)
      places.push_back({node.origin, node.kernel, node.conditional});
    flatten(call.other, values);
    return set_nodes(exec, places, values);
  }
  if (call.action == GraphAction::kSetExecChild) {
    std::vector<SourceNode> places, values;
    for (const auto& [graph, contents] : graphs_)
      for (const Child& child : contents.children)
        if (child.node == call.node) {
          places = child.contents;
          if (child.copy != nullptr) flatten(child.copy, places);
        }
    flatten(call.other, values);
    return set_nodes(exec, places, values);
  }
  const auto node = std::ranges::find(exec.nodes, call.node, &ExecNode::origin);
  if (node == exec.nodes.end())
    return report("graph.unknown_node",
                  "an unknown kernel node of an executable graph was changed; launches of that "
                  "graph may be counted with its former parameters");
  if (call.action == GraphAction::kEnable) {
    node->enabled = call.enabled;
  } else {  // it stays where it was captured
    node->kernel.signature = kernel.signature;
    node->kernel.flags = kernel.flags;
  }
}

// An update pairs nodes in the order they were made, as CUDA itself does.
void Graphs::set_nodes(Exec& exec, const std::vector<SourceNode>& places,
                       const std::vector<SourceNode>& values) {
  if (places.size() != values.size())
    return report("graph.update",
                  "an executable graph was updated from a graph whose nodes are not all known; its "
                  "launches may be counted with former parameters");
  for (size_t i = 0; i < places.size(); ++i) {
    auto node = exec.nodes.begin() + static_cast<std::ptrdiff_t>(std::min(i, exec.nodes.size()));
    if (node == exec.nodes.end() || node->origin != places[i].node)  // in an update it is in place
      node = std::ranges::find(exec.nodes, places[i].node, &ExecNode::origin);
    if (node != exec.nodes.end()) node->kernel = values[i].kernel;
  }
}

LaunchedGraph Graphs::launched(ThreadCache& cache, CUgraphExec handle) {
  LaunchedGraph graph;
  if (look_up(cache, handle, graph)) return graph;
  report("graph.unknown",
         "a graph was launched that was instantiated before profiling began; its kernels are not "
         "counted");
  edge_.collector->count_unseen("graph_before_recording");
  return {};
}

bool Graphs::look_up(ThreadCache& cache, CUgraphExec handle, LaunchedGraph& graph) {
  const uint64_t epoch = epoch_.load(std::memory_order_acquire);
  const auto place = reinterpret_cast<uintptr_t>(handle);
  GraphSlot& slot = cache.graphs[(place >> 4 ^ place >> 12) % cache.graphs.size()];
  if (slot.exec == handle && slot.epoch == epoch) {
    graph = slot.graph;
    return true;
  }

  const std::lock_guard lock(mutex_);
  const auto found = execs_.find(handle);
  if (found == execs_.end()) return false;
  Exec& exec = found->second;
  if (exec.changed) {
    std::vector<GraphNode> nodes;
    for (const bool conditional : {false, true}) {
      for (const ExecNode& node : exec.nodes)
        if (node.enabled && node.conditional == conditional)
          nodes.push_back({node.kernel.signature, node.kernel.path, node.kernel.sequence_plus_1,
                           node.id, node.kernel.flags, conditional});
      if (!conditional) exec.launched.kernels = static_cast<uint32_t>(nodes.size());
    }
    const bool bodies = nodes.size() > exec.launched.kernels;
    exec.launched.id = nodes.empty() ? GraphId{} : edge_.collector->add_graph(std::move(nodes));
    exec.launched.bodies_lost = bodies && !exec.launched.id;
    exec.launched.measured = measured_as(exec);
    exec.changed = false;
  }
  slot = {handle, exec.launched, epoch};
  graph = exec.launched;
  return true;
}

uint64_t Graphs::id_of(CUgraphNode node) const {
  uint64_t id = 0;
  if (edge_.cupti.GetGraphNodeId == nullptr ||
      edge_.cupti.GetGraphNodeId(node, &id) != CUPTI_SUCCESS)
    return 0;
  return id;
}

// --- what CUPTI tells --------------------------------------------------------------------------

void Graphs::resource(ThreadCache& cache, CUpti_CallbackIdResource id,
                      const CUpti_GraphData& data) {
  GraphCallInProgress& call = cache.graph_call;
  const bool kernel = data.nodeType == CU_GRAPH_NODE_TYPE_KERNEL;
  switch (id) {
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
      if (data.nodeType == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        report("graph.conditional",
               "a graph has conditional nodes: how often their bodies run is decided on the GPU; "
               "kernels in them are counted by CUPTI's records of them, where times are recorded");
      if (!kernel) return;
      if (cache.launch.depth > 0) {  // a launch under capture
        const LaunchInProgress& launch = cache.launch;
        if (launch.device_updatable) {
          edge_.collector->count_unseen("device_updatable_node");
          report("graph.device_updatable",
                 "a graph holds a kernel node that kernels may change, switch off or on: it is "
                 "counted as it was captured");
        }
        cache.launch.captured = true;
        Kernel captured{
            {}, launch.record.path, launch.record.sequence_plus_1, 0, launch.device_updatable};
        if (launch.signature != nullptr) {
          captured.signature = launch.signature->id;
          captured.flags = work_flags(*launch.signature->function);
        }
        const std::lock_guard lock(mutex_);
        put_node(data.graph, data.node, captured);
      }
      return;  // by hand: known at the EXIT of that call
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED: {
      call.conditional |= data.nodeType == CU_GRAPH_NODE_TYPE_CONDITIONAL;
      if (!kernel) return;
      if (call.depth > 0 && call.makes_exec) {
        call.clones.push_back({data.node, data.originalNode});
        return;
      }
      const std::lock_guard lock(mutex_);
      const auto original = nodes_.find(data.originalNode);
      if (original != nodes_.end())
        put_node(data.graph, data.node, Kernel{original->second.kernel});
      return;
    }
    case CUPTI_CBID_RESOURCE_GRAPH_CLONED:
      if (call.depth > 0) call.graphs.push_back(data.graph);
      return;
    case CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING: {
      const std::lock_guard lock(mutex_);
      return drop_node(data.node, data.nodeType == CU_GRAPH_NODE_TYPE_GRAPH ||
                                      data.nodeType == CU_GRAPH_NODE_TYPE_CONDITIONAL);
    }
    case CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING: {
      const std::lock_guard lock(mutex_);
      return drop_graph(data.graph);
    }
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_DESTROY_STARTING: {
      const std::lock_guard lock(mutex_);
      if (execs_.erase(data.graphExec) > 0) epoch_.fetch_add(1, std::memory_order_release);
      return;
    }
    default:
      return;
  }
}

// --- the tables --------------------------------------------------------------------------------

void Graphs::put_node(CUgraph graph, CUgraphNode node, const Kernel& kernel) {
  const auto known = nodes_.find(node);
  if (known != nodes_.end() && known->second.graph == graph) {
    known->second.kernel = kernel;
    return;
  }
  if (known != nodes_.end()) drop_node(node, false);  // the handle has come back
  if (nodes_.size() >= kMostNodes)
    return report("graph.too_many",
                  "more graph nodes than can be followed; launches of the rest "
                  "are not counted");
  nodes_[node] = {graph, kernel};
  graphs_[graph].kernels.push_back(node);
}

void Graphs::drop_node(CUgraphNode node, bool holds_graphs) {
  if (holds_graphs)
    for (auto& [graph, contents] : graphs_) {
      std::erase_if(contents.children, [&](const Child& child) { return child.node == node; });
      std::erase_if(contents.conditionals, [&](const Conditional& c) { return c.node == node; });
    }
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return;
  if (const auto graph = graphs_.find(known->second.graph); graph != graphs_.end())
    std::erase(graph->second.kernels, node);
  nodes_.erase(known);
}

void Graphs::drop_graph(CUgraph handle) {
  const auto graph = graphs_.find(handle);
  if (graph == graphs_.end()) return;
  const Graph contents = std::move(graph->second);
  graphs_.erase(graph);
  for (const CUgraphNode node : contents.kernels) nodes_.erase(node);
  for (const Child& child : contents.children)
    if (child.copy != nullptr) drop_graph(child.copy);
  for (const Conditional& conditional : contents.conditionals)
    for (const CUgraph body : conditional.bodies) drop_graph(body);
}

void Graphs::flatten(CUgraph handle, std::vector<SourceNode>& out, bool conditional) const {
  const auto graph = graphs_.find(handle);
  if (graph == graphs_.end()) return;
  for (const CUgraphNode node : graph->second.kernels)
    if (const auto known = nodes_.find(node); known != nodes_.end())
      out.push_back({node, known->second.kernel, conditional});
  for (const Child& child : graph->second.children) {
    for (SourceNode node : child.contents) {
      node.conditional |= conditional;
      out.push_back(node);
    }
    if (child.copy != nullptr) flatten(child.copy, out, conditional);
  }
  for (const Conditional& inner : graph->second.conditionals)
    for (const CUgraph body : inner.bodies) flatten(body, out, true);
}

}  // namespace flopinj
