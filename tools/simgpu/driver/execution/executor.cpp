#include "driver/execution/executor.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "driver/graphs/conditional.h"
#include "driver/settings.h"

namespace simgpu {
namespace {

// What the barrier of the running launch needs; the Execution comes first, so that its address
// finds the rest.
struct Running {
  Execution execution;
  const KernelEntry* kernel;
  const std::byte* params;
  FiberPool* fibers;
  std::recursive_mutex* engine;
  bool barrier_misused;
};

// Shared memory starts out as NaNs: nothing may rely on what another block left there, or on zeros.
class SharedMemory {
 public:
  explicit SharedMemory(uint32_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    const size_t rounded = (size_t{bytes} + kAlignment - 1) / kAlignment * kAlignment;
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
    if (!memory_) throw std::bad_alloc();
  }
  std::byte* data() const { return memory_.get(); }
  void spoil() const {
    if (bytes_ != 0) std::memset(memory_.get(), 0xff, bytes_);
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  static constexpr size_t kAlignment = 256;
  uint32_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

Dim3 thread_at(size_t i, const Dim3& block) {
  const auto n = static_cast<uint32_t>(i);
  return {n % block.x, n / block.x % block.y, n / block.x / block.y};
}

void run_with_barriers(Running& running, size_t threads) {
  running.fibers->run(
      threads,
      [](void* arg, size_t) {
        auto& r = *static_cast<Running*>(arg);
        r.kernel->run_thread(&r.execution, r.params);
      },
      [](void* arg, size_t i) {
        auto& e = static_cast<Running*>(arg)->execution;
        e.thread = thread_at(i, e.block_dim);
      },
      &running);
}

}  // namespace

void give_way(std::recursive_mutex& engine) {
  engine.unlock();
  std::this_thread::sleep_for(std::chrono::microseconds(20));
  engine.lock();
}

Executor::Result Executor::run(const KernelEntry& kernel, const LaunchShape& shape,
                               const std::byte* params, const SectorMap& sectors,
                               std::recursive_mutex& engine) {
  const SharedMemory shared(shape.dynamic_shared_bytes);
  Running running{};
  running.kernel = &kernel;
  running.params = params;
  running.fibers = &fibers_;
  running.engine = &engine;
  Execution& e = running.execution;
  e.block_dim = shape.block;
  e.grid_dim = shape.grid;
  e.shared = shared.data();
  e.shared_bytes = shape.dynamic_shared_bytes;
  e.sectors = sectors;
  e.set_condition = &set_condition;
  e.pause = [](Execution* self) { give_way(*reinterpret_cast<Running*>(self)->engine); };
  const auto threads = static_cast<size_t>(shape.threads_per_block());
  // A block of one thread has nobody to wait for, so it needs no stacks.
  const bool barriers = kernel.uses_sync != 0 && threads > 1;
  if (barriers) {
    e.sync = [](Execution* self) { reinterpret_cast<Running*>(self)->fibers->yield(); };
  } else if (threads > 1) {
    e.sync = [](Execution* self) { reinterpret_cast<Running*>(self)->barrier_misused = true; };
  } else {
    e.sync = [](Execution*) {};
  }
  for (e.block.z = 0; e.block.z < shape.grid.z; ++e.block.z)
    for (e.block.y = 0; e.block.y < shape.grid.y; ++e.block.y)
      for (e.block.x = 0; e.block.x < shape.grid.x; ++e.block.x) {
        shared.spoil();
        if (barriers) {
          run_with_barriers(running, threads);
        } else {
          kernel.run_block(&e, params);
        }
      }
  e.counts[Count::kThreads] += shape.blocks() * shape.threads_per_block();
  if (running.barrier_misused)
    complain("kernel '" + std::string(kernel.name) +
             "' calls gpu::sync() but is exported with GPU_EXPORT; use GPU_EXPORT_SYNC");
  return {e.counts, running.barrier_misused ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS};
}

}  // namespace simgpu
