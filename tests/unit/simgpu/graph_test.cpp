// Stream capture and graphs.
#include "gpu.h"

namespace {

struct Streams {
  Streams() {
    check(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    check(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    check(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    check(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
  }
  CUstream a = nullptr, b = nullptr;
  CUevent fork = nullptr, join = nullptr;
};

size_t node_count(CUgraph graph) {
  size_t count = 0;
  check(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

constexpr auto kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;

}  // namespace

TEST_CASE("a captured launch becomes a node and runs at every graph launch") {
  const Gpu gpu;
  const Streams s;
  const Array<int> x({1});
  Recorder recorder;
  check(cuStreamBeginCapture(s.a, kGlobal));
  recorder.clear();
  check(Gpu::try_launch(gpu.function("add_one"), 1, 1, 0, s.a, x.address()));
  CHECK(recorder.words() ==
        std::vector<std::string>{"enter cuModuleGetFunction", "exit cuModuleGetFunction",
                                 "enter cuLaunchKernel", "node created", "exit cuLaunchKernel"});
  check(Gpu::try_launch(gpu.function("twice"), 1, 1, 0, s.a, x.address()));
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(s.a, &graph));
  CHECK(node_count(graph) == 2);

  recorder.clear();
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiate(&exec, graph, 0));
  CHECK(recorder.words() == std::vector<std::string>{
                                "enter cuGraphInstantiateWithFlags", "graph cloned", "node cloned",
                                "node cloned", "exec created", "exit cuGraphInstantiateWithFlags"});
  CHECK(x.read()[0] == 1);  // nothing ran yet
  recorder.clear();
  check(cuGraphLaunch(exec, s.a));
  check(cuGraphLaunch(exec, s.a));
  check(cuStreamSynchronize(s.a));
  CHECK(x.read()[0] == ((1 + 1) * 2 + 1) * 2);
  REQUIRE(recorder.runs.size() == 4);
  const auto& runs = recorder.runs;
  CHECK(runs[0].correlation_id == runs[1].correlation_id);
  CHECK(runs[0].correlation_id != runs[2].correlation_id);
  CHECK(runs[0].graph_node_id != runs[1].graph_node_id);
  CHECK(runs[0].graph_node_id == runs[2].graph_node_id);
  CHECK(runs[0].graph_id != 0);
  CHECK(runs[0].graph_id == runs[2].graph_id);
  check(cuGraphDestroy(graph));
  check(cuGraphLaunch(exec, s.a));  // the executable stands alone
  check(cuGraphExecDestroy(exec));
  CHECK(cuGraphLaunch(exec, s.a) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("capture forks and joins through events") {
  const Gpu gpu;
  const Streams s;
  const Array<int> x({1}), y({1});
  check(cuStreamBeginCapture(s.a, kGlobal));
  check(Gpu::try_launch(gpu.function("add_one"), 1, 1, 0, s.a, x.address()));
  check(cuEventRecord(s.fork, s.a));
  check(cuStreamWaitEvent(s.b, s.fork, 0));
  CUstreamCaptureStatus status{};
  check(cuStreamIsCapturing(s.b, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  check(Gpu::try_launch(gpu.function("twice"), 1, 1, 0, s.b, y.address()));
  CUgraph graph = nullptr;

  SECTION("joined") {
    check(cuEventRecord(s.join, s.b));
    check(cuStreamWaitEvent(s.a, s.join, 0));
    check(Gpu::try_launch(gpu.function("add_one"), 1, 1, 0, s.a, y.address()));
    CHECK(cuEventQuery(s.join) == CUDA_ERROR_CAPTURED_EVENT);
    check(cuStreamEndCapture(s.a, &graph));
    CHECK(node_count(graph) == 3);
    size_t edges = 0;
    check(cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges));
    CHECK(edges == 3);  // first to both others, second to third
    CUgraphExec exec = nullptr;
    check(cuGraphInstantiate(&exec, graph, 0));
    check(cuGraphLaunch(exec, s.b));
    CHECK(x.read()[0] == 2);
    CHECK(y.read()[0] == 3);
    check(cuGraphExecDestroy(exec));
    check(cuGraphDestroy(graph));
  }
  SECTION("left open") {
    CHECK(cuStreamEndCapture(s.a, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    CHECK(graph == nullptr);
    check(cuStreamIsCapturing(s.b, &status));
    CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  }
  SECTION("ended from the wrong stream") {
    CHECK(cuStreamEndCapture(s.b, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    CHECK(cuStreamEndCapture(s.a, &graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  }
}

TEST_CASE("a capturing stream tells its graph and what its next work comes behind") {
  const Gpu gpu;
  const Streams s;
  const Array<int> x({1});
  const CUfunction add_one = gpu.function("add_one");
  CUstreamCaptureStatus status{};
  cuuint64_t first = 0, second = 0;
  CUgraph graph = nullptr, ended = nullptr;
  const CUgraphNode* behind = nullptr;
  size_t count = 7;
  const auto ask = [&](CUstream stream, cuuint64_t* id) {
    return cuStreamGetCaptureInfo_v3(stream, &status, id, &graph, &behind, nullptr, &count);
  };
  check(ask(s.a, &first));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(count == 7);  // nothing else is told
  CHECK(cuStreamUpdateCaptureDependencies_v2(s.a, nullptr, nullptr, 0, 0) ==
        CUDA_ERROR_ILLEGAL_STATE);

  check(cuStreamBeginCapture(s.a, kGlobal));
  check(ask(s.a, &first));
  CHECK(count == 0);
  check(Gpu::try_launch(add_one, 1, 1, 0, s.a, x.address()));
  check(cuEventRecord(s.fork, s.a));
  check(cuStreamWaitEvent(s.b, s.fork, 0));
  check(ask(s.b, &second));
  CHECK(first == second);
  REQUIRE(count == 1);
  CUgraphNode launch = behind[0], beside = nullptr;
  check(cuGraphAddEmptyNode(&beside, graph, nullptr, 0));
  check(cuStreamUpdateCaptureDependencies_v2(s.b, &beside, nullptr, 1,
                                             CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  check(ask(s.b, &second));
  CHECK(std::vector(behind, behind + count) == std::vector{launch, beside});
  check(cuStreamUpdateCaptureDependencies_v2(s.a, &beside, nullptr, 1,
                                             CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  check(ask(s.a, &first));
  CHECK(std::vector(behind, behind + count) == std::vector{beside});
  check(cuEventRecord(s.join, s.b));
  check(cuStreamWaitEvent(s.a, s.join, 0));
  check(cuStreamEndCapture(s.a, &ended));
  CHECK(ended == graph);
  CHECK(node_count(graph) == 2);
  check(cuGraphDestroy(graph));

  check(cuStreamBeginCapture(s.a, kGlobal));
  check(ask(s.a, &second));
  CHECK(first != second);
  CHECK(cuStreamQuery(s.a) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);  // spoils it
  check(ask(s.a, &second));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuStreamEndCapture(s.a, &ended) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("what cannot be captured spoils the capture") {
  const Gpu gpu;
  CUstream blocking = nullptr;
  check(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  check(cuStreamBeginCapture(blocking, kGlobal));
  CHECK(cuStreamBeginCapture(blocking, kGlobal) == CUDA_ERROR_ILLEGAL_STATE);
  CUresult expected = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, result = CUDA_SUCCESS;
  CUdeviceptr p = 0;
  SECTION("synchronising") { result = cuStreamSynchronize(blocking); }
  SECTION("querying") { result = cuStreamQuery(blocking); }
  SECTION("the whole context") { result = cuCtxSynchronize(); }
  SECTION("allocating") { result = cuMemAlloc(&p, 4); }
  SECTION("a profiler that synchronises") { result = hooks().synchronize_for_tool(gpu.context); }
  SECTION("capturing while a profiler serialises launches") {
    hooks().set_session(gpu.context, {1, 0, 0});
    result = Gpu::try_launch(gpu.function("nothing"), 1, 1, 0, blocking);
    hooks().set_session(gpu.context, {0, 0, 0});
  }
  SECTION("the legacy default stream") {
    expected = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    result = Gpu::try_launch(gpu.function("nothing"), 1, 1, 0, CU_STREAM_LEGACY);
  }
  SECTION("waiting for an event of now") {
    CUevent event = nullptr;
    check(cuEventCreate(&event, 0));
    expected = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    result = cuStreamWaitEvent(blocking, event, 0);
  }
  CHECK(result == expected);
  CUgraph graph = nullptr;
  CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == nullptr);
  CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_ILLEGAL_STATE);
  check(cuStreamSynchronize(blocking));
}

TEST_CASE("graphs are built by hand, with copies, fills and child graphs") {
  const Gpu gpu;
  const Array<int> x({0}), y({0});
  CUdeviceptr px = x.address();
  void* params[] = {&px};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = gpu.function("add_one");
  kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = kernel.blockDimX = kernel.blockDimY =
      kernel.blockDimZ = 1;
  kernel.kernelParams = params;
  CUDA_MEMSET_NODE_PARAMS fill{};
  fill.dst = x.address();
  fill.value = 10;
  fill.elementSize = 4;
  fill.width = fill.height = 1;
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = x.address();
  copy.dstDevice = y.address();
  copy.WidthInBytes = 4;
  copy.Height = copy.Depth = 1;

  CUgraph child = nullptr, graph = nullptr;
  CUgraphNode fill_node = nullptr, child_node = nullptr, copy_node = nullptr, inner = nullptr;
  check(cuGraphCreate(&child, 0));
  check(cuGraphAddKernelNode(&inner, child, nullptr, 0, &kernel));
  check(cuGraphCreate(&graph, 0));
  // Created in the order copy, child, fill; run in the order of the edges.
  check(cuGraphAddMemcpyNode(&copy_node, graph, nullptr, 0, &copy, gpu.context));
  check(cuGraphAddChildGraphNode(&child_node, graph, nullptr, 0, child));
  check(cuGraphAddMemsetNode(&fill_node, graph, nullptr, 0, &fill, gpu.context));
  const CUgraphNode from[] = {fill_node, child_node}, to[] = {child_node, copy_node};
  check(cuGraphAddDependencies(graph, from, to, nullptr, 2));
  const CUgraphNode back_from[] = {copy_node}, back_to[] = {fill_node};
  CHECK(cuGraphAddDependencies(graph, back_from, back_to, nullptr, 1) ==
        CUDA_ERROR_INVALID_VALUE);  // a circle

  CUgraphExec exec = nullptr;
  check(cuGraphInstantiate(&exec, graph, 0));
  check(cuGraphLaunch(exec, nullptr));
  check(cuCtxSynchronize());
  CHECK(y.read()[0] == 11);

  CUgraph clone = nullptr;
  check(cuGraphClone(&clone, graph));
  CHECK(node_count(clone) == 3);
  for (const CUgraph each : {clone, graph, child}) check(cuGraphDestroy(each));
  check(cuGraphExecDestroy(exec));
}

TEST_CASE("attributes of a kernel node stay when its parameters are set") {
  const Gpu gpu;
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = gpu.function("nothing");
  params.gridDimX = 4;
  params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  CUgraph graph = nullptr;
  CUgraphNode first = nullptr, second = nullptr, empty = nullptr;
  check(cuGraphCreate(&graph, 0));
  check(cuGraphAddKernelNode(&first, graph, nullptr, 0, &params));
  check(cuGraphAddKernelNode(&second, graph, &first, 1, &params));
  check(cuGraphAddEmptyNode(&empty, graph, nullptr, 0));

  constexpr auto kCluster = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  CUlaunchAttributeValue value{};
  value.clusterDim = {3, 1, 1};  // does not divide the grid
  CHECK(cuGraphKernelNodeSetAttribute(first, kCluster, &value) == CUDA_ERROR_INVALID_VALUE);
  value.clusterDim = {2, 1, 1};
  CHECK(cuGraphKernelNodeSetAttribute(empty, kCluster, &value) == CUDA_ERROR_INVALID_VALUE);
  check(cuGraphKernelNodeSetAttribute(first, kCluster, &value));
  check(cuGraphKernelNodeCopyAttributes(second, first));
  params.gridDimX = 8;
  check(cuGraphKernelNodeSetParams(second, &params));
  value = {};
  check(cuGraphKernelNodeGetAttribute(second, kCluster, &value));
  CHECK(value.clusterDim.x == 2);

  CUgraphExec exec = nullptr;
  check(cuGraphInstantiate(&exec, graph, 0));
  params.gridDimX = 6;
  check(cuGraphExecKernelNodeSetParams(exec, first, &params));
  params.gridDimX = 5;
  CHECK(cuGraphExecKernelNodeSetParams(exec, first, &params) == CUDA_ERROR_INVALID_VALUE);
  Recorder recorder;
  check(cuGraphLaunch(exec, nullptr));
  REQUIRE(recorder.runs.size() == 2);
  CHECK(recorder.runs[0].cluster[0] == 2);
  CHECK(recorder.runs[0].grid[0] == 6);
  CHECK(recorder.runs[1].cluster[0] == 2);
  CHECK(recorder.runs[1].grid[0] == 8);
  check(cuGraphExecDestroy(exec));
  check(cuGraphDestroy(graph));
}

TEST_CASE("an executable graph takes new parameters, not a new shape") {
  const Gpu gpu;
  const Streams s;
  const Array<int> x({0}), y({0});
  const auto capture = [&](const Array<int>& target, int launches) {
    check(cuStreamBeginCapture(s.a, kGlobal));
    for (int i = 0; i < launches; ++i)
      check(Gpu::try_launch(gpu.function("add_one"), 1, 1, 0, s.a, target.address()));
    CUgraph graph = nullptr;
    check(cuStreamEndCapture(s.a, &graph));
    return graph;
  };
  const CUgraph first = capture(x, 1), second = capture(y, 1), longer = capture(y, 2);
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiate(&exec, first, 0));
  check(cuGraphLaunch(exec, s.a));
  CUgraphExecUpdateResultInfo info{};
  check(cuGraphExecUpdate(exec, second, &info));
  check(cuGraphLaunch(exec, s.a));
  CHECK(cuGraphExecUpdate(exec, longer, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  check(cuStreamSynchronize(s.a));
  CHECK(x.read()[0] == 1);
  CHECK(y.read()[0] == 1);

  CUgraphNode node = nullptr;
  size_t count = 1;
  check(cuGraphGetNodes(second, &node, &count));
  CUDA_KERNEL_NODE_PARAMS params{};
  check(cuGraphKernelNodeGetParams(node, &params));
  CHECK(*static_cast<CUdeviceptr*>(params.kernelParams[0]) == y.address());
  CUdeviceptr px = x.address();
  void* changed[] = {&px};
  params.kernelParams = changed;
  check(cuGraphExecKernelNodeSetParams(exec, node, &params));
  check(cuGraphLaunch(exec, s.a));
  CHECK(x.read()[0] == 2);
  for (const CUgraph each : {first, second, longer}) check(cuGraphDestroy(each));
  check(cuGraphExecDestroy(exec));
}

namespace {

struct Conditional {
  explicit Conditional(CUgraphConditionalNodeType type, unsigned size, unsigned value) {
    check(cuGraphCreate(&graph, 0));
    check(cuCtxGetCurrent(&node.conditional.ctx));
    check(cuGraphConditionalHandleCreate(&node.conditional.handle, graph, node.conditional.ctx,
                                         value, CU_GRAPH_COND_ASSIGN_DEFAULT));
    node.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    node.conditional.type = type;
    node.conditional.size = size;
  }
  CUresult add() {
    CUgraphNode added = nullptr;
    return cuGraphAddNode(&added, graph, nullptr, nullptr, 0, &node);
  }
  CUgraph graph = nullptr;
  CUgraphNodeParams node{};
};

}  // namespace

TEST_CASE("conditional nodes keep CUDA's rules") {
  const Gpu gpu;
  Conditional c(CU_GRAPH_COND_TYPE_IF, 2, 0);
  check(c.add());
  CUgraph clone = nullptr, parent = nullptr;
  CHECK(cuGraphClone(&clone, c.graph) == CUDA_ERROR_NOT_SUPPORTED);
  check(cuGraphCreate(&parent, 0));
  CUgraphNode child = nullptr;
  CHECK(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, c.graph) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(cuGraphDestroy(c.node.conditional.phGraph_out[0]) == CUDA_ERROR_INVALID_VALUE);

  CUgraphExec exec = nullptr, second = nullptr;
  CHECK(cuGraphInstantiateWithFlags(&exec, c.graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) ==
        CUDA_ERROR_INVALID_VALUE);
  check(cuGraphInstantiateWithFlags(&exec, c.graph, 0));
  CHECK(cuGraphInstantiateWithFlags(&second, c.graph, 0) == CUDA_ERROR_NOT_SUPPORTED);
  check(cuGraphExecDestroy(exec));
  check(cuGraphInstantiateWithFlags(&second, c.graph, 0));  // one at a time
  check(cuGraphDestroy(c.graph));

  for (const auto& [type, size] :
       {std::pair{CU_GRAPH_COND_TYPE_WHILE, 2U}, std::pair{CU_GRAPH_COND_TYPE_IF, 3U},
        std::pair{CU_GRAPH_COND_TYPE_SWITCH, 0U}}) {
    Conditional wrong(type, size, 0);
    CHECK(wrong.add() == CUDA_ERROR_INVALID_VALUE);
  }
  Conditional other(CU_GRAPH_COND_TYPE_IF, 1, 0);
  other.node.conditional.handle = Conditional(CU_GRAPH_COND_TYPE_IF, 1, 0).node.conditional.handle;
  CHECK(other.add() == CUDA_ERROR_INVALID_VALUE);  // made for another graph
}

TEST_CASE("a body runs where the value asks for it") {
  const Gpu gpu;
  for (const unsigned value : {0U, 1U, 7U}) {
    const Array<int> x({1});
    Conditional c(CU_GRAPH_COND_TYPE_IF, 1, value);
    check(c.add());
    CUstream stream = nullptr;
    check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    check(cuStreamBeginCaptureToGraph(stream, c.node.conditional.phGraph_out[0], nullptr, nullptr,
                                      0, CU_STREAM_CAPTURE_MODE_RELAXED));
    check(Gpu::try_launch(gpu.function("add_one"), 1, 1, 0, stream, x.address()));
    CUgraph captured = nullptr;
    check(cuStreamEndCapture(stream, &captured));
    CHECK(captured == c.node.conditional.phGraph_out[0]);
    CUgraphExec exec = nullptr;
    check(cuGraphInstantiateWithFlags(&exec, c.graph, 0));
    check(cuGraphLaunch(exec, stream));
    check(cuGraphLaunch(exec, stream));
    check(cuStreamSynchronize(stream));
    CHECK(x.read()[0] == (value != 0 ? 3 : 1));
  }
}
