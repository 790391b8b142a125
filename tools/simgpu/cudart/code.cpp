// What nvcc's code registers as a program or a library starts: fat binaries, and under which
// addresses of the host the program names their kernels and variables. A fat binary is loaded as
// one library of the driver when something of it is used first.
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudart/exporting.h"

namespace simgpu::cudart {
namespace {

struct FatBinary {
  const void* image = nullptr;
  std::once_flag once;
  CUlibrary library = nullptr;
  CUresult error = CUDA_SUCCESS;
  struct Managed {
    void** host;
    std::string name;
  };
  std::vector<Managed> managed;

  // For a kernel or a variable, the first that is used: it is named where the code cannot run.
  CUresult load(const char* kind, const std::string& name) {
    std::call_once(once, [&] {
      error = cuLibraryLoadData(&library, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
      if (error == CUDA_ERROR_NO_BINARY_FOR_GPU) complain(kind, name.c_str());
    });
    return error;
  }

 private:
  static void complain(const char* kind, const char* name) {
    int major = 0, minor = 0;
    const int device = this_thread().device;
    cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    std::fprintf(
        stderr,
        "simgpu: %s %s is in code without PTX for compute capability %d.%d: compile it with "
        "-gencode arch=compute_%d%d,code=compute_%d%d or an older one\n",
        kind, name, major, minor, major, minor, major, minor);
  }
};

struct Symbol {
  FatBinary* of = nullptr;
  std::string name;
  CUkernel kernel = nullptr;
};

struct Code {
  std::mutex mutex;
  std::map<const void*, Symbol> kernels, variables;  // by the host's address
  std::atomic<cudaError_t> kernel_error{cudaErrorInvalidDeviceFunction};
};

// It outlives static objects: programs launch from their destructors.
Code& code() {
  static auto* const one = new Code;
  return *one;
}

cudaError_t kernel_of(Symbol& symbol, CUfunction* kernel) {
  if (symbol.kernel == nullptr) {
    CUresult error = symbol.of->load("kernel", symbol.name);
    if (error == CUDA_SUCCESS)
      error = cuLibraryGetKernel(&symbol.kernel, symbol.of->library, symbol.name.c_str());
    if (error == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
    if (error != CUDA_SUCCESS) return as_runtime(error);
  }
  *kernel = reinterpret_cast<CUfunction>(symbol.kernel);
  return cudaSuccess;
}

// Managed variables: where the device has them is where the host finds them, too.
CUresult place_managed(FatBinary& of) {
  CUresult error = CUDA_SUCCESS;
  for (const auto& one : of.managed) {
    CUdeviceptr address = 0;
    error = of.load("variable", one.name);
    if (error == CUDA_SUCCESS)
      error = cuLibraryGetGlobal(&address, nullptr, of.library, one.name.c_str());
    if (error != CUDA_SUCCESS) break;
    *one.host = reinterpret_cast<void*>(address);
  }
  return error;
}

FatBinary& of_handle(void** handle) { return *reinterpret_cast<FatBinary*>(handle); }

std::vector<Configuration>& configurations() {
  static thread_local std::vector<Configuration> pending;
  return pending;
}

}  // namespace

cudaError_t find_kernel(const void* function, CUfunction* kernel) {
  if (kernel == nullptr) return cudaErrorInvalidValue;
  if (function == nullptr) return code().kernel_error;  // __cudaGetKernel found none
  {
    const std::lock_guard lock(code().mutex);
    if (const auto it = code().kernels.find(function); it != code().kernels.end())
      return kernel_of(it->second, kernel);
  }
  const char* name = nullptr;
  auto* const handle = static_cast<CUkernel>(const_cast<void*>(function));
  if (cuKernelGetName(&name, handle) != CUDA_SUCCESS &&
      cuFuncGetName(&name, reinterpret_cast<CUfunction>(handle)) != CUDA_SUCCESS)
    return cudaErrorInvalidDeviceFunction;
  *kernel = reinterpret_cast<CUfunction>(handle);
  return cudaSuccess;
}

cudaError_t find_variable(const void* symbol, CUdeviceptr* address, size_t* bytes) {
  const std::lock_guard lock(code().mutex);
  const auto it = code().variables.find(symbol);
  if (it == code().variables.end()) return cudaErrorInvalidSymbol;
  CUresult error = it->second.of->load("variable", it->second.name);
  if (error == CUDA_SUCCESS)
    error = cuLibraryGetGlobal(address, bytes, it->second.of->library, it->second.name.c_str());
  return error == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : as_runtime(error);
}

}  // namespace simgpu::cudart

using namespace simgpu::cudart;

// As crt/host_runtime.h and crt/device_functions.h declare them.

CUDART_EXPORT void** __cudaRegisterFatBinary(void* wrapper) {
  auto* const one = new FatBinary;
  one->image = wrapper;
  return reinterpret_cast<void**>(one);
}

CUDART_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}

// Of a program that ends, or a library that is unloaded. What was loaded stays: work may use it.
CUDART_EXPORT void __cudaUnregisterFatBinary(void** handle) {
  const std::lock_guard lock(code().mutex);
  const auto ours = [&](const auto& one) { return one.second.of == &of_handle(handle); };
  std::erase_if(code().kernels, ours);
  std::erase_if(code().variables, ours);
}

CUDART_EXPORT void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name,
                                          int, uint3*, uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(code().mutex);
  code().kernels[host] = {&of_handle(handle), name, nullptr};
}

CUDART_EXPORT void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int,
                                     size_t, int, int) {
  const std::lock_guard lock(code().mutex);
  code().variables[host] = {&of_handle(handle), name, nullptr};
}

CUDART_EXPORT void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name,
                                            int, size_t, int, int) {
  const std::lock_guard lock(code().mutex);
  code().variables[host] = {&of_handle(handle), name, nullptr};
  of_handle(handle).managed.push_back({host, name});
}

// The host is about to use a managed variable.
CUDART_EXPORT char __cudaInitModule(void** handle) {
  const std::lock_guard lock(code().mutex);
  CUresult error = ready();
  if (error == CUDA_SUCCESS) error = place_managed(of_handle(handle));
  return error == CUDA_SUCCESS ? 1 : 0;
}

// Textures and surfaces at file scope, of old programs: what reads them is refused with the PTX.
CUDART_EXPORT void __cudaRegisterTexture(void**, const void*, const void**, const char*, int, int,
                                         int) {}
CUDART_EXPORT void __cudaRegisterSurface(void**, const void*, const void**, const char*, int, int) {
}

CUDART_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                                   CUstream_st* stream) {
  configurations().push_back({grid, block, shared_bytes, stream});
  return 0;
}

CUDART_EXPORT cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                                     void* stream) {
  if (configurations().empty()) return remember(cudaErrorMissingConfiguration);
  const Configuration& one = configurations().back();
  *grid = one.grid;
  *block = one.block;
  *shared_bytes = one.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = one.stream;
  configurations().pop_back();
  return cudaSuccess;
}

// The program asks once, whatever comes of it, and launches what it was given.
CUDART_EXPORT cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  return answer<LegacyStream>(true, [&] {
    const cudaError_t error = find_kernel(host, reinterpret_cast<CUfunction*>(kernel));
    if (error != cudaSuccess) code().kernel_error = error;
    return error;
  });
}

// clang-format off
CUDART_FUNCTION(LegacyStream, true, __cudaLaunchKernel,
    (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
     cudaStream_t stream),
    launch(kernel, grid, block, arguments, shared_bytes, stream, false))
CUDART_FUNCTION(PerThreadStream, true, __cudaLaunchKernel_ptsz,
    (cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
     cudaStream_t stream),
    launch(kernel, grid, block, arguments, shared_bytes, stream, false))
// clang-format on
