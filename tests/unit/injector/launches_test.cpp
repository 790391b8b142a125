// Launches and graphs, behind the library's callback: what is recorded, and what is said.
#include <map>
#include <string>

#include "catch.h"
#include "unit/collector/trace_reader.h"
#include "unit/injector/played_gpu.h"

using namespace flopinj;
using test::kStream;
using test::PlayedGpu;

namespace {

struct Program {
  explicit Program(const PlayedGpu::Recorded& recorded = {}) : gpu(recorded) {
    REQUIRE(gpu.enable());
  }

  PlayedGpu::Call launch() {
    gpu.prepare(kernel);
    return kernel.call;
  }
  void make(const PlayedGpu::Call& call, CUresult result = CUDA_SUCCESS) {
    gpu.enter(call);
    gpu.exit(call, result);
  }
  uint64_t recorded() const { return gpu.collector.launches_made(); }
  // CUPTI's record of a kernel of that call.
  void ran(const PlayedGpu::Call& call, uint64_t node = 0) {
    const uint64_t now = gpu.edge.now_ns();
    const KernelTime time{call.correlation, node, now, now + 1'000};
    gpu.collector.times({&time, 1});
  }
  test::Sums sums() { return test::sums(test::read_trace(gpu.trace())); }
  bool said(const std::string& text) { return gpu.trace().find(text) != std::string::npos; }

  PlayedGpu gpu;
  PlayedGpu::Launch kernel;
};

const CUgraphExec kExec = reinterpret_cast<CUgraphExec>(uintptr_t{0x3000});
const CUgraph kGraph = reinterpret_cast<CUgraph>(uintptr_t{0x4000});
CUfunction kernel_handle(uintptr_t number) { return reinterpret_cast<CUfunction>(number << 8); }

}  // namespace

TEST_CASE("a launch is recorded once its call has succeeded, and not before") {
  Program program;
  const auto call = program.launch();
  program.gpu.enter(call);
  CHECK(program.recorded() == 0);
  program.gpu.exit(call);
  CHECK(program.recorded() == 1);
  program.make(program.launch(), CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.recorded() == 1);
}

TEST_CASE("a launch function that calls another one is one launch") {
  Program program;
  const auto outer = program.launch();
  const auto inner = program.launch();
  program.gpu.enter(outer);
  program.gpu.enter(inner);
  program.gpu.exit(inner);
  program.gpu.exit(outer);
  CHECK(program.recorded() == 1);
  CHECK(program.said("nested_call"));
}

TEST_CASE("a CUPTI that does not report launches is of no use; one that lacks other calls is") {
  static CUpti_CallbackId unknown;
  const auto can_be_enabled = [](CUpti_CallbackId id) {
    unknown = id;
    PlayedGpu gpu;
    gpu.edge.cupti.EnableCallback = [](uint32_t, CUpti_SubscriberHandle,
                                       CUpti_CallbackDomain domain, CUpti_CallbackId asked) {
      return domain == CUPTI_CB_DOMAIN_DRIVER_API && asked == unknown
                 ? CUPTI_ERROR_INVALID_PARAMETER
                 : CUPTI_SUCCESS;
    };
    return gpu.enable();
  };
  CHECK_FALSE(can_be_enabled(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
  CHECK(can_be_enabled(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx));
}

TEST_CASE("of a kernel whose handle no call was seen to give the parameters are not known") {
  Program program;
  const cuLaunchKernel_params parameters{kernel_handle(9), 1, 1, 1, 32, 1, 1, 0, kStream, {}, {}};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, parameters, "unseen"));
  const Signature* const made = program.gpu.collector.signature(SignatureId{1});
  REQUIRE(made != nullptr);
  CHECK(made->parameter_class == ParameterClass::kUnknown);
  CHECK(program.said("function.unknown_handle"));
}

// The driver refuses larger blocks before it looks at their parameters, which may be unreadable.
TEST_CASE("a block of as many threads as a GPU takes has a signature, and no larger one") {
  Program program;
  uint32_t made = 0;
  const auto has_signature = [&](unsigned x, unsigned y, unsigned z) {
    const auto call = program.launch();
    program.kernel.parameters.blockDimX = x;
    program.kernel.parameters.blockDimY = y;
    program.kernel.parameters.blockDimZ = z;
    program.make(call);
    const bool has = program.gpu.collector.signature(SignatureId{made + 1}) != nullptr;
    made += has ? 1 : 0;
    return has;
  };
  CHECK(has_signature(1024, 1, 1));
  CHECK(has_signature(16, 16, 4));
  CHECK_FALSE(has_signature(1025, 1, 1));
  CHECK_FALSE(has_signature(32, 33, 1));
}

TEST_CASE("the handle of a context that has ended may be that of another device's") {
  Program program;
  program.make(program.launch());
  program.gpu.destroy_context(PlayedGpu::the_context());
  program.gpu.edge.cupti.GetDeviceId = [](CUcontext, uint32_t* ordinal) {
    return *ordinal = 1, CUPTI_SUCCESS;
  };
  program.make(program.launch());
  const test::ReadTrace trace = test::read_trace(program.gpu.trace());
  std::map<uint32_t, uint64_t> launches;  // by device
  for (const auto& packet : trace.packets)
    for (const auto& device : packet.ledger().device())
      launches[device.device()] = device.launches();
  CHECK(launches == std::map<uint32_t, uint64_t>{{1, 1}, {2, 1}});
}

TEST_CASE("a launch has the time that CUPTI gives for its call") {
  Program program({.timed = true});
  const auto call = program.launch();
  program.make(call);
  program.ran(call);
  CHECK(program.sums().timed == 1);
}

TEST_CASE("launches on several devices by one call have no time: it may be of any of them") {
  Program program({.timed = true});
  CUDA_LAUNCH_PARAMS of_device[2]{};
  const cuLaunchCooperativeKernelMultiDevice_params parameters{of_device, 2, 0};
  const auto call =
      program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice, parameters);
  program.make(call);
  program.ran(call);
  program.ran(call);
  const test::Sums sums = program.sums();
  CHECK(sums.launches == 2);
  CHECK(sums.timed == 0);
}

// CUPTI gave its nodes no ids, so that a time may be of either.
TEST_CASE("a kernel has no time that may be of one which is left out of the same graph") {
  Program program({true, "kernel_1"});
  CUgraphExec exec = kExec;
  for (const uintptr_t number : {1, 2}) {
    program.launch();  // gives its handle
    auto node = reinterpret_cast<CUgraphNode>(number);
    CUDA_KERNEL_NODE_PARAMS kernel{};
    kernel.func = kernel_handle(number);
    kernel.gridDimX = kernel.gridDimY = kernel.gridDimZ = 1;
    kernel.blockDimX = kernel.blockDimY = kernel.blockDimZ = 1;
    const cuGraphAddKernelNode_v2_params parameters{&node, kGraph, nullptr, 0, &kernel};
    program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode_v2, parameters));
  }
  const cuGraphInstantiateWithFlags_params made{&exec, kGraph, 0};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, made));
  const cuGraphLaunch_params parameters{kExec, kStream};
  const auto call = program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, parameters);
  program.make(call);
  program.ran(call);
  program.ran(call);
  const test::Sums sums = program.sums();
  CHECK(sums.launches == 1);
  CHECK(sums.timed == 0);
}

TEST_CASE("streams are asked for green contexts once the program has made one, and not before") {
  static int asked;
  asked = 0;
  Program program;
  program.gpu.edge.cuda.StreamGetGreenCtx = [](CUstream, CUgreenCtx* green) {
    ++asked;
    return *green = nullptr, CUDA_SUCCESS;
  };
  program.make(program.launch());
  CHECK(asked == 0);
  program.make(
      program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGreenCtxCreate, cuGreenCtxCreate_params{}));
  const cuLaunchKernel_params on_other{
      program.kernel.parameters.f, 1, 1, 1, 32, 1, 1, 0, kStream, {}, {}};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, on_other, "kernel_1"));
  CHECK(asked > 0);
}

TEST_CASE("a launch into a stream under capture is a node, and no launch") {
  Program program;
  const cuStreamBeginCapture_v2_params begin{kStream, CU_STREAM_CAPTURE_MODE_GLOBAL};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, begin));
  CUpti_GraphData node{};
  node.graph = kGraph;
  node.node = reinterpret_cast<CUgraphNode>(uintptr_t{0x5000});
  node.nodeType = GENERATE(CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_GRAPH);
  const cuGraphLaunch_params graph{kExec, kStream};
  const bool kernel = node.nodeType == CU_GRAPH_NODE_TYPE_KERNEL;
  program.gpu.prepare(program.kernel, kStream);
  const PlayedGpu::Call call =
      kernel ? program.kernel.call : program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, graph);
  program.gpu.enter(call);
  program.gpu.reports(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node);
  program.gpu.exit(call);
  CHECK(program.recorded() == 0);
  program.gpu.prepare(program.kernel);
  program.make(program.kernel.call);
  CHECK(program.recorded() == 1);
  CHECK_FALSE(program.said("graph.unknown"));
}

TEST_CASE("work that waits and is captured holds no window up") {
  Program program;
  const bool reported = GENERATE(false, true);
  const cuStreamBeginCapture_v2_params begin{kStream, CU_STREAM_CAPTURE_MODE_GLOBAL};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, begin));
  const cuLaunchHostFunc_params host{kStream, nullptr, nullptr};
  const auto call = program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc, host);
  program.gpu.enter(call);
  CUpti_GraphData node{};
  node.graph = kGraph;
  node.node = reinterpret_cast<CUgraphNode>(uintptr_t{0x5000});
  node.nodeType = CU_GRAPH_NODE_TYPE_HOST;
  if (reported) program.gpu.reports(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node);
  program.gpu.exit(call);
  for (int i = 0; i < 4; ++i) program.make(program.launch());
  CHECK(program.gpu.streams_asked == 0);  // that would end the capture
  CUgraph graph = kGraph;
  const cuStreamEndCapture_params end{kStream, &graph};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, end));
  program.gpu.busy = reported;
  CHECK(program.gpu.measures_soon());
  program.gpu.busy = false;
}

TEST_CASE("launches of a graph from before the recording are said to be unknown") {
  Program program;
  const cuGraphLaunch_params parameters{kExec, kStream};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, parameters));
  CHECK(program.said("graph.unknown"));
}

TEST_CASE("a graph that no host launches is said to be in no count") {
  Program program;
  CUgraphExec made = kExec;
  CUDA_GRAPH_INSTANTIATE_PARAMS how{};
  how.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  const cuGraphInstantiateWithParams_params parameters{&made, kGraph, &how};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams, parameters));
  CHECK(program.said("graph.for_device"));
}

TEST_CASE("once a graph may wait for the host, launches of graphs hold windows up") {
  Program program;
  const auto measures_beside_graph = [&] {
    const cuGraphLaunch_params parameters{kExec, kStream};
    program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, parameters));
    program.gpu.busy = true;
    return program.gpu.measures();
  };
  CHECK(measures_beside_graph());
  CUpti_GraphData node{};
  node.graph = kGraph;
  node.node = reinterpret_cast<CUgraphNode>(uintptr_t{0x5000});
  node.nodeType = CU_GRAPH_NODE_TYPE_HOST;
  program.gpu.reports(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node);
  CHECK_FALSE(measures_beside_graph());
  program.gpu.busy = false;
}

TEST_CASE("of two graphs that are known, windows wait for the one with a node that waits") {
  Program program;
  CUpti_GraphData node{};
  node.graph = kGraph;
  node.node = reinterpret_cast<CUgraphNode>(uintptr_t{0x5000});
  node.nodeType = CU_GRAPH_NODE_TYPE_HOST;
  program.gpu.reports(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node);
  const auto measures_beside = [&](uintptr_t exec, CUgraph graph) {
    CUgraphExec made = reinterpret_cast<CUgraphExec>(exec);
    CUDA_GRAPH_INSTANTIATE_PARAMS how{};
    const cuGraphInstantiateWithParams_params instantiate{&made, graph, &how};
    program.make(
        program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams, instantiate));
    const cuGraphLaunch_params launch{made, kStream};
    program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, launch));
    program.gpu.busy = true;
    return program.gpu.measures();
  };
  CHECK(measures_beside(0x6000, reinterpret_cast<CUgraph>(uintptr_t{0x4100})));
  CHECK_FALSE(measures_beside(0x7000, kGraph));
  program.gpu.busy = false;
}
