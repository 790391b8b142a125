// Windows as libflopinj.so has them: opened and closed inside launch callbacks; and what becomes of
// a capture that another stream is in.
#include "probe.h"

namespace probe {
namespace {

// Where in the sequence of launches a window is opened and read. Launches are counted from 0.
struct Plan {
  const char* what;
  int first;                 // the window is opened at ENTER of this launch
  int close;                 // and closed at this launch,
  CUpti_ApiCallbackSite at;  // at this site
  bool decode_each;          // read without Stop at each ENTER in between
};

struct InCallback {
  Plan plan;
  RangeWindows windows;
  int calls = 0;  // of cuLaunchKernel so far
  bool open = false;
  std::string seen, decoded;
};

void CUPTIAPI on_launch(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                        const void* data) {
  auto& probe = *static_cast<InCallback*>(user);
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || (id != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel &&
                                               id != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx))
    return;
  const bool enter = call->callbackSite == CUPTI_API_ENTER;
  if (probe.open && probe.calls == probe.plan.close && call->callbackSite == probe.plan.at) {
    probe.open = false;
    probe.seen = probe.windows.first_values(probe.windows.close());
  } else if (enter && probe.calls == probe.plan.first) {
    probe.open = probe.windows.open(16);
  } else if (enter && probe.open && probe.plan.decode_each) {
    probe.decoded += std::to_string(probe.windows.decode()) + " ";
  }
  if (!enter) ++probe.calls;
}

void follow(const Plan& plan) {
  for (const Metrics* metrics : {&kInstructions, &kHardware}) {
    InCallback probe;
    probe.plan = plan;
    if (!probe.windows.enable() || !probe.windows.plan(*metrics)) return;
    CUpti_SubscriberHandle subscriber{};
    if (observe(cuptiSubscribe(&subscriber, on_launch, &probe), "cuptiSubscribe") != CUPTI_SUCCESS)
      return;
    for (const auto id :
         {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx})
      observe(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id),
              "cuptiEnableCallback");
    for (int i = 0; i < 8; ++i) launch(10 * (i + 1));
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::string what = std::string(plan.what) + ", " + metrics->front();
    say_count(what + ": callbacks", static_cast<uint64_t>(probe.calls));
    if (plan.decode_each) say(what + ": ranges decoded at each ENTER", probe.decoded.c_str());
    say(what + ": values", probe.seen.c_str());
    observe(cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
    probe.windows.disable();
  }
}

}  // namespace

void in_callback() {
  follow({"opened at ENTER of launch 3 of 8, closed at EXIT of launch 6", 2, 5, CUPTI_API_EXIT,
          false});
}

void close_at_enter() {
  follow({"opened at ENTER of launch 3 of 8, closed at ENTER of launch 7", 2, 6, CUPTI_API_ENTER,
          false});
}

void decode_without_stop() {
  follow({"opened at ENTER of launch 3 of 8, decoded at each ENTER, closed at EXIT of launch 6", 2,
          5, CUPTI_API_EXIT, true});
}

void beside_capture() {
  RangeWindows windows;
  if (!windows.enable()) return;
  cudaStream_t captured = nullptr, other = nullptr;
  observe(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking), "cudaStreamCreate");
  observe(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "cudaStreamCreate");
  const std::pair<const char*, cudaStreamCaptureMode> modes[] = {
      {"global", cudaStreamCaptureModeGlobal},
      {"thread-local", cudaStreamCaptureModeThreadLocal},
      {"relaxed", cudaStreamCaptureModeRelaxed}};
  for (const auto& [name, mode] : modes) {
    if (!windows.plan(kInstructions)) continue;
    const std::string what = std::string("window beside a capture, mode ") + name;
    observe(cudaStreamBeginCapture(captured, mode), "cudaStreamBeginCapture");
    launch(10, captured);
    if (windows.open(16)) {
      launch(20, other);
      say_count(what + ": ranges of 1 launch on another stream", windows.close());
    }
    launch(30, captured);
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(captured, &graph);
    say(what + ": the capture ends with", cudaGetErrorName(ended));
    size_t nodes = 0;
    if (ended == cudaSuccess && graph != nullptr) {
      observe(cudaGraphGetNodes(graph, nullptr, &nodes), "cudaGraphGetNodes");
      observe(cudaGraphDestroy(graph), "cudaGraphDestroy");
    }
    say_count(what + ": nodes of 2 captured launches", nodes);
    cudaGetLastError();
    observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  windows.disable();
}

}  // namespace probe
