// The exported symbols of libcuda.so.1.
#include <cupti_driver_cbid.h>
#include <generated_cuda_meta.h>

#include <new>

#include "driver/api/api.h"
#include "driver/execution/clock.h"
#include "driver/execution/stream.h"
#include "driver/modules/module.h"
#include "driver/observer.h"
#include "driver/refusals.h"

// A call without parameters has no structure in CUPTI's headers.
struct cuCtxSynchronize_params {};
struct cuProfilerStart_params {};
struct cuProfilerStop_params {};

namespace simgpu {
namespace {

struct NoScope {};

// The kernel's name for the launches that CUPTI shows with one.
template <class Params>
const char* launch_symbol(const Params& params) {
  if constexpr (
      requires {
        params.gridDimX;
        params.f;
      } ||
      requires {
        params.config;
        params.f;
      }) {
    return symbol_of(params.f);
  } else {
    return nullptr;
  }
}

template <class Body>
CUresult guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

template <class Scope, uint32_t kHostNs, class Params, class Body>
CUresult report(uint32_t cbid, const char* name, const Params& params, Body body) noexcept {
  if (!Runtime::get().initialized()) return CUDA_ERROR_NOT_INITIALIZED;
  return guarded([&] {
    [[maybe_unused]] const Scope scope;
    ApiScope call(cbid, name, &params, launch_symbol(params), kHostNs);
    const CUresult result = guarded(body);
    call.finish(result);
    return result;
  });
}

}  // namespace
}  // namespace simgpu

#define SIMGPU_UNPACK(...) __VA_ARGS__
#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

#define SIMGPU_REPORTED(scope, name, symbol, params, args)                              \
  SIMGPU_EXPORT CUresult CUDAAPI symbol params {                                        \
    return simgpu::report<scope, simgpu::host_cost_ns(#name)>(                          \
        CUPTI_DRIVER_TRACE_CBID_##symbol, #symbol, symbol##_params{SIMGPU_UNPACK args}, \
        [&] { return simgpu::api::name args; });                                        \
  }
#define SIMGPU_API(version, base, name, params, args) \
  SIMGPU_REPORTED(simgpu::NoScope, name, name, params, args)
#define SIMGPU_PTSZ(version, base, name, params, args)       \
  SIMGPU_REPORTED(simgpu::NoScope, name, name, params, args) \
  SIMGPU_REPORTED(simgpu::DefaultStreamScope, name, name##_ptsz, params, args)
#define SIMGPU_PTDS(version, base, name, params, args)       \
  SIMGPU_REPORTED(simgpu::NoScope, name, name, params, args) \
  SIMGPU_REPORTED(simgpu::DefaultStreamScope, name, name##_ptds, params, args)
#define SIMGPU_EARLY(version, base, name, params, args)             \
  SIMGPU_EXPORT CUresult CUDAAPI name params {                      \
    return simgpu::guarded([&] { return simgpu::api::name args; }); \
  }
#include "driver/api/api_calls.def"

// What this library is, for programs that want to say so.
extern "C" __attribute__((visibility("default"))) const char* simgpu_version() {
  return "simgpu " SIMGPU_VERSION " (simulated CUDA driver)";
}

// Why the process cannot run here, as the driver says at its end; null: it can, or did not try.
extern "C" __attribute__((visibility("default"))) const char* simgpu_refusal() {
  return simgpu::refusal();
}

// The clock that the program's calls and kernels take time on, and nothing else. For tools whose
// decisions go by what the program takes. 0: there is none.
extern "C" __attribute__((visibility("default"))) uint64_t simgpu_clock_ns() {
  return simgpu::Runtime::get().settings().faults.no_clock ? 0 : simgpu::now_ns();
}

// Instrumented code takes no registers, no memory and no room of blocks here, so that every launch
// can be instrumented; but for faults in which it does, as on hardware.
extern "C" __attribute__((visibility("default"))) bool simgpu_instruments_all() {
  const simgpu::Faults& faults = simgpu::Runtime::get().settings().faults;
  return !faults.instrumented_cooperative && faults.instrumented_registers == 0 &&
         faults.instrumented_memory == 0;
}
