// Between the node parameter structures of cuda.h and the work they describe.
#pragma once
#include "driver/api/api.h"
#include "driver/graphs/graph.h"

namespace simgpu {

// CUDA_ERROR_INVALID_VALUE (or a launch error) for parameters that describe no valid work. Copies
// of arrays are CUDA_ERROR_NOT_SUPPORTED: memory is linear here.
CUresult from_params(const CUDA_KERNEL_NODE_PARAMS* params, LaunchWork& work);
CUresult from_params(const CUDA_MEMCPY3D* params, CopyWork& work);
CUresult from_params(const CUDA_MEMSET_NODE_PARAMS* params, FillWork& work);

// The variants that cuGraphAddNode takes.
CUresult from_params(const CUDA_KERNEL_NODE_PARAMS_v3& params, LaunchWork& work);
CUresult from_params(const CUDA_MEMSET_NODE_PARAMS_v2& params, FillWork& work);

// New parameters for a kernel node, whose attributes stay.
CUresult set_params(LaunchWork& present, LaunchWork work);

// The parameter pointers given out point into the node and live as long as its parameters stay as
// they are.
CUresult to_params(GraphNode& node, CUDA_KERNEL_NODE_PARAMS* params);

CUDA_KERNEL_NODE_PARAMS widen(const CUDA_KERNEL_NODE_PARAMS_v1* params);  // null gives zeros
CUDA_KERNEL_NODE_PARAMS_v1 narrow(const CUDA_KERNEL_NODE_PARAMS& params);

}  // namespace simgpu
