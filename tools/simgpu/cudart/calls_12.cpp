// Functions whose parameters changed with CUDA 13, as they were before, and those that went.
// cuda_runtime_api.h may be of CUDA 13, so it is not included.
#include "cudart/device_properties.h"
#include "cudart/exporting.h"

// clang-format off
CUDART_EARLY(cudaGetDeviceProperties_v2,
    (simgpu::cudart::DeviceProperties12* properties, int device),
    fill_properties(properties, device))
CUDART(cudaMemAdvise, (const void*, size_t, cudaMemoryAdvise, int), cudaSuccess)
CUDART(cudaMemAdvise_v2, (const void*, size_t, cudaMemoryAdvise, cudaMemLocation), cudaSuccess)
CUDART_PTSZ(cudaMemPrefetchAsync, (const void*, size_t, int, cudaStream_t), cudaSuccess)
CUDART_PTSZ(cudaMemPrefetchAsync_v2,
    (const void*, size_t, cudaMemLocation, unsigned int, cudaStream_t), cudaSuccess)
CUDART(cudaEventElapsedTime_v2, (float* milliseconds, cudaEvent_t start, cudaEvent_t end),
    cuEventElapsedTime(milliseconds, start, end))
CUDART(cudaGraphAddNode,
    (cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies, size_t count,
     cudaGraphNodeParams* parameters),
    add_node(node, graph, dependencies, nullptr, count, parameters))
CUDART(cudaGraphAddNode_v2,
    (cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
     const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters),
    add_node(node, graph, dependencies, edges, count, parameters))
CUDART(cudaGraphAddDependencies,
    (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t count),
    cuGraphAddDependencies_v2(graph, from, to, nullptr, count))
CUDART(cudaGraphGetEdges,
    (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count),
    cuGraphGetEdges_v2(graph, from, to, nullptr, count))
CUDART_PTSZ(cudaStreamGetCaptureInfo,
    (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id),
    capture_info(stream, status, id, nullptr, nullptr, nullptr, nullptr))
CUDART_PTSZ(cudaStreamGetCaptureInfo_v2,
    (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, size_t* count),
    capture_info(stream, status, id, graph, dependencies, nullptr, count))
CUDART_PTSZ(cudaStreamGetCaptureInfo_v3,
    (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
     size_t* count),
    capture_info(stream, status, id, graph, dependencies, edges, count))
CUDART_PTSZ(cudaStreamUpdateCaptureDependencies,
    (cudaStream_t stream, cudaGraphNode_t* dependencies, size_t count, unsigned int flags),
    cuStreamUpdateCaptureDependencies_v2(at(stream), dependencies, nullptr, count, flags))
CUDART_PTSZ(cudaStreamUpdateCaptureDependencies_v2,
    (cudaStream_t stream, cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
     size_t count, unsigned int flags),
    cuStreamUpdateCaptureDependencies_v2(at(stream), dependencies,
        reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags))
CUDART(cudaThreadSynchronize, (), cuCtxSynchronize())
CUDART(cudaThreadExit, (), cuCtxSynchronize())
// clang-format on
