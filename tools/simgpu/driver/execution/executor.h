// Runs the blocks of a launch, one after the other, on the calling thread.
#pragma once
#include <cuda.h>
#include <simgpu/abi.h>

#include <cstddef>
#include <memory>
#include <mutex>

#include "driver/execution/fiber.h"

namespace simgpu {

struct LaunchShape {
  Dim3 grid{1, 1, 1}, block{1, 1, 1};
  Dim3 cluster{0, 0, 0};  // zero when not given
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;

  uint64_t blocks() const { return uint64_t{grid.x} * grid.y * grid.z; }
  uint64_t threads_per_block() const { return uint64_t{block.x} * block.y * block.z; }
};

// Gives the device away for a moment, where a kernel waits: for another stream's work, it may be.
void give_way(std::recursive_mutex& engine);

// One launch at a time.
class Executor {
 public:
  struct Result {
    Counts counts;
    CUresult error;  // other than success: the kernel ended by a fault; one line is on stderr
  };
  // `params` is the packed parameter buffer of kernel.param_bytes bytes. `engine` is held, once,
  // and given away while the kernel waits.
  Result run(const KernelEntry& kernel, const LaunchShape& shape, const std::byte* params,
             const SectorMap& sectors, std::recursive_mutex& engine);

 private:
  FiberPool fibers_;
};

}  // namespace simgpu
