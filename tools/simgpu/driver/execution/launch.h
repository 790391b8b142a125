// A kernel launch from its arguments to its end.
#pragma once
#include <vector>

#include "driver/execution/launch_shape.h"
#include "driver/execution/stream.h"
#include "driver/modules/module.h"

namespace simgpu {

// Everything needed to run a kernel, now or later from a graph. Parameters are copied, as CUDA
// does.
struct LaunchWork {
  std::shared_ptr<Function> function;
  LaunchShape shape;
  std::vector<std::byte> params;  // packed
};

// Which graph a run belongs to; zeros outside a graph.
struct GraphOrigin {
  uint32_t graph_id = 0;
  uint64_t node_id = 0;
};

// Of a launch configuration, or the parameters of a kernel node.
template <class Params>
LaunchShape shape_of(const Params& p) {
  return {.grid = {p.gridDimX, p.gridDimY, p.gridDimZ},
          .block = {p.blockDimX, p.blockDimY, p.blockDimZ},
          .dynamic_shared_bytes = p.sharedMemBytes};
}

CUresult check_shape(const Function& function, const LaunchShape& shape);

// Checks the shape against the device's and the function's limits and copies the parameters, from
// kernelParams or from the CU_LAUNCH_PARAM_BUFFER_* list in `extra`.
CUresult prepare_launch(const std::shared_ptr<Function>& function, const LaunchShape& shape,
                        void** kernel_params, void** extra, LaunchWork& work);

// Runs the kernel and places it on the stream's timeline.
CUresult run_launch(Stream& stream, const LaunchWork& work, const GraphOrigin& origin);

inline constexpr uint32_t kMaxClusterBlocks = 8;  // portable cluster size

// Of each block, for the system.
inline uint64_t reserved_shared_bytes(const Chip& chip) {
  return chip.compute_major >= 8 ? 1024 : 0;
}

// Blocks of the function that fit on one multiprocessor at once.
uint32_t resident_blocks(const Function& function, uint64_t threads_per_block,
                         uint64_t dynamic_shared_bytes);

}  // namespace simgpu
