#include <collector/graph_window.h>
#include <injector/graph_order.h>

#include <vector>

namespace flopinj {
namespace {

constexpr size_t kMostNodes = 1U << 16;
constexpr size_t kMostKernels = 1U << 13;  // each may be a range, which takes memory of CUPTI's
constexpr int kMostDepth = 8;              // of child graphs

bool list_nodes(const CudaApi& cuda, CUgraph graph, std::vector<CUgraphNode>& nodes) {
  size_t count = 0;
  if (cuda.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count > kMostNodes)
    return false;
  nodes.resize(count);
  return count == 0 ||
         (cuda.GraphGetNodes(graph, nodes.data(), &count) == CUDA_SUCCESS && count == nodes.size());
}

// Edges between the nodes, by their places in the list. False also where an edge lets a node begin
// before the other one has ended.
bool list_edges(const CudaApi& cuda, CUgraph graph,
                const std::unordered_map<CUgraphNode, uint32_t>& place,
                std::vector<std::pair<uint32_t, uint32_t>>& edges) {
  size_t count = 0;
  if (cuda.GraphGetEdges == nullptr ||
      cuda.GraphGetEdges(graph, nullptr, nullptr, nullptr, &count) != CUDA_SUCCESS ||
      count > kMostNodes * 4)
    return false;
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<CUgraphEdgeData> data(count);
  if (count != 0 &&
      cuda.GraphGetEdges(graph, from.data(), to.data(), data.data(), &count) != CUDA_SUCCESS)
    return false;
  for (size_t i = 0; i < count; ++i) {
    const auto a = place.find(from[i]), b = place.find(to[i]);
    if (a == place.end() || b == place.end() || data[i].type != CU_GRAPH_DEPENDENCY_TYPE_DEFAULT ||
        data[i].from_port != 0 || data[i].to_port != 0)
      return false;
    edges.emplace_back(a->second, b->second);
  }
  return true;
}

// Kernels that kernels may change. A driver that does not know the attribute has no such nodes.
bool device_updatable(const CudaApi& cuda, CUgraphNode node) {
  CUlaunchAttributeValue value{};
  return cuda.GraphKernelNodeGetAttribute != nullptr &&
         cuda.GraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE,
                                          &value) == CUDA_SUCCESS &&
         value.deviceUpdatableKernelNode.deviceUpdatable != 0;
}

bool inspect(const CudaApi& cuda, CUgraph graph, GraphOrder& order, int depth);

// One node; false: the graph is not fit.
bool inspect_node(const CudaApi& cuda, CUgraphNode node, GraphOrder& order, int depth,
                  bool& kernel) {
  CUgraphNodeType type{};
  if (cuda.GraphNodeGetType(node, &type) != CUDA_SUCCESS) return false;
  kernel = type == CU_GRAPH_NODE_TYPE_KERNEL;
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return !device_updatable(cuda, node);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_EMPTY:
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return true;
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      order.ordered = false;
      return depth < kMostDepth && cuda.GraphChildGraphNodeGetGraph != nullptr &&
             cuda.GraphChildGraphNodeGetGraph(node, &child) == CUDA_SUCCESS &&
             inspect(cuda, child, order, depth + 1);
    }
    default:  // host functions, events, semaphores, conditions: they wait, or decide what runs
      return false;
  }
}

bool inspect(const CudaApi& cuda, CUgraph graph, GraphOrder& order, int depth) {
  std::vector<CUgraphNode> nodes;
  if (!list_nodes(cuda, graph, nodes)) return false;
  std::vector<bool> is_kernel(nodes.size());
  std::unordered_map<CUgraphNode, uint32_t> place;
  for (uint32_t n = 0; n < nodes.size(); ++n) {
    bool kernel = false;
    if (!inspect_node(cuda, nodes[n], order, depth, kernel)) return false;
    is_kernel[n] = kernel;
    place[nodes[n]] = n;
  }
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  const auto chain =
      list_edges(cuda, graph, place, edges) ? places_in_chain(is_kernel, edges) : std::nullopt;
  order.ordered = order.ordered && chain.has_value();
  for (uint32_t n = 0; n < nodes.size(); ++n)
    if (is_kernel[n]) order.kernels[nodes[n]] = chain ? (*chain)[n] : 0;
  return order.kernels.size() <= kMostKernels;
}

}  // namespace

GraphOrder order_of(const CudaApi& cuda, CUgraph graph) {
  GraphOrder order;
  if (cuda.GraphGetNodes == nullptr || cuda.GraphNodeGetType == nullptr) return order;
  order.ordered = true;
  order.fit = inspect(cuda, graph, order, 0) && !order.kernels.empty();
  order.ordered = order.ordered && order.fit;
  return order;
}

}  // namespace flopinj
