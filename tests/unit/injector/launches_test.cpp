// Launches and graphs, behind the library's callback: what is recorded, and what is said.
#include <string>

#include "catch.h"
#include "unit/injector/played_gpu.h"

using namespace flopinj;
using test::PlayedGpu;

namespace {

struct Program {
  Program() { REQUIRE(gpu.enable()); }

  PlayedGpu::Call launch() {
    gpu.prepare(kernel);
    return kernel.call;
  }
  void make(const PlayedGpu::Call& call, CUresult result = CUDA_SUCCESS) {
    gpu.enter(call);
    gpu.exit(call, result);
  }
  uint64_t recorded() const { return gpu.collector.launches_made(); }
  bool said(const std::string& text) { return gpu.trace().find(text) != std::string::npos; }

  PlayedGpu gpu;
  PlayedGpu::Launch kernel;
};

const CUgraphExec kExec = reinterpret_cast<CUgraphExec>(uintptr_t{0x3000});
const CUstream kStream = reinterpret_cast<CUstream>(uintptr_t{0x2000});

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
}

TEST_CASE("a launch into a stream under capture is a node, and no launch") {
  Program program;
  const cuStreamBeginCapture_v2_params begin{kStream, CU_STREAM_CAPTURE_MODE_GLOBAL};
  program.make(program.gpu.call(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, begin));
  program.gpu.edge.cuda.StreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    return *status = CU_STREAM_CAPTURE_STATUS_ACTIVE, CUDA_SUCCESS;
  };
  program.gpu.prepare(program.kernel, kStream);
  program.make(program.kernel.call);
  CHECK(program.recorded() == 0);
  program.gpu.edge.cuda.StreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
  };
  program.gpu.prepare(program.kernel);
  program.make(program.kernel.call);
  CHECK(program.recorded() == 1);
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
  const cuGraphInstantiateWithParams_params parameters{
      &made, reinterpret_cast<CUgraph>(uintptr_t{0x4000}), &how};
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
  node.graph = reinterpret_cast<CUgraph>(uintptr_t{0x4000});
  node.node = reinterpret_cast<CUgraphNode>(uintptr_t{0x5000});
  node.nodeType = CU_GRAPH_NODE_TYPE_HOST;
  program.gpu.reports(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node);
  CHECK_FALSE(measures_beside_graph());
  program.gpu.busy = false;
}
