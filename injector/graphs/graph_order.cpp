#include <injector/graphs/graph_order.h>

#include <unordered_map>

namespace flopinj {
namespace {

constexpr int kMostDepth = 8;  // of child graphs

bool list_nodes(const CudaApi& cuda, CUgraph graph, std::vector<CUgraphNode>& nodes) {
  size_t count = 0;
  if (cuda.GraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count > kMostMeasuredNodes)
    return false;
  nodes.resize(count);
  return cuda.GraphGetNodes(graph, nodes.data(), &count) == CUDA_SUCCESS && count == nodes.size();
}

// Each node behind the one before it: as many edges as there are steps, from each node to one.
bool put_in_order(const CudaApi& cuda, CUgraph graph, std::vector<CUgraphNode>& nodes) {
  size_t count = 0;
  if (cuda.GraphGetEdges(graph, nullptr, nullptr, nullptr, &count) != CUDA_SUCCESS ||
      count + 1 != nodes.size())
    return false;
  std::vector<CUgraphNode> from(count), to(count);
  std::vector<CUgraphEdgeData> data(count);
  if (cuda.GraphGetEdges(graph, from.data(), to.data(), data.data(), &count) != CUDA_SUCCESS)
    return false;
  std::unordered_map<CUgraphNode, CUgraphNode> next, before;
  for (size_t i = 0; i < from.size(); ++i) {
    // An edge of another type lets a node begin before the other one has ended.
    if (data[i].type != CU_GRAPH_DEPENDENCY_TYPE_DEFAULT || data[i].from_port != 0 ||
        !next.emplace(from[i], to[i]).second || !before.emplace(to[i], from[i]).second)
      return false;
  }
  size_t ordered = 0;
  for (const CUgraphNode node : nodes)
    if (!before.contains(node)) nodes[ordered++] = node;
  if (ordered != 1) return false;
  for (; ordered < nodes.size(); ++ordered) nodes[ordered] = next.at(nodes[ordered - 1]);
  return true;
}

bool has(const CudaApi& cuda, CUgraphNode node, CUkernelNodeAttrID attribute) {
  CUlaunchAttributeValue value{};
  if (cuda.GraphKernelNodeGetAttribute == nullptr ||
      cuda.GraphKernelNodeGetAttribute(node, attribute, &value) != CUDA_SUCCESS)
    return false;
  if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) return value.cooperative != 0;
#if CUDA_VERSION >= 12040
  if (attribute == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
    return value.deviceUpdatableKernelNode.deviceUpdatable != 0;
#endif
  return false;
}

bool walk(const CudaApi& cuda, CUgraph graph, int depth, GraphOrder& order) {
  std::vector<CUgraphNode> nodes;
  if (!list_nodes(cuda, graph, nodes)) return false;
  if (nodes.size() > 1 && !put_in_order(cuda, graph, nodes)) return false;
  for (const CUgraphNode node : nodes) {
    CUgraphNodeType type{};
    CUgraph child = nullptr;
    if (cuda.GraphNodeGetType(node, &type) != CUDA_SUCCESS) return false;
    switch (type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
#if CUDA_VERSION >= 12040
        if (has(cuda, node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)) return false;
#endif
        order.cooperative |= has(cuda, node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
        order.kernels.push_back(node);
        break;
      case CU_GRAPH_NODE_TYPE_MEMCPY:
      case CU_GRAPH_NODE_TYPE_MEMSET:
      case CU_GRAPH_NODE_TYPE_EMPTY:
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        break;
      case CU_GRAPH_NODE_TYPE_GRAPH:
        if (depth == kMostDepth || cuda.GraphChildGraphNodeGetGraph(node, &child) != CUDA_SUCCESS ||
            !walk(cuda, child, depth + 1, order))
          return false;
        break;
      default:  // host functions, events, semaphores, conditions: they wait, or decide what runs
        return false;
    }
  }
  return order.kernels.size() <= kMostMeasuredNodes;
}

}  // namespace

std::optional<GraphOrder> order_of(const CudaApi& cuda, CUgraph graph) {
  GraphOrder order;
  if (cuda.GraphGetNodes == nullptr || cuda.GraphGetEdges == nullptr ||
      cuda.GraphNodeGetType == nullptr || cuda.GraphChildGraphNodeGetGraph == nullptr ||
      !walk(cuda, graph, 0, order) || order.kernels.empty())
    return std::nullopt;
  return order;
}

}  // namespace flopinj
