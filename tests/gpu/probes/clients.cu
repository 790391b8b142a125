// CUPTI's other interfaces beside the range profiler: callbacks, subscribers.
#include <atomic>

#include "probe.h"

namespace probe {
namespace {

std::atomic<int> calls{0};
void CUPTIAPI on_launch(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || call->callbackSite != CUPTI_API_ENTER || calls++ != 0)
    return;
  if (id != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel) return;
  const auto* arguments = static_cast<const cuLaunchKernel_params*>(call->functionParams);
  std::string layout;
  for (size_t i = 0; i < 16; ++i) {
    size_t offset = 0, size = 0;
    const CUresult result = cuFuncGetParamInfo(arguments->f, i, &offset, &size);
    if (result != CUDA_SUCCESS) {
      layout += "then result " + std::to_string(static_cast<int>(result));
      break;
    }
    layout += std::to_string(offset) + "+" + std::to_string(size) + " ";
  }
  say("cuFuncGetParamInfo inside a launch callback, kernel of (int, float, float*): offset+size",
      layout.c_str());
}

// What CUPTI reports of graphs' nodes, by their types.
struct Nodes {
  std::string inside;  // between ENTER and EXIT of a call
  std::string outside;
  bool in_call = false;
};
void CUPTIAPI on_node(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                      const void* data) {
  Nodes& nodes = *static_cast<Nodes*>(user);
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    nodes.in_call = static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_ENTER;
    return;
  }
  std::string seen = id == CUPTI_CBID_RESOURCE_GRAPH_CLONED ? "graph cloned " : "node of type ";
  if (id != CUPTI_CBID_RESOURCE_GRAPH_CLONED) {
    const auto* resource = static_cast<const CUpti_ResourceData*>(data);
    const auto* node = static_cast<const CUpti_GraphData*>(resource->resourceDescriptor);
    seen += std::to_string(static_cast<int>(node->nodeType)) + " ";
  }
  (nodes.in_call ? nodes.inside : nodes.outside) += seen;
}
void CUDART_CB host_function(void*) {}

}  // namespace

// Types: 0 kernel, 3 host function, 4 graph, 12 operations on memory.
void captured_nodes() {
  cudaStream_t stream = nullptr;
  observe(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  const auto captured = [&](auto&& enqueue) {
    cudaGraph_t graph = nullptr;
    observe(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
            "cudaStreamBeginCapture");
    enqueue();
    observe(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    return graph;
  };
  launch(10, stream);  // the kernel is loaded
  cudaGraphExec_t exec = nullptr;
  observe(cudaGraphInstantiateWithFlags(&exec, captured([&] { launch(10, stream); }), 0),
          "cudaGraphInstantiate");
  CUpti_SubscriberHandle subscriber{};
  Nodes nodes;
  observe(cuptiSubscribe(&subscriber, on_node, &nodes), "cuptiSubscribe");
  for (const auto id :
       {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc, CUPTI_DRIVER_TRACE_CBID_cuStreamWriteValue32_v2,
        CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch})
    observe(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id),
            "cuptiEnableCallback");
  for (const auto id : {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPH_CLONED})
    observe(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id),
            "cuptiEnableCallback");
  const auto look = [&](const std::string& what, auto&& enqueue) {
    captured([&] {
      nodes = {};
      enqueue();
      say(what + " under capture: reported inside the call", nodes.inside.c_str());
      say(what + " under capture: reported outside of it", nodes.outside.c_str());
    });
  };
  const auto word = reinterpret_cast<CUdeviceptr>(scratch);
  look("a kernel", [&] { launch(10, stream); });
  look("a host function",
       [&] { observe(cudaLaunchHostFunc(stream, host_function, nullptr), "cudaLaunchHostFunc"); });
  look("a wait for a value", [&] {
    const CUresult result = cuStreamWaitValue32(stream, word, 0, CU_STREAM_WAIT_VALUE_GEQ);
    say_count("result of cuStreamWaitValue32 under capture", static_cast<uint64_t>(result));
  });
  look("a graph", [&] { observe(cudaGraphLaunch(exec, stream), "cudaGraphLaunch"); });
  nodes = {};
  observe(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
  say("a graph that is launched: reported inside the call", nodes.inside.c_str());
  observe(cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

void callback() {
  microseconds_per_launch(
      100, 10);  // the context exists before anyone subscribes, as after a late attach
  say("launch, no subscriber", microseconds_per_launch(5000, 10), "us");
  CUpti_SubscriberHandle first{}, second{};
  observe(cuptiSubscribe(&first, on_launch, nullptr), "cuptiSubscribe");
  const CUptiResult again = cuptiSubscribe(&second, on_launch, nullptr);
  say_count("result of a second cuptiSubscribe in the process", static_cast<uint64_t>(again));
  say("launch, subscribed, no callback enabled", microseconds_per_launch(5000, 10), "us");
  observe(cuptiEnableCallback(1, first, CUPTI_CB_DOMAIN_DRIVER_API,
                              CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
          "cuptiEnableCallback");
  say("launch with a callback on cuLaunchKernel", microseconds_per_launch(5000, 10), "us");
  say_count("callbacks for 5000 launches", static_cast<uint64_t>(calls.load()));
  observe(cuptiUnsubscribe(first), "cuptiUnsubscribe");
  say("launch, unsubscribed", microseconds_per_launch(5000, 10), "us");
  observe(cuptiFinalize(), "cuptiFinalize");
  say("launch after cuptiFinalize", microseconds_per_launch(5000, 10), "us");
}

}  // namespace probe
