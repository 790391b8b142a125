// The few driver functions we call, taken from the libcuda.so.1 already in the process (we run
// inside it).
#pragma once
#include <cuda.h>

#include <chrono>
#include <cstdint>

namespace flopinj {

// clang-format off
#define FLOPINJ_CUDA_FUNCTIONS(f)                                       \
  f(DriverGetVersion, cuDriverGetVersion)                               \
  f(DeviceGet, cuDeviceGet)                                             \
  f(DeviceGetName, cuDeviceGetName)                                     \
  f(DeviceGetAttribute, cuDeviceGetAttribute)                           \
  f(DeviceTotalMem, cuDeviceTotalMem_v2)                                \
  f(DeviceGetUuid, cuDeviceGetUuid_v2)                                  \
  f(StreamIsCapturing, cuStreamIsCapturing)                             \
  f(StreamQuery, cuStreamQuery)                                         \
  f(StreamGetGreenCtx, cuStreamGetGreenCtx)                             \
  f(EventCreate, cuEventCreate)                                         \
  f(EventRecord, cuEventRecord)                                         \
  f(EventQuery, cuEventQuery)                                           \
  f(EventDestroy, cuEventDestroy_v2)                                    \
  f(MemGetInfo, cuMemGetInfo_v2)                                        \
  f(CtxPushCurrent, cuCtxPushCurrent_v2)                                \
  f(CtxPopCurrent, cuCtxPopCurrent_v2)                                  \
  f(ThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode)
// clang-format on

// CLOCK_MONOTONIC in nanoseconds.
inline uint64_t host_clock_ns() noexcept {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}

struct CudaApi {
#define FLOPINJ_MEMBER(name, symbol) decltype(&symbol) name = nullptr;
  FLOPINJ_CUDA_FUNCTIONS(FLOPINJ_MEMBER)
#undef FLOPINJ_MEMBER
  bool simulated = false;  // the driver is simgpu
  // Of simgpu: instrumented code takes nothing that a launch could lack.
  bool instruments_all = false;
  // Of simgpu: why the process cannot run on it, as it says itself; null: it can, or did not try.
  const char* (*refusal)() = nullptr;
  // The time that the program's calls and kernels take: CLOCK_MONOTONIC, but where the driver keeps
  // a clock of its own that nothing else moves. What measuring costs the program, and how long ago
  // it did something, is in this time. Any thread.
  uint64_t (*clock_ns)() noexcept = host_clock_ns;
  bool has_own_clock() const { return clock_ns != host_clock_ns; }
};

// What is not there stays null (older drivers lack some). False when no libcuda.so.1 is in the
// process.
bool load_cuda(CudaApi&);

// As cuDriverGetVersion has it: 12040 is CUDA 12.4. 0: not known. Can be asked before cuInit.
uint32_t driver_version(const CudaApi&);

// False where the driver has no device to talk to, by the files that it opens: a CUPTI that cannot
// start says nothing better than CUPTI_ERROR_UNKNOWN. A simulated GPU needs none.
bool has_gpu(const CudaApi&);

}  // namespace flopinj
