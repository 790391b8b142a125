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

}  // namespace

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
