// Where the running kernel thread finds itself: its indices, its block's shared memory and barrier,
// its counters.
#pragma once
#include <simgpu/abi.h>

#define GPU_KERNEL [[maybe_unused]] static void
#define GPU_DEVICE [[maybe_unused]] static inline

namespace simgpu {

// Set by the module's entry points. Hidden, so that each module has its own; initial-exec, so that
// counting one operation is one load and one add. Null outside a kernel: counting scalars are for
// device code only.
[[gnu::visibility("hidden"),
  gnu::tls_model("initial-exec")]] inline constinit thread_local Execution* execution = nullptr;

inline void count(Count kind, uint64_t n = 1) { execution->counts[kind] += n; }

}  // namespace simgpu

namespace gpu {

inline simgpu::Dim3 thread_index() { return simgpu::execution->thread; }
inline simgpu::Dim3 block_index() { return simgpu::execution->block; }
inline simgpu::Dim3 block_dim() { return simgpu::execution->block_dim; }
inline simgpu::Dim3 grid_dim() { return simgpu::execution->grid_dim; }

// All threads of the block meet here. The kernel must be exported with GPU_EXPORT_SYNC.
inline void sync() { simgpu::execution->sync(simgpu::execution); }

// The value that conditional nodes with this handle look at (cudaGraphSetConditional).
inline void set_condition(unsigned long long handle, unsigned int value) {
  simgpu::execution->set_condition(handle, value);
}

// Base of the block's dynamic shared memory (the launch's sharedMemBytes). Its loads and stores are
// not counted.
template <class T>
T* shared() {
  return reinterpret_cast<T*>(simgpu::execution->shared);
}

}  // namespace gpu
