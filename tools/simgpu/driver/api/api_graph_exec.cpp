// Executable graphs.
#include "driver/api/api.h"
#include "driver/graphs/capture.h"
#include "driver/graphs/conditional.h"
#include "driver/graphs/graph_exec.h"
#include "driver/graphs/graph_params.h"

namespace simgpu::api {
namespace {

// CUDA lets a graph that the device launches hold kernels, copies, fills and child graphs of such.
bool device_can_launch(const Graph& graph) {
  for (const auto& node : graph.nodes) {
    if (std::holds_alternative<HostWork>(node->work) ||
        std::holds_alternative<ConditionalWork>(node->work))
      return false;
    for (const auto& inner : inner_graphs(*node))
      if (!device_can_launch(*inner)) return false;
  }
  return true;
}

// Flags with no meaning here (upload, node priority, auto-free without memory nodes) are accepted.
// A graph made for the device is launched only from the host: kernels cannot launch here.
CUresult make(CUgraphExec* phGraphExec, CUgraph hGraph, unsigned long long flags) {
  constexpr unsigned long long kKnown =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (phGraphExec == nullptr || (flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  const auto graph = Runtime::get().graphs.find(hGraph);
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0 && !device_can_launch(*graph))
    return CUDA_ERROR_INVALID_VALUE;
  const bool once = has_conditionals(*graph);
  if (once && !graph->only_exec.expired()) return CUDA_ERROR_NOT_SUPPORTED;
  const auto exec = instantiate(*graph);
  if (once) graph->only_exec = exec;
  *phGraphExec = handle_of(*exec);
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph,
                                     unsigned long long flags) {
  return make(phGraphExec, hGraph, flags);
}

// What fails is said by the result alone.
CUresult cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
  if (phErrorNode != nullptr) *phErrorNode = nullptr;
  if (logBuffer != nullptr && bufferSize != 0) *logBuffer = '\0';
  return make(phGraphExec, hGraph, 0);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_MEMCPY3D* copyParams, CUcontext) {
  const auto exec = Runtime::get().execs.find(hGraphExec);
  const auto original = Runtime::get().nodes.find(hNode);
  if (!exec || !original) return CUDA_ERROR_INVALID_VALUE;
  CopyWork work;
  if (const CUresult error = from_params(copyParams, work); error != CUDA_SUCCESS) return error;
  wait_for_launches(*exec);
  const std::lock_guard lock(exec->mutex);
  GraphNode* const node = counterpart(*exec, *original);
  auto* const present = node != nullptr ? std::get_if<CopyWork>(&node->work) : nullptr;
  if (present == nullptr || present->from_device != work.from_device ||
      present->to_device != work.to_device)
    return CUDA_ERROR_INVALID_VALUE;
  *present = work;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  const auto exec = Runtime::get().execs.find(hGraphExec);
  const auto original = Runtime::get().nodes.find(hNode);
  if (!exec || !original) return CUDA_ERROR_INVALID_VALUE;
  LaunchWork work;
  if (const CUresult error = from_params(nodeParams, work); error != CUDA_SUCCESS) return error;
  wait_for_launches(*exec);
  const std::lock_guard lock(exec->mutex);
  GraphNode* node = counterpart(*exec, *original);
  auto* present = node != nullptr ? std::get_if<LaunchWork>(&node->work) : nullptr;
  if (present == nullptr || present->function->context != work.function->context)
    return CUDA_ERROR_INVALID_VALUE;
  return set_params(*present, std::move(work));
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                        const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  const auto params = widen(nodeParams);
  return api::cuGraphExecKernelNodeSetParams_v2(hGraphExec, hNode,
                                                nodeParams != nullptr ? &params : nullptr);
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                            CUgraph childGraph) {
  const auto exec = Runtime::get().execs.find(hGraphExec);
  const auto node = Runtime::get().nodes.find(hNode);
  const auto graph = Runtime::get().graphs.find(childGraph);
  if (!exec || !node || !graph) return CUDA_ERROR_INVALID_VALUE;
  return update_child(*exec, *node, *graph);
}

CUresult cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled) {
  const auto exec = Runtime::get().execs.find(hGraphExec);
  const auto original = Runtime::get().nodes.find(hNode);
  if (!exec || !original) return CUDA_ERROR_INVALID_VALUE;
  wait_for_launches(*exec);
  const std::lock_guard lock(exec->mutex);
  GraphNode* const node = counterpart(*exec, *original);
  // CUDA switches kernels, copies and fills.
  if (node == nullptr || !inner_graphs(*node).empty() ||
      std::holds_alternative<HostWork>(node->work))
    return CUDA_ERROR_INVALID_VALUE;
  node->enabled = isEnabled != 0;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                              CUgraphExecUpdateResultInfo* resultInfo) {
  const auto exec = Runtime::get().execs.find(hGraphExec);
  const auto graph = Runtime::get().graphs.find(hGraph);
  if (!exec || !graph) return CUDA_ERROR_INVALID_VALUE;
  return update_exec(*exec, *graph, resultInfo);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec) {
  const auto exec = Runtime::get().execs.find(hGraphExec);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  destroy_exec(exec);
  return CUDA_SUCCESS;
}

// In a capturing stream the launch becomes a child graph.
CUresult cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  const auto exec = Runtime::get().execs.find(hGraphExec);
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  const auto stream = resolve_stream(hStream);
  if (!stream) return stream.error;
  if (capture_of(*stream.object)) {
    auto child = clone_graph(*exec->graph);
    child->owned_by_node = true;
    const CUresult result = submit(stream.object, child);
    if (result != CUDA_SUCCESS) destroy_graph(child);
    return result;
  }
  // An empty piece of work first: it finds out whether the legacy stream may be used now.
  if (const CUresult error = submit(stream.object, std::monostate{}); error != CUDA_SUCCESS)
    return error;
  if (serialized(*stream.object)) return launch_exec(*exec, *stream.object);
  const CUresult given =
      give(stream.object, [exec, stream = stream.object] { return launch_exec(*exec, *stream); });
  if (stream->queue != nullptr) {
    const Mark mark = newest(*stream.object);
    const std::lock_guard lock(exec->launches_mutex);
    exec->launched = mark;
  }
  return given;
}

}  // namespace simgpu::api
