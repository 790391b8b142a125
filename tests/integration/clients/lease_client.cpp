// Who holds the counters of the device: lease_client CASE. Prints what it sees.
//   rest      one kernel, nothing until the counters are free, then another one for 5 s
//   rest_3    the same with 3 s of nothing
//   contexts  two contexts of one device launch in turn, for 2 s
//
// It looks by enabling CUPTI's range profiler itself, which is refused where it is enabled already.
#include <cupti_range_profiler.h>
#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "client.h"

namespace {

using client::check;
using client::Gpu;
using namespace std::chrono_literals;

template <class Function>
Function* cupti(const char* name) {
  void* const library = dlopen("libcupti.so.13", RTLD_LAZY);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library, name));
}

bool is_free(CUcontext context) {
  const auto enable = cupti<decltype(cuptiRangeProfilerEnable)>("cuptiRangeProfilerEnable");
  const auto disable = cupti<decltype(cuptiRangeProfilerDisable)>("cuptiRangeProfilerDisable");
  if (enable == nullptr || disable == nullptr) std::exit(3);
  CUpti_RangeProfiler_Enable_Params on{};
  on.structSize = CUpti_RangeProfiler_Enable_Params_STRUCT_SIZE;
  on.ctx = context;
  if (enable(&on) != CUPTI_SUCCESS) return false;
  CUpti_RangeProfiler_Disable_Params off{};
  off.structSize = CUpti_RangeProfiler_Disable_Params_STRUCT_SIZE;
  off.pRangeProfilerObject = on.pRangeProfilerObject;
  if (disable(&off) != CUPTI_SUCCESS) std::exit(3);
  return true;
}

// How often the body was run.
template <class Body>
int repeat_for(std::chrono::milliseconds duration, Body body) {
  const auto end = std::chrono::steady_clock::now() + duration;
  int times = 0;
  for (; std::chrono::steady_clock::now() < end; ++times) {
    body();
    std::this_thread::sleep_for(5ms);
  }
  return times;
}

void rest(const Gpu& gpu, bool until_free) {
  for (int i = 0; i < 60; ++i) gpu.axpy(64);
  if (until_free) {
    std::puts(is_free(gpu.context) ? "free" : "held");
    while (!is_free(gpu.context)) std::this_thread::sleep_for(100ms);
    std::puts("free");
  } else {
    std::this_thread::sleep_for(3s);
  }
  std::printf("launches %d\n", repeat_for(5s, [&] { gpu.dot(10); }));
}

void contexts(const Gpu& first, const char* program) {
  CUcontext context = nullptr;
#if CUDA_VERSION >= 13000
  check(cuCtxCreate(&context, nullptr, 0, first.device), "cuCtxCreate");
#else
  check(cuCtxCreate(&context, 0, first.device), "cuCtxCreate");
#endif
  Gpu second(program);  // what it has made is the first context's
  second.context = context;
  second.use();
  second.load();
  check(cuMemAlloc(&second.x, Gpu::kBytes), "cuMemAlloc");
  check(cuMemAlloc(&second.y, Gpu::kBytes), "cuMemAlloc");
  std::printf("launches %d\n", repeat_for(2s, [&] {
                first.use();
                first.axpy(64);
                second.use();
                second.dot(10);
              }));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  const Gpu gpu(argv[0]);
  if (which == "rest" || which == "rest_3")
    rest(gpu, which == "rest");
  else if (which == "contexts")
    contexts(gpu, argv[0]);
  else
    return 2;
  Gpu::synchronize();
}
