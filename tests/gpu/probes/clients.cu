// CUPTI's other interfaces beside the range profiler: activity records, callbacks, subscribers.
#include <atomic>
#include <cstdlib>

#include "probe.h"

namespace probe {
namespace {

std::atomic<int> records{0};
void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most) {
  *size = size_t{1} << 20;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, *size));
  *most = 0;
}
void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) ++records;
  std::free(buffer);
}
void say_records(const char* what, int launches) {
  const double each = microseconds_per_launch(launches, 10);
  observe(cuptiActivityFlushAll(1), "cuptiActivityFlushAll");
  say(std::string(what) + ": launch", each, "us");
  say_count(std::string(what) + ": kernel records of " + std::to_string(launches),
            records.exchange(0));
}

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

void activity() {
  observe(cuptiActivityRegisterCallbacks(give_buffer, take_buffer),
          "cuptiActivityRegisterCallbacks");
  observe(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
  say_records("activity alone", 1000);
  RangeWindows windows;
  if (!windows.enable()) return;
  for (const Metrics* metrics : {&kInstructions, &kHardware}) {
    if (!windows.plan(*metrics) || !windows.open(256)) continue;
    say_records((std::string("activity in a window of ") + metrics->front()).c_str(), 200);
    say_count(std::string("ranges of 200 beside activity, ") + metrics->front(), windows.close());
  }
  say_records("activity after the windows", 1000);
  windows.disable();
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
