// How many threads a launch has, and in which blocks.
#pragma once
#include <cstdint>

#include "ptx/machine.h"

namespace simgpu {

using ptx::Dim3;

struct LaunchShape {
  Dim3 grid{1, 1, 1}, block{1, 1, 1};
  Dim3 cluster{0, 0, 0};  // zero when not given
  uint32_t dynamic_shared_bytes = 0;
  bool cooperative = false;

  uint64_t blocks() const { return uint64_t{grid.x} * grid.y * grid.z; }
  uint64_t threads_per_block() const { return uint64_t{block.x} * block.y * block.z; }
};

}  // namespace simgpu
