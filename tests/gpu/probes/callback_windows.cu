// Windows as libflopinj.so has them: opened and closed inside launch callbacks; and what becomes of
// a capture that another stream is in.
#include "probe.h"

namespace probe {
namespace {

struct InCallback {
  RangeWindows windows;
  int calls = 0;  // of cuLaunchKernel so far
  bool open = false;
  std::string seen;
};

constexpr int kFirst = 2, kLast = 5;  // launches, counted from 0, that the window holds

void CUPTIAPI on_launch(void* user, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                        const void* data) {
  auto& probe = *static_cast<InCallback*>(user);
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || (id != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel &&
                                               id != CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx))
    return;
  if (call->callbackSite == CUPTI_API_ENTER) {
    if (probe.calls == kFirst) probe.open = probe.windows.open(16);
    return;
  }
  if (probe.calls++ != kLast || !probe.open) return;
  probe.open = false;
  const size_t ranges = probe.windows.close();
  for (size_t i = 0; i < ranges; ++i)
    probe.seen +=
        (i == 0 ? "" : " ") + std::to_string(static_cast<long long>(probe.windows.values(i)[0]));
}

}  // namespace

void in_callback() {
  for (const Metrics* metrics : {&kInstructions, &kHardware}) {
    InCallback probe;
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
    const std::string what =
        std::string("opened in the callback of launch 3 of 8, closed in that of 6, ") +
        metrics->front();
    say_count(what + ": callbacks", static_cast<uint64_t>(probe.calls));
    say(what + ": values", probe.seen.c_str());
    observe(cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
    probe.windows.disable();
  }
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
