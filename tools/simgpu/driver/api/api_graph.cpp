// Building graphs by hand.
#include <algorithm>

#include "driver/api/api.h"
#include "driver/graphs/capture.h"
#include "driver/graphs/conditional.h"
#include "driver/graphs/graph.h"
#include "driver/graphs/graph_params.h"

namespace simgpu::api {
namespace {

Found<Graph> find_graph(CUgraph handle) {
  auto graph = Runtime::get().graphs.find(handle);
  return {graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, std::move(graph)};
}
Found<GraphNode> find_node(CUgraphNode handle) {
  auto node = Runtime::get().nodes.find(handle);
  return {node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, std::move(node)};
}

CUresult add(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
             size_t count, NodeWork work) {
  if (phGraphNode == nullptr || (count > 0 && dependencies == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const auto graph = find_graph(hGraph);
  if (!graph) return graph.error;
  return add_node(*graph.object, {dependencies, count}, std::move(work), phGraphNode);
}

template <class Work, class Params>
CUresult add_of(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                size_t count, const Params& params) {
  Work work;
  const CUresult error = from_params(params, work);
  if (error != CUDA_SUCCESS) return error;
  return add(phGraphNode, hGraph, dependencies, count, std::move(work));
}

// Edges with data order parts of kernels; only whole-kernel order, the default, is simulated.
bool plain(const CUgraphEdgeData* data, size_t count) {
  for (size_t i = 0; data != nullptr && i < count; ++i)
    if (data[i].from_port != 0 || data[i].to_port != 0 || data[i].type != 0) return false;
  return true;
}

CUresult change_edges(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                      CUresult (*change)(Graph&, CUgraphNode, CUgraphNode)) {
  const auto graph = find_graph(hGraph);
  if (!graph) return graph.error;
  if (count > 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i)
    if (const CUresult error = change(*graph.object, from[i], to[i]); error != CUDA_SUCCESS)
      return error;
  return CUDA_SUCCESS;
}

// The protocol of all list queries: null asks for the number; else up to *count are written, the
// rest nulled.
CUresult give(const std::vector<CUgraphNode>& found, CUgraphNode* nodes, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (nodes != nullptr)
    for (size_t i = 0; i < *count; ++i) nodes[i] = i < found.size() ? found[i] : nullptr;
  *count = nodes == nullptr ? found.size() : std::min(*count, found.size());
  return CUDA_SUCCESS;
}

CUresult give_edges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  const auto graph = find_graph(hGraph);
  if (!graph) return graph.error;
  std::vector<CUgraphNode> first, second;
  const std::lock_guard lock(graph->mutex);
  for (const auto& node : graph->nodes)
    for (const GraphNode* before : node->dependencies) {
      first.push_back(handle_of(*before));
      second.push_back(handle_of(*node));
    }
  if ((from == nullptr) != (to == nullptr) || count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  size_t same = *count;
  give(first, from, &same);
  return give(second, to, count);
}

}  // namespace

CUresult cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *phGraph = handle_of(*create_graph());
  return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph hGraph) {
  const auto graph = find_graph(hGraph);
  if (!graph) return graph.error;
  if (graph->owned_by_node) return CUDA_ERROR_INVALID_VALUE;
  destroy_graph(graph.object);
  return CUDA_SUCCESS;
}

CUresult cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  if (phGraphClone == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto graph = find_graph(originalGraph);
  if (!graph) return graph.error;
  if (has_conditionals(*graph.object)) return CUDA_ERROR_NOT_SUPPORTED;
  *phGraphClone = handle_of(*clone_graph(*graph.object));
  return CUDA_SUCCESS;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return add_of<LaunchWork>(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
}
CUresult cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  const auto params = widen(nodeParams);
  return api::cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies,
                                      nodeParams ? &params : nullptr);
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMCPY3D* copyParams, CUcontext) {
  return add_of<CopyWork>(phGraphNode, hGraph, dependencies, numDependencies, copyParams);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies, size_t numDependencies,
                              const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext) {
  return add_of<FillWork>(phGraphNode, hGraph, dependencies, numDependencies, memsetParams);
}

CUresult cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                            const CUgraphNode* dependencies, size_t numDependencies,
                            const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr || nodeParams->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, numDependencies,
             HostWork{nodeParams->fn, nodeParams->userData});
}

CUresult cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                             const CUgraphNode* dependencies, size_t numDependencies) {
  return add(phGraphNode, hGraph, dependencies, numDependencies, std::monostate{});
}

CUresult cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                  const CUgraphNode* dependencies, size_t numDependencies,
                                  CUgraph childGraph) {
  const auto child = find_graph(childGraph);
  if (!child || childGraph == hGraph) return CUDA_ERROR_INVALID_VALUE;
  if (has_conditionals(*child.object)) return CUDA_ERROR_NOT_SUPPORTED;
  auto clone = clone_graph(*child.object);
  clone->owned_by_node = true;
  const CUresult result = add(phGraphNode, hGraph, dependencies, numDependencies, clone);
  if (result != CUDA_SUCCESS) destroy_graph(clone);
  return result;
}

CUresult cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                           const CUgraphNode* dependencies, const CUgraphEdgeData* dependencyData,
                           size_t numDependencies, CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!plain(dependencyData, numDependencies)) return CUDA_ERROR_NOT_SUPPORTED;
  switch (nodeParams->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return add_of<LaunchWork>(phGraphNode, hGraph, dependencies, numDependencies,
                                nodeParams->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return add_of<CopyWork>(phGraphNode, hGraph, dependencies, numDependencies,
                              &nodeParams->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return add_of<FillWork>(phGraphNode, hGraph, dependencies, numDependencies,
                              nodeParams->memset);
    case CU_GRAPH_NODE_TYPE_HOST: {
      const CUDA_HOST_NODE_PARAMS host{nodeParams->host.fn, nodeParams->host.userData};
      return api::cuGraphAddHostNode(phGraphNode, hGraph, dependencies, numDependencies, &host);
    }
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return api::cuGraphAddEmptyNode(phGraphNode, hGraph, dependencies, numDependencies);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return api::cuGraphAddChildGraphNode(phGraphNode, hGraph, dependencies, numDependencies,
                                           nodeParams->graph.graph);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: {
      const auto graph = find_graph(hGraph);
      if (!graph) return graph.error;
      ConditionalWork work;
      if (const CUresult error = make_conditional(*graph.object, nodeParams->conditional, work);
          error != CUDA_SUCCESS)
        return error;
      const auto bodies = work.bodies;
      const CUresult result =
          add(phGraphNode, hGraph, dependencies, numDependencies, std::move(work));
      if (result != CUDA_SUCCESS)
        for (const auto& body : bodies) destroy_graph(body);
      return result;
    }
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}
CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* pHandle_out, CUgraph hGraph,
                                        CUcontext, unsigned int defaultLaunchValue,
                                        unsigned int flags) {
  const auto graph = find_graph(hGraph);
  return graph ? create_condition(*graph.object, defaultLaunchValue, flags, pHandle_out)
               : graph.error;
}
CUresult cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
                        size_t numDependencies, CUgraphNodeParams* nodeParams) {
  return api::cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, nullptr, numDependencies,
                                nodeParams);
}

CUresult cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData* edgeData, size_t numDependencies) {
  if (!plain(edgeData, numDependencies)) return CUDA_ERROR_NOT_SUPPORTED;
  return change_edges(hGraph, from, to, numDependencies, &add_edge);
}

CUresult cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  const auto graph = find_graph(hGraph);
  if (!graph) return graph.error;
  std::vector<CUgraphNode> all;
  const std::lock_guard lock(graph->mutex);
  for (const auto& node : graph->nodes) all.push_back(handle_of(*node));
  return give(all, nodes, numNodes);
}

CUresult cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  const auto node = find_node(hNode);
  if (!node) return node.error;
  if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *type = node->type();
  return CUDA_SUCCESS;
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph* phGraph) {
  const auto node = find_node(hNode);
  if (!node) return node.error;
  const auto* const child = std::get_if<ChildWork>(&node->work);
  if (child == nullptr || phGraph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *phGraph = handle_of(**child);
  return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                            CUgraphEdgeData* edgeData, size_t* numEdges) {
  const CUresult result = give_edges(hGraph, from, to, numEdges);
  if (result == CUDA_SUCCESS && edgeData != nullptr)
    std::fill_n(edgeData, *numEdges, CUgraphEdgeData{});
  return result;
}

CUresult cuGraphDestroyNode(CUgraphNode hNode) {
  const auto node = find_node(hNode);
  return node ? destroy_node(node.object) : node.error;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  const auto node = find_node(hNode);
  if (!node) return node.error;
  return to_params(*node.object, nodeParams);
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  CUDA_KERNEL_NODE_PARAMS full{};
  const CUresult result =
      api::cuGraphKernelNodeGetParams_v2(hNode, nodeParams != nullptr ? &full : nullptr);
  if (result == CUDA_SUCCESS) *nodeParams = narrow(full);
  return result;
}
CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode hNode,
                                       const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  const auto node = find_node(hNode);
  if (!node) return node.error;
  auto* const present = std::get_if<LaunchWork>(&node->work);
  if (present == nullptr) return CUDA_ERROR_INVALID_VALUE;
  LaunchWork work;
  if (const CUresult error = from_params(nodeParams, work); error != CUDA_SUCCESS) return error;
  return set_params(*present, std::move(work));
}
CUresult cuGraphKernelNodeSetParams(CUgraphNode hNode,
                                    const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  const auto params = widen(nodeParams);
  return api::cuGraphKernelNodeSetParams_v2(hNode, nodeParams != nullptr ? &params : nullptr);
}

}  // namespace simgpu::api
