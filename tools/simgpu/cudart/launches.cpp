// Launches, what is known of kernels, and the kernels of graphs.
#include <type_traits>

#include "cudart/runtime.h"

namespace simgpu::cudart {
namespace {

// A launch's shape is the driver's "invalid value", and has a code of its own here.
cudaError_t of_launch(CUresult result) {
  return result == CUDA_ERROR_INVALID_VALUE ? cudaErrorInvalidConfiguration : as_runtime(result);
}

// Attributes are the same in both interfaces.
CUlaunchConfig driver_config(const cudaLaunchConfig_t& from) {
  CUlaunchConfig to{};
  to.gridDimX = from.gridDim.x;
  to.gridDimY = from.gridDim.y;
  to.gridDimZ = from.gridDim.z;
  to.blockDimX = from.blockDim.x;
  to.blockDimY = from.blockDim.y;
  to.blockDimZ = from.blockDim.z;
  to.sharedMemBytes = static_cast<unsigned int>(from.dynamicSmemBytes);
  to.hStream = at(from.stream);
  to.attrs = reinterpret_cast<CUlaunchAttribute*>(from.attrs);
  to.numAttrs = from.numAttrs;
  return to;
}
static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

// Everything but the kernel, of a node's parameters in any version.
template <class From, class To>
void set_shape(const From& from, To& to) {
  to.gridDimX = from.gridDim.x;
  to.gridDimY = from.gridDim.y;
  to.gridDimZ = from.gridDim.z;
  to.blockDimX = from.blockDim.x;
  to.blockDimY = from.blockDim.y;
  to.blockDimZ = from.blockDim.z;
  to.sharedMemBytes = from.sharedMemBytes;
  to.kernelParams = from.kernelParams;
  to.extra = from.extra;
}

// In the current device's context.
cudaError_t attribute_of(CUfunction kernel, CUfunction_attribute attribute, int* value) {
  int device = 0;
  if (const CUresult error = current_device(&device); error != CUDA_SUCCESS)
    return as_runtime(error);
  const char* name = nullptr;
  auto* const handle = reinterpret_cast<CUkernel>(kernel);
  return as_runtime(cuKernelGetName(&name, handle) == CUDA_SUCCESS
                        ? cuKernelGetAttribute(value, attribute, handle, device)
                        : cuFuncGetAttribute(value, attribute, kernel));
}

}  // namespace

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments,
                   size_t shared_bytes, cudaStream_t stream, bool cooperative) {
  CUfunction kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, &kernel); error != cudaSuccess) return error;
  const auto bytes = static_cast<unsigned int>(shared_bytes);
  return of_launch(cooperative
                       ? cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y,
                                                   block.z, bytes, at(stream), arguments)
                       : cuLaunchKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                        bytes, at(stream), arguments, nullptr));
}

cudaError_t launch_with(const cudaLaunchConfig_t* config, const void* function, void** arguments) {
  if (config == nullptr) return cudaErrorInvalidValue;
  CUfunction kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, &kernel); error != cudaSuccess) return error;
  const CUlaunchConfig to = driver_config(*config);
  return of_launch(cuLaunchKernelEx(&to, kernel, arguments, nullptr));
}

cudaError_t function_attributes(cudaFuncAttributes* to, const void* function) {
  if (to == nullptr) return cudaErrorInvalidValue;
  CUfunction kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, &kernel); error != cudaSuccess) return error;
  *to = {};
  cudaError_t failed = cudaSuccess;
  const auto set = [&](auto& member, CUfunction_attribute attribute) {
    int value = 0;
    if (const cudaError_t error = attribute_of(kernel, attribute, &value); error != cudaSuccess)
      failed = error;
    member = static_cast<std::remove_reference_t<decltype(member)>>(value);
  };
  set(to->sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  set(to->constSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  set(to->localSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  set(to->maxThreadsPerBlock, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  set(to->numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
  set(to->ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
  set(to->binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
  set(to->maxDynamicSharedSizeBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  set(to->preferredShmemCarveout, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  set(to->clusterDimMustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET);
  set(to->requiredClusterWidth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
  set(to->requiredClusterHeight, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT);
  set(to->requiredClusterDepth, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH);
  return failed;
}

cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attribute, int value) {
  CUfunction kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, &kernel); error != cudaSuccess) return error;
  int device = 0;
  if (const CUresult error = current_device(&device); error != CUDA_SUCCESS)
    return as_runtime(error);
  return as_runtime(cuKernelSetAttribute(static_cast<CUfunction_attribute>(attribute), value,
                                         reinterpret_cast<CUkernel>(kernel), device));
}

cudaError_t resident_blocks(int* blocks, const void* function, int threads, size_t shared_bytes,
                            unsigned int flags) {
  CUfunction kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, &kernel); error != cudaSuccess) return error;
  return as_runtime(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads,
                                                                         shared_bytes, flags));
}

cudaError_t shared_memory_left(size_t* bytes, const void* function, int blocks, int threads) {
  CUfunction kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, &kernel); error != cudaSuccess) return error;
  return as_runtime(cuOccupancyAvailableDynamicSMemPerBlock(bytes, kernel, blocks, threads));
}

cudaError_t clusters(int* number, const void* function, const cudaLaunchConfig_t* config,
                     CUresult (*ask)(int*, CUfunction, const CUlaunchConfig*)) {
  if (config == nullptr) return cudaErrorInvalidValue;
  CUfunction kernel = nullptr;
  if (const cudaError_t error = find_kernel(function, &kernel); error != cudaSuccess) return error;
  const CUlaunchConfig to = driver_config(*config);
  return as_runtime(ask(number, kernel, &to));
}

cudaError_t driver_parameters(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* to) {
  if (from == nullptr) return cudaErrorInvalidValue;
  *to = {};
  set_shape(*from, *to);
  return find_kernel(from->func, &to->func);
}

cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return as_runtime(cuGraphInstantiate(exec, graph, flags));
}

CUresult capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                      cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                      const cudaGraphEdgeData** edges, size_t* count) {
  return cuStreamGetCaptureInfo_v3(at(stream), reinterpret_cast<CUstreamCaptureStatus*>(status),
                                   reinterpret_cast<cuuint64_t*>(id), graph, dependencies,
                                   reinterpret_cast<const CUgraphEdgeData**>(edges), count);
}

// Kernels and copies are named otherwise by the driver; all other kinds are the same.
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                     const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* from) {
  if (from == nullptr) return cudaErrorInvalidValue;
  static_assert(sizeof(cudaGraphNodeParams) == sizeof(CUgraphNodeParams));
  auto* to = reinterpret_cast<CUgraphNodeParams*>(from);
  CUgraphNodeParams own{};
  if (from->type == cudaGraphNodeTypeKernel) {
    const auto& kernel = from->kernel;
    if (const cudaError_t error = find_kernel(kernel.func, &own.kernel.func); error != cudaSuccess)
      return error;
    own.type = CU_GRAPH_NODE_TYPE_KERNEL;
    set_shape(kernel, own.kernel);
    to = &own;
  } else if (from->type == cudaGraphNodeTypeMemcpy) {
    own.type = CU_GRAPH_NODE_TYPE_MEMCPY;
    if (const cudaError_t error =
            driver_parameters(&from->memcpy.copyParams, &own.memcpy.copyParams);
        error != cudaSuccess)
      return error;
    own.memcpy.copyCtx = current_context();
    to = &own;
  } else if (from->type == cudaGraphNodeTypeConditional) {
    to->conditional.ctx = current_context();
  }
  return as_runtime(cuGraphAddNode_v2(node, graph, dependencies,
                                      reinterpret_cast<const CUgraphEdgeData*>(edges), count, to));
}

}  // namespace simgpu::cudart
