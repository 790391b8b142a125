// A stand-in for the CUDA runtime (libcudart), on top of the driver API of the simulated GPU: what
// code that nvcc compiled calls, and the public functions of cuda_runtime_api.h. functions.def is
// the list of them.
//
// Any thread may call anything. Each device has its primary context, made at the first call that
// needs one and kept until the process ends; a context that the program made current by the driver
// API is used as it is.
#pragma once
#include <cuda.h>
#include <driver_types.h>
#include <vector_types.h>

// As in cudaProfiler.h, which the Python wheels of CUDA's headers lack.
extern "C" {
CUresult CUDAAPI cuProfilerStart();
CUresult CUDAAPI cuProfilerStop();
}

namespace simgpu::cudart {

// The runtime's and the driver's codes are the same numbers for the same errors.
inline cudaError_t as_runtime(CUresult result) { return static_cast<cudaError_t>(result); }
inline cudaError_t as_runtime(cudaError_t error) { return error; }

// --- This thread's state

// What __cudaPushCallConfiguration says of the launch that follows.
struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

struct Thread {
  cudaError_t last = cudaSuccess;  // what cudaGetLastError answers
  int device = 0;                  // cudaSetDevice's
  bool per_thread_stream = false;  // in a function that ends in _ptsz or _ptds
};
Thread& this_thread();

// Stream 0 is the thread's own default stream in functions that end in _ptsz or _ptds.
inline CUstream at(cudaStream_t stream) {
  return stream == nullptr && this_thread().per_thread_stream ? CU_STREAM_PER_THREAD : stream;
}

// Makes a context current, where none is.
CUresult ready();
CUresult use_device(int device);
CUresult current_device(int* device);

// --- Code: fat binaries, their kernels and variables

// The kernel that a program means by the address of its host function, by a cudaKernel_t or by a
// cudaFunction_t.
cudaError_t find_kernel(const void* function, CUfunction* kernel);
// Its variable: `symbol` is the address of the variable that the host has in its place.
cudaError_t find_variable(const void* symbol, CUdeviceptr* address, size_t* bytes);

// --- What functions.def uses where one call of the driver does not do

cudaError_t launch(const void* function, dim3 grid, dim3 block, void** arguments,
                   size_t shared_bytes, cudaStream_t stream, bool cooperative);
cudaError_t launch_with(const cudaLaunchConfig_t* config, const void* function, void** arguments);
cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* function);
cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attribute, int value);
cudaError_t resident_blocks(int* blocks, const void* function, int threads, size_t shared_bytes,
                            unsigned int flags);
cudaError_t shared_memory_left(size_t* bytes, const void* function, int blocks, int threads);
cudaError_t clusters(int* number, const void* function, const cudaLaunchConfig_t* config,
                     CUresult (*ask)(int*, CUfunction, const CUlaunchConfig*));

// Copies wait for their end where `stream` is null.
cudaError_t copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                 const cudaStream_t* stream);
cudaError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                    size_t height, cudaMemcpyKind kind, const cudaStream_t* stream);
cudaError_t copy_3d(const cudaMemcpy3DParms* parameters, const cudaStream_t* stream);
cudaError_t copy_symbol(const void* symbol, size_t offset, void* to, const void* from, size_t bytes,
                        cudaMemcpyKind kind, const cudaStream_t* stream);
cudaError_t fill_2d(void* to, size_t pitch, int value, size_t width, size_t height,
                    const cudaStream_t* stream);
cudaError_t fill_3d(cudaPitchedPtr to, int value, cudaExtent extent, const cudaStream_t* stream);
cudaError_t allocate_3d(cudaPitchedPtr* memory, cudaExtent extent);
cudaError_t free_memory(void* memory);
cudaError_t pointer_attributes(cudaPointerAttributes* attributes, const void* pointer);

cudaError_t device_count(int* count);
cudaError_t stream_device(cudaStream_t stream, int* device);
cudaError_t device_properties(cudaDeviceProp* properties, int device);
cudaError_t entry_point(const char* symbol, void** function, int version, unsigned long long flags,
                        cudaDriverEntryPointQueryResult* status);

// Parameters of graph nodes in the driver's form.
cudaError_t driver_parameters(const cudaKernelNodeParams* from, CUDA_KERNEL_NODE_PARAMS* to);
cudaError_t driver_parameters(const cudaMemcpy3DParms* from, CUDA_MEMCPY3D* to);
// A copy of `bytes` bytes in a row.
CUDA_MEMCPY3D row_copy(const void* to, const void* from, size_t bytes);
CUcontext current_context();
cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags);
CUresult capture_info(cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
                      cudaGraph_t* graph, const cudaGraphNode_t** dependencies,
                      const cudaGraphEdgeData** edges, size_t* count);
cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                     const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters);

const char* error_name(cudaError_t error);
const char* error_text(cudaError_t error);

}  // namespace simgpu::cudart
