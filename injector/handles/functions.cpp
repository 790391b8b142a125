#include <collector/identity/hash.h>
#include <collector/identity/launch_record.h>
#include <injector/handles/functions.h>
#include <injector/process/thread_context.h>
#include <injector/vendor/relaxed_capture.h>

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
  const RelaxedCapture relaxed(edge_.cuda);
  FunctionInfo info;
  thread.modules_loaded.clear();  // our questions may load its module
  const CUfunction function = function_behind(handle);
  if (symbol != nullptr) info.name = symbol;
  CUmodule module = nullptr;
  if (function != nullptr) {
    ask_driver(function, info);
    module = module_of(function);
  } else {
    edge_.collector->diagnostic(
        Severity::kInfo, "function.unknown_handle",
        "kernels were launched by handles that no call was seen to give: they are told apart by "
        "name and code, and not by registers");
  }
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

CUfunction Functions::function_behind(CUfunction handle) const {
  switch (handles_.kind(handle)) {
    case KernelHandles::Kind::kFunction:
      return handle;
    case KernelHandles::Kind::kKernel: {
      CUfunction function = nullptr;
      if (edge_.cuda.KernelGetFunction == nullptr ||
          edge_.cuda.KernelGetFunction(&function, reinterpret_cast<CUkernel>(handle)) !=
              CUDA_SUCCESS)
        return nullptr;
      return function;
    }
    case KernelHandles::Kind::kUnknown:
      break;
  }
  return nullptr;
}

void Functions::ask_driver(CUfunction function, FunctionInfo& info) const {
  const CudaApi& cuda = edge_.cuda;
  info.parameters_known = read_parameters(function, info);
  if (const char* name = nullptr; info.name.empty() && cuda.FuncGetName != nullptr &&
                                  cuda.FuncGetName(&name, function) == CUDA_SUCCESS &&
                                  name != nullptr)
    info.name = name;
  if (cuda.FuncGetAttribute == nullptr) return;
  int value = 0;
  if (cuda.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function) == CUDA_SUCCESS)
    info.registers_per_thread = static_cast<uint32_t>(value);
  if (cuda.FuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function) == CUDA_SUCCESS)
    info.static_shared_bytes = static_cast<uint32_t>(value);
}

CUmodule Functions::module_of(CUfunction function) const {
  CUmodule module = nullptr;
  if (function == nullptr || edge_.cuda.FuncGetModule == nullptr ||
      edge_.cuda.FuncGetModule(&module, function) != CUDA_SUCCESS)
    return nullptr;
  return module;
}

void Functions::learn(const GivenHandles& given) {
  if (handles_.learn(given)) return;
  edge_.collector->diagnostic(
      Severity::kWarning, "function.too_many_handles",
      "the program has asked for more kernels than can be followed: some are told apart by name "
      "and code, and not by registers");
}

void Functions::module_call_exit(ThreadContext& thread, const ModuleFunction& call,
                                 const CUpti_CallbackData& data) {
  if (!succeeded(data)) return;
  GivenHandles given;
  if (call.given != nullptr) {
    given = call.given(data.functionParams);
    learn(given);
  }
  if (thread.modules_loaded.count == 0) return;
  const RelaxedCapture relaxed(edge_.cuda);
  CUmodule module = nullptr;
  if (call.module != nullptr)
    module = call.module(data.functionParams);
  else if (given.functions != nullptr && given.count != 0)
    module = module_of(function_behind(given.functions[0]));
  modules_.bind(thread, module);
}

void Functions::loaded_by_launch(ThreadContext& thread, CUfunction handle) {
  const RelaxedCapture relaxed(edge_.cuda);
  modules_.bind(thread, module_of(function_behind(handle)));
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

void Functions::module_unloading() {
  const MutexLock lock(mutex_);
  epoch_.fetch_add(1, std::memory_order_release);
  shared_.clear();
}

}  // namespace flopinj
