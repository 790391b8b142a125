#include <collector/identity/hash.h>
#include <collector/identity/launch_record.h>
#include <injector/handles/functions.h>
#include <injector/process/thread_context.h>
#include <injector/vendor/relaxed_capture.h>

#include <cstring>

namespace flopinj {
namespace {

FunctionSlot& slot_of(ThreadContext& thread, CUfunction handle) {
  // Handles are heap addresses: the low bits say little, and neighbours differ above them.
  const auto bits = reinterpret_cast<uintptr_t>(handle);
  return (*thread.functions)[hash_mix(0, static_cast<uint64_t>(bits) >> 4) >> 54];
}
static_assert(std::tuple_size_v<FunctionSlots> == 1U << (64 - 54));

bool named(const KernelFunction* function, const char* symbol) {
  return symbol == nullptr || (function != nullptr && function->info.name == symbol);
}

}  // namespace

uint32_t work_flags(const KernelFunction& function) {
  return (function.info.launches_kernels ? LaunchRecord::kLaunchesKernels : 0U) |
         (function.info.launches_graphs ? LaunchRecord::kLaunchesGraphs : 0U);
}

const KernelFunction* Functions::find(ThreadContext& thread, CUfunction handle,
                                      const char* symbol) {
  if (handle == nullptr) return nullptr;
  FunctionSlot& slot = slot_of(thread, handle);
  const uint32_t epoch = epoch_.load(std::memory_order_acquire);
  if (slot.handle == handle && slot.epoch == epoch) {
    if (slot.symbol == symbol) return slot.function;
    if (named(slot.function, symbol)) {
      slot.symbol = symbol;
      return slot.function;
    }
  }
  const KernelFunction* const function = find_shared(thread, handle, symbol, epoch);
  slot = {handle, symbol, function, epoch};
  return function;
}

const KernelFunction* Functions::find_shared(ThreadContext& thread, CUfunction handle,
                                             const char* symbol, uint32_t epoch) {
  {
    const MutexLock lock(mutex_);
    const auto known = shared_.find(handle);
    if (known != shared_.end() && named(known->second, symbol)) return known->second;
  }
  // Without the lock: the driver is asked, and may call back into us on other threads.
  const FunctionInfo info = describe(thread, handle, symbol);
  if (info.name.empty()) return nullptr;
  const KernelFunction* const function = edge_.collector->add_function(info);
  const MutexLock lock(mutex_);
  if (epoch_.load(std::memory_order_relaxed) == epoch) {
    if (shared_.size() >= kMost) shared_.clear();
    shared_.insert_or_assign(handle, function);
  }
  return function;
}

FunctionInfo Functions::describe(ThreadContext& thread, CUfunction handle,
                                 const char* symbol) const {
  const CudaApi& cuda = edge_.cuda;
  const RelaxedCapture relaxed(cuda);
  FunctionInfo info;
  Modules::call_enter(thread);  // our questions may load its module
  info.parameters_known = read_parameters(handle, info);
  // cuLaunchKernel(Ex) also takes a CUkernel cast to CUfunction. The calls that ask about functions
  // may refuse it, or find it to have no parameters.
  CUfunction function = handle;
  if (info.parameters.empty() && cuda.KernelGetFunction != nullptr) {
    CUfunction loaded = nullptr;
    if (cuda.KernelGetFunction(&loaded, reinterpret_cast<CUkernel>(handle)) == CUDA_SUCCESS &&
        loaded != nullptr && loaded != handle) {
      function = loaded;
      info.parameters_known = read_parameters(function, info);
    }
  }
  if (symbol != nullptr) {
    info.name = symbol;
  } else if (const char* name = nullptr; cuda.FuncGetName != nullptr &&
                                         cuda.FuncGetName(&name, function) == CUDA_SUCCESS &&
                                         name != nullptr) {
    info.name = name;
  }
  int value = 0;
  if (cuda.FuncGetAttribute != nullptr) {
    if (cuda.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function) == CUDA_SUCCESS)
      info.registers_per_thread = static_cast<uint32_t>(value);
    if (cuda.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function) ==
        CUDA_SUCCESS)
      info.static_shared_bytes = static_cast<uint32_t>(value);
  }
  const CUmodule module = module_of(function);
  modules_.bind(thread, module);
  if (const auto code = modules_.find(module, info.name)) {
    info.code_hash = code->hash;
    info.instructions = code->instructions;
    info.launches_kernels = code->launches_kernels;
    info.launches_graphs = code->launches_graphs;
    if (!info.parameters_known && code->parameters_known) {
      info.parameters = code->parameters;
      info.parameters_known = true;
    }
  }
  return info;
}

CUmodule Functions::module_of(CUfunction function) const {
  CUmodule module = nullptr;
  if (edge_.cuda.FuncGetModule == nullptr ||
      edge_.cuda.FuncGetModule(&module, function) != CUDA_SUCCESS)
    return nullptr;
  return module;
}

void Functions::module_call_exit(ThreadContext& thread, const ModuleFunction& call,
                                 const CUpti_CallbackData& data) {
  if (thread.modules_loaded.count == 0 || !succeeded(data)) return;
  const RelaxedCapture relaxed(edge_.cuda);
  modules_.bind(thread, call.module != nullptr ? call.module(data.functionParams)
                                               : module_of(call.function(data.functionParams)));
}

void Functions::loaded_by_launch(ThreadContext& thread, CUfunction handle) {
  const RelaxedCapture relaxed(edge_.cuda);
  CUfunction function = handle;
  CUmodule module = module_of(function);
  if (module == nullptr && edge_.cuda.KernelGetFunction != nullptr &&
      edge_.cuda.KernelGetFunction(&function, reinterpret_cast<CUkernel>(handle)) == CUDA_SUCCESS)
    module = module_of(function);
  modules_.bind(thread, module);
  const MutexLock lock(mutex_);
  epoch_.fetch_add(1, std::memory_order_release);
  shared_.erase(handle);
}

bool Functions::read_parameters(CUfunction function, FunctionInfo& info) const {
  if (edge_.cuda.FuncGetParamInfo == nullptr) return false;
  constexpr size_t kMostParameters = 4'096;
  info.parameters.clear();
  for (size_t i = 0; i < kMostParameters; ++i) {
    size_t offset = 0, size = 0;
    const CUresult result = edge_.cuda.FuncGetParamInfo(function, i, &offset, &size);
    if (result == CUDA_ERROR_INVALID_VALUE) return true;  // past the last one
    if (result != CUDA_SUCCESS) break;
    info.parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(size)});
  }
  info.parameters.clear();
  return false;
}

const KernelFunction* Functions::without_parameters(const KernelFunction& function) {
  FunctionInfo info = function.info;
  info.parameters.clear();
  info.parameters_known = false;
  return edge_.collector->add_function(info);
}

const KernelFunction* Functions::of_kernel(ThreadContext& thread, CUkernel kernel) {
  const RelaxedCapture relaxed(edge_.cuda);
  CUfunction function = nullptr;
  if (edge_.cuda.KernelGetFunction == nullptr ||
      edge_.cuda.KernelGetFunction(&function, kernel) != CUDA_SUCCESS)
    return nullptr;
  return find(thread, function, nullptr);
}

void Functions::module_unloading() {
  const MutexLock lock(mutex_);
  epoch_.fetch_add(1, std::memory_order_release);
  shared_.clear();
}

}  // namespace flopinj
