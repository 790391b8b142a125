#include "driver/modules/module.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_set>

#include "driver/context.h"
#include "driver/execution/memory.h"
#include "driver/execution/stream.h"
#include "driver/graphs/capture.h"
#include "driver/modules/cubin_image.h"
#include "driver/observer.h"
#include "ptx/decode.h"

namespace simgpu {
namespace {

[[noreturn]] void end_program(const char* call, const char* kind) {
  std::fprintf(stderr, "simgpu: %s was given a %s, which it does not take\n", call, kind);
  std::abort();
}

}  // namespace

ModuleCode::~ModuleCode() {
  for (const CUdeviceptr address : memory) free_device(address);
}

ptx::Allocate variables_of(ModuleCode& code, Device& device) {
  return [&](uint64_t bytes) -> uint64_t {
    CUdeviceptr address = 0;
    if (allocate_device(device, bytes, &address) != CUDA_SUCCESS) throw std::bad_alloc();
    code.memory.push_back(address);
    std::memset(reinterpret_cast<void*>(address), 0, bytes);
    return address;
  };
}

std::shared_ptr<Module> make_module(const std::shared_ptr<Context>& context,
                                    std::shared_ptr<const ModuleCode> code,
                                    std::span<const std::byte> content) {
  Runtime& runtime = Runtime::get();
  auto module = std::make_shared<Module>();
  module->code = std::move(code);
  module->id = runtime.next_id(runtime.module_ids);
  module->context = context;
  const Chip& chip = context->device->chip();
  module->cubin = make_cubin(module->code->program.kernels, content,
                             static_cast<uint32_t>(chip.compute_major * 10 + chip.compute_minor));
  const CUmodule handle = runtime.modules.insert(module);
  for (const ptx::Kernel& kernel : module->code->program.kernels) {
    auto function = std::make_shared<Function>();
    function->symbol = intern(kernel.name.c_str());
    function->module_handle = handle;
    function->module_id = module->id;
    function->context = context;
    function->module_code = module->code;
    function->code = &kernel;
    runtime.functions.insert(function);
    module->functions.emplace(kernel.name, std::move(function));
  }
  const ModuleInfo info{module->id, module->cubin.data(), module->cubin.size(),
                        module->functions.size()};
  // Also where a tool's own driver call loads the module at its first use.
  const ObserverGuard guard(true);
  if (const Observer* const o = guard.get(); o != nullptr && o->module_loaded != nullptr)
    o->module_loaded(o->self, handle_of(context), &info);
  return module;
}

void unload_module(const std::shared_ptr<Module>& module) {
  Runtime& runtime = Runtime::get();
  drain(*module->context);
  const ModuleInfo info{module->id, module->cubin.data(), module->cubin.size(),
                        module->functions.size()};
  tell(&Observer::module_unloading, handle_of(module->context), &info);
  for (const auto& [name, function] : module->functions)
    runtime.functions.erase(HandleTable<CUfunction, Function>::handle_of(function.get()));
  runtime.modules.erase(HandleTable<CUmodule, Module>::handle_of(module.get()));
}

namespace {

// Null: there is no memory. With the library's lock.
std::shared_ptr<Module> module_in(Library& library, const std::shared_ptr<Context>& context) {
  auto& module = library.modules[handle_of(context)];
  if (module && module->context == context) return module;
  const auto code = std::make_shared<ModuleCode>();
  try {
    code->program = ptx::decode(*library.text, variables_of(*code, *context->device));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  return module = make_module(context, code, library.bytes);
}

bool is_loaded(Library& library, const std::shared_ptr<Context>& context) {
  const std::lock_guard lock(library.mutex);
  const auto it = library.modules.find(handle_of(context));
  return it != library.modules.end() && it->second && it->second->context == context;
}

}  // namespace

Found<Function> function_in(Kernel& kernel, const std::shared_ptr<Context>& context) {
  const auto library = kernel.library.lock();
  if (!library) return {CUDA_ERROR_INVALID_HANDLE, nullptr};
  const std::lock_guard lock(library->mutex);
  const auto module = module_in(*library, context);
  if (module == nullptr) return {CUDA_ERROR_OUT_OF_MEMORY, nullptr};
  return {CUDA_SUCCESS, module->functions.at(kernel.entry->name)};
}

Found<Module> find_librarys_module(CUlibrary handle) {
  const auto library = Runtime::get().libraries.find(handle);
  if (!library) return {CUDA_ERROR_INVALID_HANDLE, nullptr};
  const auto context = current_context();
  if (!context) return {context.error, nullptr};
  const CUresult error = is_loaded(*library, context.object) ? CUDA_SUCCESS : refuse_unsafe_call();
  if (error != CUDA_SUCCESS) return {error, nullptr};
  const std::lock_guard lock(library->mutex);
  const auto module = module_in(*library, context.object);
  return {module == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS, module};
}

CUresult find_global(const Module& module, const char* name, CUdeviceptr* address, size_t* bytes) {
  const auto it = module.code->program.globals.find(name);
  if (it == module.code->program.globals.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = it->second.address;
  if (bytes != nullptr) *bytes = it->second.bytes;
  return CUDA_SUCCESS;
}

Found<Function> find_function(CUfunction handle) {
  Runtime& runtime = Runtime::get();
  if (auto function = runtime.functions.find(handle)) return {CUDA_SUCCESS, std::move(function)};
  const auto kernel = runtime.kernels.find(reinterpret_cast<CUkernel>(handle));
  if (!kernel) return {CUDA_ERROR_INVALID_HANDLE, nullptr};
  const auto context = current_context();
  if (!context) return {context.error, nullptr};
  return function_in(*kernel, context.object);
}

Found<Function> find_kernels_function(CUkernel handle) {
  Runtime& runtime = Runtime::get();
  if (runtime.functions.find(reinterpret_cast<CUfunction>(handle)))
    end_program("cuKernelGetFunction", "CUfunction");
  const auto kernel = runtime.kernels.find(handle);
  const auto library = kernel ? kernel->library.lock() : nullptr;
  if (!library) return {CUDA_ERROR_INVALID_HANDLE, nullptr};
  const auto context = current_context();
  if (!context) return {context.error, nullptr};
  const CUresult error = is_loaded(*library, context.object) ? CUDA_SUCCESS : refuse_unsafe_call();
  if (error != CUDA_SUCCESS) return {error, nullptr};
  return function_in(*kernel, context.object);
}

Found<Function> find_function_to_ask(CUfunction handle, const char* call) {
  Runtime& runtime = Runtime::get();
  if (auto function = runtime.functions.find(handle)) return {CUDA_SUCCESS, std::move(function)};
  if (runtime.kernels.find(reinterpret_cast<CUkernel>(handle))) end_program(call, "CUkernel");
  return {CUDA_ERROR_INVALID_HANDLE, nullptr};
}

const char* intern(const char* name) {
  static std::mutex mutex;
  static auto* const names = new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return names->insert(name).first->c_str();
}

const char* symbol_of(CUfunction handle) {
  Runtime& runtime = Runtime::get();
  if (const auto function = runtime.functions.find(handle)) return function->symbol;
  const auto kernel = runtime.kernels.find(reinterpret_cast<CUkernel>(handle));
  return kernel ? kernel->symbol : nullptr;
}

}  // namespace simgpu
