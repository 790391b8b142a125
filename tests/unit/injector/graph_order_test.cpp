// In which order a graph's kernels run, by what a driver says that the test plays.
#include <injector/graphs/graph_order.h>

#include "catch.h"

using namespace flopinj;

namespace {

CUlaunchAttributeID g_has{};  // the attribute that is on
uintptr_t g_innermost = 1;    // the graph whose node is a kernel; that of others is the next graph

// Graphs of one node each, which has the graph's number.
CudaApi one_kernel() {
  CudaApi cuda;
  cuda.GraphGetNodes = [](CUgraph graph, CUgraphNode* nodes, size_t* count) {
    if (nodes != nullptr) *nodes = reinterpret_cast<CUgraphNode>(graph);
    return *count = 1, CUDA_SUCCESS;
  };
  cuda.GraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) {
    const bool kernel = reinterpret_cast<uintptr_t>(node) == g_innermost;
    return *type = kernel ? CU_GRAPH_NODE_TYPE_KERNEL : CU_GRAPH_NODE_TYPE_GRAPH, CUDA_SUCCESS;
  };
  cuda.GraphKernelNodeGetAttribute = [](CUgraphNode, CUlaunchAttributeID asked,
                                        CUlaunchAttributeValue* value) {
    *value = {};
    if (asked == g_has && asked == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) value->cooperative = 1;
    if (asked == g_has && asked == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
      value->deviceUpdatableKernelNode.deviceUpdatable = 1;
    return CUDA_SUCCESS;
  };
  cuda.GraphGetEdges = [](CUgraph, CUgraphNode*, CUgraphNode*, CUgraphEdgeData*, size_t* count) {
    return *count = 0, CUDA_SUCCESS;
  };
  cuda.GraphChildGraphNodeGetGraph = [](CUgraphNode node, CUgraph* graph) {
    *graph = reinterpret_cast<CUgraph>(reinterpret_cast<uintptr_t>(node) + 1);
    return CUDA_SUCCESS;
  };
  return cuda;
}

}  // namespace

TEST_CASE(
    "a cooperative kernel in a graph is known, and one that kernels may change has no order") {
  const CUgraph graph = reinterpret_cast<CUgraph>(uintptr_t{1});
  g_has = {};
  auto order = order_of(one_kernel(), graph);
  REQUIRE(order);
  CHECK(order->kernels.size() == 1);
  CHECK_FALSE(order->cooperative);
  g_has = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  order = order_of(one_kernel(), graph);
  REQUIRE(order);
  CHECK(order->cooperative);
  g_has = CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
  CHECK_FALSE(order_of(one_kernel(), graph));
}

TEST_CASE("child graphs are followed eight deep, and a graph of deeper ones has no order") {
  g_has = {};
  for (const uintptr_t deep : {0U, 1U, 8U, 9U, 20U}) {
    g_innermost = 1 + deep;
    INFO(deep);
    const auto order = order_of(one_kernel(), reinterpret_cast<CUgraph>(uintptr_t{1}));
    CHECK(order.has_value() == (deep <= 8));
  }
  g_innermost = 1;
}
