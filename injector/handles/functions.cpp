#include <collector/base/hash.h>
#include <collector/identity/launch_record.h>
#include <injector/handles/functions.h>
#include <injector/process/thread_context.h>

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
  const KernelFunction* const function = find_shared(handle, symbol, epoch);
  // A name that is missing may be told yet.
  if (function != nullptr || symbol != nullptr) slot = {handle, symbol, function, epoch};
  return function;
}

const KernelFunction* Functions::find_shared(CUfunction handle, const char* symbol,
                                             uint32_t epoch) {
  {
    const MutexLock lock(mutex_);
    const auto known = shared_.find(handle);
    if (known != shared_.end() && named(known->second.function, symbol))
      return known->second.function;
  }
  bool guessed = true;
  const FunctionInfo info = describe(handle, symbol, guessed);
  if (info.name.empty()) return nullptr;
  const KernelFunction* const function = edge_.collector->add_function(info);
  const MutexLock lock(mutex_);
  if (epoch_.load(std::memory_order_relaxed) == epoch) {
    if (shared_.size() >= kMost) shared_.clear();
    shared_.insert_or_assign(handle, Known{function, guessed});
  }
  return function;
}

FunctionInfo Functions::describe(CUfunction handle, const char* symbol, bool& guessed) const {
  const KernelHandles::Given given = handles_.find(handle);
  FunctionInfo info;
  info.name = symbol != nullptr ? symbol : given.name;
  if (info.name.empty()) return info;
  const auto code = modules_.find(given.owner, handle, info.name);
  if (code) {
    guessed = code->guessed;
    static_cast<KernelCode&>(info) = *code;
  }
  if (code ? code->several : given.owner == nullptr)
    edge_.collector->diagnostic(
        Severity::kInfo, "function.unknown_handle",
        "kernels were launched by handles that no call was seen to give, and their code was not "
        "shown, or several of their name are loaded: they are told apart by name alone");
  return info;
}

void Functions::module_call_exit(ThreadContext& thread, const ModuleFunction& function,
                                 const CUpti_CallbackData& data) {
  if (!succeeded(data)) return;
  const ModuleCall call = function.read(data.functionParams);
  if (!handles_.learn(call))
    edge_.collector->diagnostic(
        Severity::kWarning, "function.too_many_handles",
        "the program has asked for more kernels than can be followed: some are told apart by name "
        "alone, where several of it are loaded");
  const void* owner = call.library != nullptr ? call.library : call.owner;
  if (owner == nullptr && call.kernel != nullptr) owner = handles_.find(call.handle(0)).owner;
  if (modules_.bind(thread, owner, call.loaded) && !call.loaded) code_shown();
  if (call.library != nullptr) modules_.is_of(call.owner, call.library);
}

void Functions::same_kernel(CUfunction handle, CUfunction known) {
  if (handle == nullptr || known == nullptr || handle == known) return;
  if (handles_.find(handle).owner == nullptr)
    handles_.learn({.handles = &handle, .count = 1, .kernel = reinterpret_cast<CUkernel>(known)});
}

void Functions::loaded_for(ThreadContext& thread, CUfunction handle) {
  if (thread.modules_loaded.count == 0) return;
  const void* const owner = handles_.find(handle).owner;
  if (modules_.bind(thread, owner != nullptr ? owner : handle)) code_shown();
}

void Functions::code_shown() {
  const MutexLock lock(mutex_);
  epoch_.fetch_add(1, std::memory_order_release);
  std::erase_if(shared_, [](const auto& entry) { return entry.second.guessed; });
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
