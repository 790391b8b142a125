// Libraries: modules without a context, and their kernels.
#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/modules/attributes.h"
#include "driver/modules/module.h"

namespace simgpu::api {
namespace {

CUresult load(CUlibrary* out, const void* data, size_t bytes) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ImageResult result = check_image(data, bytes);
  if (result.error != CUDA_SUCCESS) return result.error;
  Runtime& runtime = Runtime::get();
  auto library = std::make_shared<Library>();
  library->text = std::move(result.text);
  library->bytes.assign(result.content.begin(), result.content.end());
  *out = runtime.libraries.insert(library);
  for (const auto& entry : library->text->functions) {
    if (!entry->is_entry || !entry->has_body) continue;
    auto kernel = std::make_shared<Kernel>();
    kernel->entry = entry.get();
    kernel->symbol = intern(entry->name.c_str());
    kernel->library = library;
    runtime.kernels.insert(kernel);
    library->kernels.emplace(entry->name, std::move(kernel));
  }
  return CUDA_SUCCESS;
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

CUresult cuKernelGetFunction(CUfunction* pFunc, CUkernel kernel) {
  if (pFunc == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_kernels_function(kernel);
  if (function) *pFunc = HandleTable<CUfunction, Function>::handle_of(function.object.get());
  return function.error;
}

CUresult cuLibraryGetModule(CUmodule* pMod, CUlibrary library) {
  if (pMod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto module = find_librarys_module(library);
  if (module) *pMod = HandleTable<CUmodule, Module>::handle_of(module.object.get());
  return module.error;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* dptr, size_t* bytes, CUlibrary library, const char* name) {
  if (name == nullptr || (dptr == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const auto module = find_librarys_module(library);
  return module ? find_global(*module.object, name, dptr, bytes) : module.error;
}

CUresult cuKernelGetLibrary(CUlibrary* pLib, CUkernel kernel) {
  if (pLib == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto found = Runtime::get().kernels.find(kernel);
  const auto library = found ? found->library.lock() : nullptr;
  if (!library) return CUDA_ERROR_INVALID_HANDLE;
  *pLib = HandleTable<CUlibrary, Library>::handle_of(library.get());
  return CUDA_SUCCESS;
}

CUresult cuKernelGetName(const char** name, CUkernel hfunc) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto kernel = Runtime::get().kernels.find(hfunc);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->symbol;
  return CUDA_SUCCESS;
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t paramIndex, size_t* paramOffset,
                              size_t* paramSize) {
  const auto found = Runtime::get().kernels.find(kernel);
  return found ? parameter_at(found->entry->parameters, paramIndex, paramOffset, paramSize)
               : CUDA_ERROR_INVALID_HANDLE;
}

// The current context's device counts: a kernel's attributes are its function's there.
CUresult cuKernelGetAttribute(int* pi, CUfunction_attribute attrib, CUkernel kernel, CUdevice) {
  const auto function = find_kernels_function(kernel);
  return function ? get_attribute(*function.object, attrib, pi) : function.error;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel kernel, CUdevice) {
  const auto function = find_kernels_function(kernel);
  return function ? set_attribute(*function.object, attrib, val) : function.error;
}

// There are no caches.
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  return Runtime::get().kernels.find(kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace simgpu::api
