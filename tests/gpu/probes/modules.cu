// Kernels of modules loaded at run time: handles of both kinds asked for their parameters, a first
// launch under capture, a module loaded inside an instrumented window.
#include <set>

#include "probe.h"

namespace probe {
namespace {

// Two kernels that execute ten fused multiply-adds per thread, with and without a parameter.
constexpr char kPtx[] = R"(
.version 7.0
.target sm_75
.address_size 64
.global .f32 place[32];
.visible .entry with_parameter(.param .u64 out) {
  .reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  st.global.f32 [%rd1], %f1;
  ret;
}
.visible .entry without_parameter() {
  .reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .f32 %f<2>;
  mov.u64 %rd1, place;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  fma.rn.f32 %f1, %f1, %f1, %f1; fma.rn.f32 %f1, %f1, %f1, %f1;
  st.global.f32 [%rd1], %f1;
  ret;
}
)";

bool works(CUresult result, const std::string& call) {
  if (result == CUDA_SUCCESS) return true;
  const char* name = "unknown";
  cuGetErrorName(result, &name);
  say("error of " + call, name);
  return false;
}

CUfunction function_of(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  works(cuModuleGetFunction(&function, module, name), "cuModuleGetFunction");
  return function;
}

CUresult launch_handle(CUfunction function, CUstream stream = nullptr) {
  void* arguments[] = {&scratch};
  return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
}

void answered(const std::string& what, const char* call, CUresult result) {
  const char* name = "unknown";
  cuGetErrorName(result, &name);
  say(what + ": " + call, name);
}

// What may be asked of a CUfunction. A crash ends the probe after a line "asking".
void ask_function(const std::string& what, CUfunction handle) {
  size_t offset = 0, size = 0;
  say(what, "asking cuFuncGetParamInfo");
  answered(what, "cuFuncGetParamInfo of parameter 0",
           cuFuncGetParamInfo(handle, 0, &offset, &size));
  CUmodule module = nullptr;
  say(what, "asking cuFuncGetModule");
  answered(what, "cuFuncGetModule", cuFuncGetModule(&module, handle));
  int registers = 0;
  say(what, "asking cuFuncGetAttribute");
  answered(what, "cuFuncGetAttribute",
           cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, handle));
}

// And of a CUkernel.
void ask_kernel(const std::string& what, CUkernel handle) {
  CUfunction function = nullptr;
  say(what, "asking cuKernelGetFunction");
  answered(what, "cuKernelGetFunction", cuKernelGetFunction(&function, handle));
}

struct Asking {
  bool relaxed;
  CUresult result = CUDA_ERROR_UNKNOWN;
};
void CUPTIAPI ask_at_enter(void* user, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite != CUPTI_API_ENTER) return;
  auto& asking = *static_cast<Asking*>(user);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (asking.relaxed) cuThreadExchangeStreamCaptureMode(&mode);
  const auto* arguments = static_cast<const cuLaunchKernel_params*>(call->functionParams);
  size_t offset = 0, size = 0;
  asking.result = cuFuncGetParamInfo(arguments->f, 0, &offset, &size);
  int registers = 0;
  cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, arguments->f);
  if (asking.relaxed) cuThreadExchangeStreamCaptureMode(&mode);
}

}  // namespace

void library_kernel() {
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  if (!works(cuModuleLoadData(&module, kPtx), "cuModuleLoadData") ||
      !works(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0),
             "cuLibraryLoadData"))
    return;
  // First what is allowed; then a handle of the other kind, which the driver may not survive.
  for (const bool wrong : {false, true})
    for (const char* name : {"with_parameter", "without_parameter"}) {
      const CUfunction function = function_of(module, name);
      CUkernel kernel = nullptr;
      if (!works(cuLibraryGetKernel(&kernel, library, name), "cuLibraryGetKernel")) continue;
      const auto cast = reinterpret_cast<CUfunction>(kernel);
      if (!wrong) {
        works(launch_handle(cast), "cuLaunchKernel of a CUkernel");
        observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
        ask_function(std::string("CUfunction, ") + name, function);
        ask_kernel(std::string("CUkernel, ") + name, kernel);
      } else {
        ask_kernel(std::string("CUfunction as CUkernel, ") + name,
                   reinterpret_cast<CUkernel>(function));
        ask_function(std::string("CUkernel as CUfunction, ") + name, cast);
      }
    }
}

namespace {

// The handles that calls gave, and the one that the CUDA runtime launched by.
struct Given {
  std::set<const void*> functions, kernels;
  const void* launched = nullptr;
};

void CUPTIAPI note_handles(void* user, CUpti_CallbackDomain, CUpti_CallbackId id,
                           const void* data) {
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  auto& given = *static_cast<Given*>(user);
  const void* p = call->functionParams;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
    given.launched = static_cast<const cuLaunchKernel_params*>(p)->f;
  if (call->callbackSite != CUPTI_API_EXIT) return;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction)
    given.functions.insert(*static_cast<const cuModuleGetFunction_params*>(p)->hfunc);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction)
    given.functions.insert(*static_cast<const cuKernelGetFunction_params*>(p)->pFunc);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel)
    given.kernels.insert(*static_cast<const cuLibraryGetKernel_params*>(p)->pKernel);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLibraryEnumerateKernels) {
    const auto& all = *static_cast<const cuLibraryEnumerateKernels_params*>(p);
    given.kernels.insert(all.kernels, all.kernels + all.numKernels);
  }
}

}  // namespace

// It begins before the CUDA runtime does.
void handles_given() {
  Given given;
  CUpti_SubscriberHandle subscriber{};
  observe(cuptiSubscribe(&subscriber, note_handles, &given), "cuptiSubscribe");
  observe(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API), "cuptiEnableDomain");
  observe(cudaMalloc(&scratch, size_t{1} << 24), "cudaMalloc");
  launch(10);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  observe(cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
  const char* kind = "a handle that no call gave";
  if (given.functions.count(given.launched) != 0) kind = "a CUfunction that a call gave";
  if (given.kernels.count(given.launched) != 0) kind = "a CUkernel that a call gave";
  if (given.launched != nullptr) say("the CUDA runtime launches by", kind);
  say_count("CUfunctions that calls gave", given.functions.size());
  say_count("CUkernels that calls gave", given.kernels.size());
}

void capture_first_launch() {
  for (const bool relaxed : {false, true}) {
    CUmodule module = nullptr;
    if (!works(cuModuleLoadData(&module, kPtx), "cuModuleLoadData")) return;
    const CUfunction function = function_of(module, "with_parameter");
    Asking asking{relaxed};
    CUpti_SubscriberHandle subscriber{};
    observe(cuptiSubscribe(&subscriber, ask_at_enter, &asking), "cuptiSubscribe");
    observe(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel),
            "cuptiEnableCallback");
    CUstream stream = nullptr;
    works(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    works(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
    works(launch_handle(function, stream), "cuLaunchKernel under capture");
    CUgraph graph = nullptr;
    const std::string what =
        std::string("first launch of a kernel under global capture, asked in ") +
        (relaxed ? "relaxed mode" : "the mode of the thread");
    const CUresult ended = cuStreamEndCapture(stream, &graph);
    const char *answer = "unknown", *end = "unknown";
    cuGetErrorName(asking.result, &answer);
    cuGetErrorName(ended, &end);
    say(what + ": cuFuncGetParamInfo", answer);
    say(what + ": cuStreamEndCapture", end);
    observe(cuptiUnsubscribe(subscriber), "cuptiUnsubscribe");
  }
}

void module_in_window() {
  RangeWindows windows;
  if (!windows.enable() || !windows.plan(kInstructions) || !windows.open(16)) return;
  launch(10);
  CUmodule module = nullptr;
  if (!works(cuModuleLoadData(&module, kPtx), "cuModuleLoadData in a window")) return;
  const CUfunction function = function_of(module, "with_parameter");
  for (int i = 0; i < 3; ++i) works(launch_handle(function), "cuLaunchKernel");
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const size_t ranges = windows.close();
  say_count("ranges of 4 launches, the last 3 of a module loaded in the window", ranges);
  for (size_t i = 0; i < ranges; ++i)
    say_count("multiply-adds per thread in range " + std::to_string(i) + ", 10 executed",
              static_cast<uint64_t>(steps_of(windows.values(i))));
  if (!windows.open(16)) return;
  works(launch_handle(function), "cuLaunchKernel");
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (windows.close() == 1)
    say_count("multiply-adds per thread in the next window, 10 executed",
              static_cast<uint64_t>(steps_of(windows.values(0))));
  windows.disable();
}

}  // namespace probe
