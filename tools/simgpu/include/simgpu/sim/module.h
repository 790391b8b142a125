// How a source file's kernels get into the module's table: parameter sizes and offsets come from
// the C++ signature.
#pragma once
#include <simgpu/sim/execution.h>

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace simgpu {

// All groups of this shared object; hidden, so that each module has its own list.
[[gnu::visibility("hidden")]] inline constinit ModuleTable module_table{kModuleAbiVersion, nullptr};

template <size_t count>
constexpr std::array<ParamInfo, count> pack(const std::array<uint32_t, count>& sizes,
                                            const std::array<uint32_t, count>& alignments) {
  std::array<ParamInfo, count> params{};
  uint32_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t offset = (end + alignments[i] - 1) / alignments[i] * alignments[i];
    params[i] = ParamInfo{offset, sizes[i]};
    end = offset + sizes[i];
  }
  return params;
}

template <auto kernel>
struct KernelOf;

template <class... Args, void (*kernel)(Args...)>
struct KernelOf<kernel> {
  static_assert((std::is_trivially_copyable_v<Args> && ...),
                "kernel parameters are copied as bytes");
  static constexpr std::array<ParamInfo, sizeof...(Args)> kParams = pack<sizeof...(Args)>(
      {static_cast<uint32_t>(sizeof(Args))...}, {static_cast<uint32_t>(alignof(Args))...});

  static constexpr uint32_t param_bytes() {
    if constexpr (sizeof...(Args) == 0)
      return 0;
    else
      return kParams.back().offset + kParams.back().bytes;
  }

  template <class T>
  static T load(const std::byte* from) {
    T value;
    std::memcpy(static_cast<void*>(&value), from, sizeof(T));
    return value;
  }

  template <size_t... i>
  static void call([[maybe_unused]] const std::byte* params, std::index_sequence<i...>) {
    kernel(load<Args>(params + kParams[i].offset)...);
  }

  static void run_thread(Execution* e, const std::byte* params) {
    execution = e;
    call(params, std::index_sequence_for<Args...>{});
  }

  static void run_block(Execution* e, const std::byte* params) {
    execution = e;
    for (e->thread.z = 0; e->thread.z < e->block_dim.z; ++e->thread.z)
      for (e->thread.y = 0; e->thread.y < e->block_dim.y; ++e->thread.y)
        for (e->thread.x = 0; e->thread.x < e->block_dim.x; ++e->thread.x)
          call(params, std::index_sequence_for<Args...>{});
  }

  static constexpr KernelEntry entry(const char* name, bool uses_sync) {
    return {name,        kParams.data(), sizeof...(Args), param_bytes(), uses_sync ? 1U : 0U,
            &run_thread, &run_block};
  }
};

// Links a file's kernels into the module's list when the shared object is loaded.
class KernelRegistration {
 public:
  template <size_t count>
  explicit KernelRegistration(const KernelEntry (&kernels)[count])
      : group_{kernels, count, module_table.groups} {
    module_table.groups = &group_;
  }

 private:
  KernelGroup group_;
};

}  // namespace simgpu

extern "C" [[gnu::used, gnu::visibility("default")]] inline const simgpu::ModuleTable*
simgpu_module_v1() {
  return &simgpu::module_table;
}

#define GPU_MODULE_BEGIN \
  namespace {            \
  constexpr ::simgpu::KernelEntry kSimgpuKernels[] = {
#define GPU_EXPORT(name) ::simgpu::KernelOf<&name>::entry(#name, false),
#define GPU_EXPORT_SYNC(name) ::simgpu::KernelOf<&name>::entry(#name, true),
#define GPU_MODULE_END                                              \
  }                                                                 \
  ;                                                                 \
  ::simgpu::KernelRegistration simgpu_registration{kSimgpuKernels}; \
  }
