// CUfunction handles -> kernel functions.
//
// Handles are reused after a module is unloaded, so every entry is of an epoch that ends with any
// unload, and its name is compared with the one CUPTI gives for the launch.
//
// A function is what the driver says of it and what its code is (modules.h). Where the driver does
// not give the layout of the parameters (it can since CUDA 12.4), the cubin does. The module may be
// loaded by the very launch that asks, so the function is looked at again behind it. About a handle
// of unknown kind (kernel_handles.h) the driver is not asked: the cubin is all there is.
#pragma once
#include <collector/identity/mutex.h>
#include <collector/identity/signature_table.h>
#include <cuda.h>
#include <injector/handles/kernel_handles.h>
#include <injector/handles/modules.h>
#include <injector/process/edge.h>
#include <injector/vendor/driver_calls.h>

#include <atomic>
#include <unordered_map>

namespace flopinj {

struct ThreadContext;

// LaunchRecord's flags for launches of this function.
uint32_t work_flags(const KernelFunction&);

class Functions {
 public:
  Functions(Edge& edge, Modules& modules) : edge_(edge), modules_(modules) {}

  // `symbol` is the name CUPTI gives at a launch; null elsewhere (graph nodes), then the driver is
  // asked. Null when the function cannot be named or the collector's table is full. A hit takes no
  // lock.
  const KernelFunction* find(ThreadContext&, CUfunction, const char* symbol);
  // The same kernel, its parameters not readable (legacy launches).
  const KernelFunction* without_parameters(const KernelFunction&);
  // A call of ours, or the program's, gave these handles.
  void learn(const GivenHandles&);

  // EXIT of a call during which modules may have been loaded, or that gave handles.
  void module_call_exit(ThreadContext&, const ModuleFunction&, const CUpti_CallbackData&);
  // Behind a launch of the function during which a module was loaded: that is its module.
  void loaded_by_launch(ThreadContext&, CUfunction);
  void module_unloading();

 private:
  static constexpr size_t kMost = 65'536;
  const KernelFunction* find_shared(ThreadContext&, CUfunction, const char* symbol, uint32_t epoch);
  FunctionInfo describe(ThreadContext&, CUfunction, const char* symbol) const;
  // What the driver can be asked about: the function itself, or a kernel's in the current context.
  // Null for a handle of unknown kind. May load the kernel's module.
  CUfunction function_behind(CUfunction handle) const;
  CUmodule module_of(CUfunction) const;
  void ask_driver(CUfunction, FunctionInfo&) const;
  bool read_parameters(CUfunction, FunctionInfo&) const;

  Edge& edge_;
  Modules& modules_;
  KernelHandles handles_;
  std::atomic<uint32_t> epoch_{1};
  Mutex mutex_;
  std::unordered_map<CUfunction, const KernelFunction*> shared_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
