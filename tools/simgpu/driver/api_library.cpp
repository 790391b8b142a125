// Libraries: modules without a context, and their kernels.
#include "driver/api.h"
#include "driver/context.h"
#include "driver/module.h"

namespace simgpu::api {
namespace {

CUresult load(CUlibrary* out, const void* data, size_t bytes) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ImageResult result = load_image(data, bytes);
  if (result.error != CUDA_SUCCESS) return result.error;
  Runtime& runtime = Runtime::get();
  auto library = std::make_shared<Library>();
  library->image = std::move(result.image);
  const auto* first = static_cast<const std::byte*>(data);
  library->bytes.assign(first, first + elf_bytes(data, bytes));
  *out = runtime.libraries.insert(library);
  for (const KernelEntry* entry : library->image->kernels()) {
    auto kernel = std::make_shared<Kernel>();
    kernel->entry = entry;
    kernel->symbol = intern(entry->name);
    kernel->library = library;
    kernel->library_handle = *out;
    runtime.kernels.insert(kernel);
    library->kernels.emplace(entry->name, std::move(kernel));
  }
  return CUDA_SUCCESS;
}

// Function of a kernel in the current context.
Found<Function> function_of(CUkernel handle) {
  const auto kernel = Runtime::get().kernels.find(handle);
  if (!kernel) return {CUDA_ERROR_INVALID_HANDLE, nullptr};
  const auto context = current_context();
  if (!context) return {context.error, nullptr};
  return function_in(*kernel, context.object);
}

// Function of a kernel on a device, in its primary context or the current one.
Found<Function> function_on(CUkernel handle, CUdevice dev) {
  Device* device = Runtime::get().device(dev);
  if (device == nullptr) return {CUDA_ERROR_INVALID_DEVICE, nullptr};
  const auto kernel = Runtime::get().kernels.find(handle);
  if (!kernel) return {CUDA_ERROR_INVALID_HANDLE, nullptr};
  auto context = current_context().object;
  if (!context || context->device != device) {
    const std::lock_guard lock(device->primary().mutex);
    context = device->primary().context;
  }
  if (!context) return {CUDA_ERROR_INVALID_CONTEXT, nullptr};
  return function_in(*kernel, context);
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                           unsigned int, CUlibraryOption*, void**, unsigned int) {
  return load(library, code, 0);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* fileName, CUjit_option*, void**,
                               unsigned int, CUlibraryOption*, void**, unsigned int) {
  if (library == nullptr || fileName == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> bytes;
  if (!read_file(fileName, bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
  if (bytes.empty()) return CUDA_ERROR_INVALID_IMAGE;
  return load(library, bytes.data(), bytes.size());
}

CUresult cuLibraryUnload(CUlibrary handle) {
  Runtime& runtime = Runtime::get();
  const auto library = runtime.libraries.erase(handle);
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [name, kernel] : library->kernels)
    runtime.kernels.erase(HandleTable<CUkernel, Kernel>::handle_of(kernel.get()));
  const std::lock_guard lock(library->mutex);
  for (const auto& [context, module] : library->modules)
    if (runtime.modules.find(HandleTable<CUmodule, Module>::handle_of(module.get())) == module)
      unload_module(module);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* pKernel, CUlibrary library, const char* name) {
  if (pKernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Runtime::get().libraries.find(library);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  const auto it = found->kernels.find(name);
  if (it == found->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *pKernel = HandleTable<CUkernel, Kernel>::handle_of(it->second.get());
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int* count, CUlibrary lib) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Runtime::get().libraries.find(lib);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned int>(found->kernels.size());
  return CUDA_SUCCESS;
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int numKernels, CUlibrary lib) {
  if (kernels == nullptr || numKernels == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Runtime::get().libraries.find(lib);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  unsigned int i = 0;
  for (const auto& [name, kernel] : found->kernels) {
    if (i == numKernels) break;
    kernels[i++] = HandleTable<CUkernel, Kernel>::handle_of(kernel.get());
  }
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Runtime::get().libraries.find(library);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  const auto context = current_context();
  if (!context) return context.error;
  if (found->kernels.empty()) return CUDA_ERROR_NOT_FOUND;
  const auto function = function_in(*found->kernels.begin()->second, context.object);
  if (function) *pMod = function->module_handle;
  return function.error;
}

CUresult cuLibraryGetGlobal(CUdeviceptr*, size_t*, CUlibrary library, const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Runtime::get().libraries.find(library) ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function = function_of(kernel);
  if (function) *pFunc = HandleTable<CUfunction, Function>::handle_of(function.object.get());
  return function.error;
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  if (pLib == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Runtime::get().kernels.find(kernel);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  *pLib = found->library_handle;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  return api::cuFuncGetName(name, reinterpret_cast<CUfunction>(hfunc));
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset,
                              size_t* paramSize) {
  const auto found = Runtime::get().kernels.find(kernel);
  if (!found) return CUDA_ERROR_INVALID_HANDLE;
  if (Runtime::get().settings().no_param_info) return CUDA_ERROR_NOT_SUPPORTED;
  if (paramOffset == nullptr || paramIndex >= found->entry->param_count)
    return CUDA_ERROR_INVALID_VALUE;
  *paramOffset = found->entry->params[paramIndex].offset;
  if (paramSize != nullptr) *paramSize = found->entry->params[paramIndex].bytes;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice dev) {
  const auto function = function_on(kernel, dev);
  if (!function) return function.error;
  return api::cuFuncGetAttribute(
      pi, attrib, HandleTable<CUfunction, Function>::handle_of(function.object.get()));
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice dev) {
  const auto function = function_on(kernel, dev);
  if (!function) return function.error;
  return api::cuFuncSetAttribute(
      HandleTable<CUfunction, Function>::handle_of(function.object.get()), attrib, val);
}

}  // namespace simgpu::api
