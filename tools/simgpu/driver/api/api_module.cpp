// Modules and the functions in them.
#include "driver/api/api.h"
#include "driver/api/jit_log.h"
#include "driver/context.h"
#include "driver/graphs/capture.h"
#include "driver/modules/attributes.h"
#include "driver/modules/module.h"

namespace simgpu::api {
namespace {

CUresult load(CUmodule* module, const void* data, size_t bytes, const JitLog& log = {}) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto context = current_context();
  if (!context) return context.error;
  if (const CUresult error = refuse_unsafe_call(); error != CUDA_SUCCESS) return error;
  const auto code = std::make_shared<ModuleCode>();
  ImageResult result = load_image(data, bytes, variables_of(*code, *context->device));
  log.write(result.problem);
  if (result.error != CUDA_SUCCESS) return result.error;
  code->program = std::move(result.program);
  const auto made = make_module(context.object, code, result.content);
  *module = HandleTable<CUmodule, Module>::handle_of(made.get());
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

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int numOptions,
                            CUjit_option* options, void** optionValues) {
  // Of a compiler's options those for its logs mean something.
  JitLog::of_information(numOptions, options, optionValues).write({});
  return load(module, image, 0, JitLog::of_errors(numOptions, options, optionValues));
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* fatCubin) {
  return load(module, fatCubin, 0);
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
  return find_global(*module, name, dptr, bytes);
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
  return parameter_at(function->code->parameters, paramIndex, paramOffset, paramSize);
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
  return function ? get_attribute(*function.object, attrib, pi) : function.error;
}

CUresult cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value) {
  const auto function = find_function_to_ask(hfunc, "cuFuncSetAttribute");
  return function ? set_attribute(*function.object, attrib, value) : function.error;
}

// There are no caches.
CUresult cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache) {
  return find_function_to_ask(hfunc, "cuFuncSetCacheConfig").error;
}

}  // namespace simgpu::api
