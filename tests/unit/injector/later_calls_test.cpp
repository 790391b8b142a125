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

// Twins (_ptsz) are of programs compiled for a stream of each thread.
TEST_CASE("of each call the null stream is the one that the program was compiled for") {
#define TWINS(name) \
  { CUPTI_DRIVER_TRACE_CBID_##name, CUPTI_DRIVER_TRACE_CBID_##name##_ptsz }
  constexpr uint32_t kTwins[][2] = {TWINS(cuLaunchKernel),
                                    TWINS(cuLaunchKernelEx),
                                    TWINS(cuLaunchCooperativeKernel),
                                    TWINS(cuGraphLaunch),
                                    TWINS(cuStreamAddCallback),
                                    TWINS(cuLaunchHostFunc),
                                    TWINS(cuStreamWaitValue32),
                                    TWINS(cuStreamWaitValue32_v2),
                                    TWINS(cuStreamWaitValue64),
                                    TWINS(cuStreamWaitValue64_v2),
                                    TWINS(cuStreamBatchMemOp),
                                    TWINS(cuStreamBatchMemOp_v2),
                                    TWINS(cuStreamBeginCapture),
                                    TWINS(cuStreamBeginCapture_v2),
                                    TWINS(cuStreamEndCapture),
                                    TWINS(cuStreamBeginCaptureToGraph)};
#undef TWINS
  // The structures of captures begin with the stream.
  const uint64_t null_stream[8]{};
  const auto per_thread = [&](uint32_t cbid) {
    const DriverCall* const call = find_driver_call(cbid);
    REQUIRE(call != nullptr);
    CHECK(call->cbid == cbid);
    if (const auto* const launch = std::get_if<LaunchFunction>(&call->function))
      return launch->per_thread_stream;
    if (const auto* const wait = std::get_if<WaitFunction>(&call->function))
      return wait->per_thread_stream;
    REQUIRE(std::holds_alternative<GraphFunction>(call->function));
    return read(std::get<GraphFunction>(call->function), null_stream).stream ==
           CU_STREAM_PER_THREAD;
  };
  for (const auto& [legacy, own] : kTwins) {
    CAPTURE(legacy);
    CHECK_FALSE(per_thread(legacy));
    CHECK(per_thread(own));
  }
}
