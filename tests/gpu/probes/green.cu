// Green contexts: what windows hold of launches in one.
#include "probe.h"

namespace probe {
namespace {

bool made(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return true;
  const char* name = "unknown";
  cuGetErrorName(result, &name);
  say(std::string("error of ") + call, name);
  return false;
}

// A green context of 16 multiprocessors; null where there is none to be had.
CUgreenCtx make_green() {
  CUdevice device = 0;
  cuCtxGetDevice(&device);
  CUdevResource all{}, part{};
  unsigned int groups = 1;
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
  if (!made(cuDeviceGetDevResource(device, &all, CU_DEV_RESOURCE_TYPE_SM),
            "cuDeviceGetDevResource") ||
      !made(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 16),
            "cuDevSmResourceSplitByCount") ||
      !made(cuDevResourceGenerateDesc(&descriptor, &part, 1), "cuDevResourceGenerateDesc") ||
      !made(cuGreenCtxCreate(&green, descriptor, device, CU_GREEN_CTX_DEFAULT_STREAM),
            "cuGreenCtxCreate"))
    return nullptr;
  return green;
}

void CUPTIAPI note_context(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  *static_cast<CUcontext*>(user) = static_cast<const CUpti_CallbackData*>(data)->context;
}

// Two launches on the stream, in a window of the current context.
void window(const std::string& what, RangeWindows& windows, CUstream stream, const Metrics& set) {
  if (!windows.plan(set) || !windows.open(16)) return;
  launch(10, stream);
  launch(11, stream);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const size_t ranges = windows.close();
  say_count(what + ": ranges of 2 launches", ranges);
  for (size_t i = 0; i < ranges && i < 2; ++i)
    say(what + ": first metric of range " + std::to_string(i), windows.values(i)[0], "");
}

}  // namespace

void green_context() {
  const CUgreenCtx green = make_green();
  CUcontext primary = nullptr, converted = nullptr;
  cuCtxGetCurrent(&primary);
  if (green == nullptr || !made(cuCtxFromGreenCtx(&converted, green), "cuCtxFromGreenCtx")) return;
  say("handle of the converted context", converted == primary ? "the primary's" : "its own");
  CUstream stream = nullptr;
  if (!made(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0),
            "cuGreenCtxStreamCreate"))
    return;

  CUcontext told = nullptr;
  CUpti_SubscriberHandle subscriber{};
  observe(cuptiSubscribe(&subscriber, note_context, &told), "cuptiSubscribe");
  observe(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                              CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
          "cuptiEnableCallback");
  launch(10, stream);
  say("context that callbacks tell, a stream of the green one, the primary current",
      told == primary     ? "the primary"
      : told == converted ? "the converted"
                          : "another");
  cuCtxSetCurrent(converted);
  launch(10, stream);
  say("context that callbacks tell, the converted one current", told == primary ? "the primary"
                                                                : told == converted
                                                                    ? "the converted"
                                                                    : "another");
  observe(cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");

  cuCtxSetCurrent(primary);
  RangeWindows of_primary;
  if (of_primary.enable()) {
    window("window of the primary, its default stream", of_primary, nullptr, kInstructions);
    window("window of the primary, a green stream", of_primary, stream, kInstructions);
    window("cycles, its default stream", of_primary, nullptr, {kHardware[1]});
    window("cycles, a green stream", of_primary, stream, {kHardware[1]});
    of_primary.disable();
  }
  cuCtxSetCurrent(converted);
  RangeWindows of_green;
  if (of_green.enable()) {
    window("window of the green context", of_green, stream, kInstructions);
    of_green.disable();
  }
  cuCtxSetCurrent(primary);
}

}  // namespace probe
