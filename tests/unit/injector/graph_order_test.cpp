// In which order a graph's kernels run, by what a driver says that the test plays.
#include <injector/graphs/graph_order.h>

#include "catch.h"

using namespace flopinj;

namespace {

CUlaunchAttributeID g_has{};  // the attribute that is on

// A graph of one kernel node.
CudaApi one_kernel() {
  CudaApi cuda;
  cuda.GraphGetNodes = [](CUgraph, CUgraphNode* nodes, size_t* count) {
    if (nodes != nullptr) *nodes = reinterpret_cast<CUgraphNode>(uintptr_t{1});
    return *count = 1, CUDA_SUCCESS;
  };
  cuda.GraphNodeGetType = [](CUgraphNode, CUgraphNodeType* type) {
    return *type = CU_GRAPH_NODE_TYPE_KERNEL, CUDA_SUCCESS;
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
  cuda.GraphChildGraphNodeGetGraph = [](CUgraphNode, CUgraph*) { return CUDA_ERROR_UNKNOWN; };
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
