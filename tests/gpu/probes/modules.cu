// Kernels of modules loaded at run time: handles of both kinds asked for their parameters, a first
// launch under capture, a module loaded inside an instrumented window.
#include <set>

#include "in_child.h"
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

std::string answer(CUresult result, const std::string& value = "") {
  const char* name = "unknown";
  cuGetErrorName(result, &name);
  return result == CUDA_SUCCESS && !value.empty() ? value : name;
}

// A question about a kernel, asked with a handle of the right kind or of the other one.
struct Question {
  const char* call;
  bool of_function;  // else of a CUkernel
  std::string (*ask)(void* handle);
};
const Question kQuestions[] = {
    {"cuFuncGetParamInfo", true,
     [](void* handle) {
       size_t offset = 0, size = 0;
       const CUresult result =
           cuFuncGetParamInfo(static_cast<CUfunction>(handle), 0, &offset, &size);
       return answer(result, "parameter 0 at " + std::to_string(offset) + ", " +
                                 std::to_string(size) + " bytes");
     }},
    {"cuFuncGetAttribute", true,
     [](void* handle) {
       int registers = 0;
       const CUresult result = cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
                                                  static_cast<CUfunction>(handle));
       return answer(result, std::to_string(registers) + " registers");
     }},
    {"cuFuncGetModule", true,
     [](void* handle) {
       CUmodule module = nullptr;
       return answer(cuFuncGetModule(&module, static_cast<CUfunction>(handle)));
     }},
    {"cuKernelGetFunction", false,
     [](void* handle) {
       CUfunction function = nullptr;
       return answer(cuKernelGetFunction(&function, static_cast<CUkernel>(handle)));
     }},
};

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
  for (const char* name : {"with_parameter", "without_parameter"}) {
    const CUfunction function = function_of(module, name);
    CUkernel kernel = nullptr;
    if (!works(cuLibraryGetKernel(&kernel, library, name), "cuLibraryGetKernel")) continue;
    if (part.empty()) {
      works(launch_handle(reinterpret_cast<CUfunction>(kernel)), "cuLaunchKernel of a CUkernel");
      observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
    for (const Question& question : kQuestions) {
      const bool wrong = part == question.call;
      if (!wrong && !part.empty()) continue;
      const bool function_given = question.of_function != wrong;
      void* const handle = function_given ? static_cast<void*>(function) : kernel;
      say(std::string(question.call) + " of a " + (function_given ? "CUfunction" : "CUkernel") +
              ", " + name,
          question.ask(handle).c_str());
    }
  }
  // A handle of the other kind the driver may not survive.
  if (!part.empty()) return;
  for (const Question& question : kQuestions) in_child("library_kernel", question.call);
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
