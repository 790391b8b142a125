// Modules and the functions in them.
#include "driver/api/api.h"
#include "driver/context.h"
#include "driver/graphs/capture.h"
#include "driver/modules/module.h"

namespace simgpu::api {
namespace {

CUresult load(CUmodule* module, const void* data, size_t bytes) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_context();
  if (!context) return context.error;
  if (const CUresult error = refuse_unsafe_call(); error != CUDA_SUCCESS) return error;
  ImageResult result = load_image(data, bytes);
  if (result.error != CUDA_SUCCESS) return result.error;
  const auto made =
      make_module(context.object, std::move(result.image), data, image_bytes(data, bytes));
  if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  *module = HandleTable<CUmodule, Module>::handle_of(made.get());
  return CUDA_SUCCESS;
}

CUresult param_info(const KernelEntry& kernel, size_t index, size_t* offset, size_t* bytes) {
  if (Runtime::get().settings().faults.no_param_info) return CUDA_ERROR_NOT_SUPPORTED;
  if (offset == nullptr || index >= kernel.param_count) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel.params[index].offset;
  if (bytes != nullptr) *bytes = kernel.params[index].bytes;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuModuleLoad(CUmodule* module, const char* fname) {
  if (module == nullptr || fname == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> bytes;
  if (!read_file(fname, bytes)) return CUDA_ERROR_FILE_NOT_FOUND;
  if (bytes.empty()) return CUDA_ERROR_INVALID_IMAGE;
  return load(module, bytes.data(), bytes.size());
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) { return load(module, image, 0); }

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                            void**) {
  return load(module, image, 0);  // compiler options mean nothing to compiled code
}

CUresult cuModuleUnload(CUmodule hmod) {
  const auto module = Runtime::get().modules.find(hmod);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  synchronize_context(*module->context);
  unload_module(module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* hfunc, CUmodule hmod, const char* name) {
  if (hfunc == nullptr || name == nullptr || *name == '\0') return CUDA_ERROR_INVALID_VALUE;
  const auto module = Runtime::get().modules.find(hmod);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  const auto it = module->functions.find(name);
  if (it == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *hfunc = HandleTable<CUfunction, Function>::handle_of(it->second.get());
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunctionCount(unsigned int* count, CUmodule mod) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto module = Runtime::get().modules.find(mod);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned int>(module->functions.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned int numFunctions,
                                    CUmodule mod) {
  if (functions == nullptr || numFunctions == 0) return CUDA_ERROR_INVALID_VALUE;
  const auto module = Runtime::get().modules.find(mod);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  unsigned int i = 0;
  for (const auto& [name, function] : module->functions) {
    if (i == numFunctions) break;
    functions[i++] = HandleTable<CUfunction, Function>::handle_of(function.get());
  }
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* dptr, size_t* bytes, CUmodule hmod, const char* name) {
  if (name == nullptr || (dptr == nullptr && bytes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const auto module = Runtime::get().modules.find(hmod);
  if (!module) return CUDA_ERROR_INVALID_HANDLE;
  if (module->code == nullptr) return CUDA_ERROR_NOT_FOUND;
  const auto it = module->code->program.globals.find(name);
  if (it == module->code->program.globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (dptr != nullptr) *dptr = it->second.address;
  if (bytes != nullptr) *bytes = it->second.bytes;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char** name, CUfunction hfunc) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function_to_ask(hfunc, "cuFuncGetName");
  if (function) *name = function->symbol;
  return function.error;
}

CUresult cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t* paramOffset,
                            size_t* paramSize) {
  const auto function = find_function_to_ask(func, "cuFuncGetParamInfo");
  if (!function) return function.error;
  return param_info(*function->kernel, paramIndex, paramOffset, paramSize);
}

CUresult cuFuncGetModule(CUmodule* hmod, CUfunction hfunc) {
  if (hmod == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function_to_ask(hfunc, "cuFuncGetModule");
  if (!function) return function.error;
  *hmod = function->module_handle;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* pi, CUfunction_attribute attrib, CUfunction hfunc) {
  if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function = find_function_to_ask(hfunc, "cuFuncGetAttribute");
  if (!function) return function.error;
  const Chip& chip = function->context->device->chip();
  switch (attrib) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *pi = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *pi = function->code != nullptr ? static_cast<int>(function->code->shared_bytes) : 0;
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *pi = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *pi = chip.compute_major * 10 + chip.compute_minor;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *pi = static_cast<int>(function->max_dynamic_shared.load());
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *pi = -1;
      break;
    default:
      if (attrib < 0 || attrib >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
      *pi = 0;  // nothing is known of constant and local memory; no cluster wishes
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  const auto function = find_function_to_ask(hfunc, "cuFuncSetAttribute");
  if (!function) return function.error;
  switch (attrib) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
      const Chip& chip = function->context->device->chip();
      if (value < 0 || static_cast<uint32_t>(value) > chip.shared_per_block_optin)
        return CUDA_ERROR_INVALID_VALUE;
      function->max_dynamic_shared = static_cast<uint32_t>(value);
      return CUDA_SUCCESS;
    }
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      return CUDA_SUCCESS;  // hints
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace simgpu::api
