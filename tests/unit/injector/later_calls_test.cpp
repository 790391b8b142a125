// Calls of CUDA 13.1 to 13.5, whose structures are written down here as in their headers.
#include <injector/vendor/driver_calls.h>

#include "catch.h"

using namespace flopinj;

namespace {

struct HostFunction {  // cuLaunchHostFunc_v2, 13.1
  CUstream stream;
  CUhostFn function;
  void* user_data;
  unsigned mode;
};
struct Recapture {  // cuStreamBeginRecaptureToGraph, 13.3
  CUstream stream;
  CUstreamCaptureMode mode;
  CUgraph graph;
  void* callback;
  void* user_data;
};
struct AddNode {  // cuGraphAddNode_v3, 13.4
  CUgraphNode* node;
  CUgraph graph;
  const CUgraphNode* dependencies;
  const CUgraphEdgeData* edges;
  size_t count;
  CUgraphNodeParams* parameters;
};
struct SetNode {  // cuGraphNodeSetParams_v2, 13.4
  CUgraphNode node;
  CUgraphNodeParams* parameters;
};

template <class Handle>
Handle handle(uintptr_t n) {
  return reinterpret_cast<Handle>(n);
}

template <class Function>
const Function& call(uint32_t cbid) {
  const DriverCall* const found = find_driver_call(cbid);
  REQUIRE(found != nullptr);
  REQUIRE(std::holds_alternative<Function>(found->function));
  return std::get<Function>(found->function);
}

GraphCall read(const GraphFunction& function, const void* parameters) {
  GraphCall call{};
  call.action = function.action;
  call.relevant = true;
  function.read(parameters, call);
  return call;
}

CUgraphNodeParams kernel_node() {
  CUgraphNodeParams node{};
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.kernel.func = handle<CUfunction>(7);
  node.kernel.gridDimX = 3;
  return node;
}

}  // namespace

TEST_CASE("a host function of either name is waiting work of its stream") {
  const HostFunction parameters{handle<CUstream>(5), nullptr, nullptr, 0};
  for (const auto& [cbid, per_thread] : {std::pair{831U, false}, {832U, true}}) {
    const auto& waits = call<WaitFunction>(cbid);
    CHECK(waits.stream(&parameters) == parameters.stream);
    CHECK(waits.per_thread_stream == per_thread);
  }
}

TEST_CASE("a stream that is captured into a graph again is under capture") {
  const Recapture parameters{handle<CUstream>(5), {}, nullptr, nullptr, nullptr};
  for (const uint32_t cbid : {846U, 847U}) {
    const auto& begins = call<GraphFunction>(cbid);
    CHECK(begins.action == GraphAction::kBeginCapture);
    CHECK(read(begins, &parameters).stream == parameters.stream);
  }
}

TEST_CASE("nodes that are added or changed by the newest functions are followed") {
  CUgraphNodeParams node = kernel_node();
  CUgraphNode made = handle<CUgraphNode>(9);
  const AddNode add{&made, handle<CUgraph>(4), nullptr, nullptr, 0, &node};
  const GraphCall added = read(call<GraphFunction>(863), &add);
  CHECK(added.action == GraphAction::kAddKernel);
  CHECK(added.graph == add.graph);
  CHECK(added.node == made);
  CHECK(added.kernel_call.function == node.kernel.func);
  CHECK(added.kernel_call.shape.grid[0] == 3);

  const SetNode set{made, &node};
  const GraphCall changed = read(call<GraphFunction>(864), &set);
  CHECK(changed.action == GraphAction::kSetKernel);
  CHECK(changed.node == made);
  CHECK(changed.kernel_call.function == node.kernel.func);
}
