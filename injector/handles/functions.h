// CUfunction handles -> kernel functions.
//
// Handles are reused after a module is unloaded, so every entry is of an epoch that ends with any
// unload, and its name is compared with the one CUPTI gives for the launch.
//
// A function is what its code is and says (modules.h): the image has parameters, registers and
// shared memory, and the driver is asked nothing. Whose code it is follows from the call that gave
// the handle (kernel_handles.h). The module may be loaded by the very launch that looks for the
// function, so it is looked at again behind it.
#pragma once
#include <collector/base/mutex.h>
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

  // `symbol` is the name CUPTI gives at a launch; null elsewhere (graph nodes), then it is the one
  // that the handle was given by. Null when the function cannot be named or the collector's table
  // is full. A hit takes no lock.
  const KernelFunction* find(ThreadContext&, CUfunction, const char* symbol);
  // The same kernel, its parameters not readable (legacy launches).
  const KernelFunction* without_parameters(const KernelFunction&);
  // EXIT of a call during which modules may have been loaded, or that gave handles.
  void module_call_exit(ThreadContext&, const ModuleFunction&, const CUpti_CallbackData&);
  // Of one kernel there are two handles, of which no call gave the first to the program as such.
  void same_kernel(CUfunction, CUfunction known);
  // Behind a call for one kernel: a module that was loaded meanwhile is that kernel's.
  void loaded_for(ThreadContext&, CUfunction);
  void module_unloading();

 private:
  static constexpr size_t kMost = 65'536;
  const KernelFunction* find_shared(CUfunction, const char* symbol, uint32_t epoch);
  struct Known {
    const KernelFunction* function;
    bool guessed;  // its code, by the name
  };
  FunctionInfo describe(CUfunction, const char* symbol, bool& guessed) const;
  // Whose code is known now: what was guessed is looked at again.
  void code_shown();

  Edge& edge_;
  Modules& modules_;
  KernelHandles handles_;
  std::atomic<uint32_t> epoch_{1};
  Mutex mutex_;
  std::unordered_map<CUfunction, Known> shared_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
