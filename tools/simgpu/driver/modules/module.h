// Modules of a context, libraries without one, and the functions in them.
#pragma once
#include "driver/modules/image.h"
#include "driver/runtime.h"

namespace simgpu {

// Gives the code's variables memory of the device, which begins as zeros; both must outlive it.
ptx::Allocate variables_of(ModuleCode& code, Device& device);

// Makes a module of the code, which was loaded from `content`, in the context, and informs the
// observer, which is shown a cubin.
std::shared_ptr<Module> make_module(const std::shared_ptr<Context>& context,
                                    std::shared_ptr<const ModuleCode> code,
                                    std::span<const std::byte> content);
void unload_module(const std::shared_ptr<Module>& module);

// The function of a CUkernel in a context, loading the library's module there if need be.
Found<Function> function_in(Kernel& kernel, const std::shared_ptr<Context>& context);

// The module of a library in the current context, loaded there if need be.
Found<Module> find_librarys_module(CUlibrary handle);

CUresult find_global(const Module& module, const char* name, CUdeviceptr* address, size_t* bytes);

// Behind a CUfunction, or a CUkernel cast to one as cuLaunchKernel allows.
// CUDA_ERROR_INVALID_HANDLE otherwise.
Found<Function> find_function(CUfunction handle);

// The function of a CUkernel in the current context. It loads the module where that is not loaded
// yet, which is an unsafe call while a stream is under capture. A CUfunction ends the program.
Found<Function> find_kernels_function(CUkernel handle);

// For questions about a function, as `call`, which CUDA does not allow for a CUkernel. What the
// real driver does with one is not documented; here it ends the program.
Found<Function> find_function_to_ask(CUfunction handle, const char* call);

// Name of the kernel behind the handle, valid for ever; null when the handle is not alive.
const char* symbol_of(CUfunction handle);

// The same text for the life of the process: tools keep kernel names longer than modules live.
const char* intern(const char* name);

}  // namespace simgpu
