// The driver's functions that we ask CUPTI to report, as data: one table. A new function is one row
// of it, and a reader where its parameter structure is new.
//
// The parameter structure of a callback id never changes, whatever CUPTI is running: a new
// structure gets a new id. Functions that differ only in the default stream (_ptsz) share theirs.
#pragma once
#include <cuda.h>
#include <cupti.h>
#include <injector/vendor/graph_calls.h>
#include <injector/vendor/launch_calls.h>
#include <injector/vendor/module_calls.h>

#include <cstdint>
#include <span>
#include <variant>

namespace flopinj {

// Launches kernels. At ENTER and EXIT alike.
struct LaunchFunction {
  LaunchKind kind;
  bool per_thread_stream;  // the null stream is the thread's own
  // Null for several devices: read_device_launch().
  void (*read)(const void* parameters, LaunchCall&);
};

// Makes or changes a graph, or begins or ends a capture.
struct GraphFunction {
  GraphAction action;
  // At EXIT; of a call that failed, only what ends a capture may be read.
  void (*read)(const void* parameters, GraphCall&);
};

// Loads a module or a library, or gives or names handles of kernels, and may load their module. At
// EXIT of a call that succeeded.
struct ModuleFunction {
  ModuleCall (*read)(const void* parameters);
};

// Puts work into a stream that waits for the host or for a value in memory. At ENTER and EXIT
// alike.
struct WaitFunction {
  bool per_thread_stream;  // the null stream is the thread's own
  CUstream (*stream)(const void* parameters);
};

// Destroys a stream, whose work goes on. At ENTER.
struct StreamEndFunction {
  CUstream (*stream)(const void* parameters);
};

// Waits for the GPU, or says whether something has ended. At ENTER and EXIT alike; asked for only
// where counters are read.
struct SyncFunction {
  // kThisContext: the one that is current; kContext: the one of the parameters.
  enum class Of : uint8_t { kSomething, kStream, kThisContext, kContext } of = Of::kSomething;
  bool per_thread_stream = false;  // of a stream: the null one is the thread's own
  CUstream (*stream)(const void* parameters) = nullptr;
};

// Makes a green context.
struct GreenFunction {};

struct DriverCall {
  uint32_t cbid;
  std::variant<LaunchFunction, GraphFunction, ModuleFunction, WaitFunction, StreamEndFunction,
               SyncFunction, GreenFunction>
      function;
};

// At EXIT: the call returned CUDA_SUCCESS.
inline bool succeeded(const CUpti_CallbackData& data) {
  return data.functionReturnValue != nullptr &&
         *static_cast<const CUresult*>(data.functionReturnValue) == CUDA_SUCCESS;
}

// At EXIT of a call that did not.
inline CUresult result_of(const CUpti_CallbackData& data) {
  if (data.functionReturnValue == nullptr) return CUDA_ERROR_UNKNOWN;
  return *static_cast<const CUresult*>(data.functionReturnValue);
}

std::span<const DriverCall> driver_calls();
// Null for a call that is not in the table. Constant time.
const DriverCall* find_driver_call(uint32_t cbid) noexcept;

}  // namespace flopinj
