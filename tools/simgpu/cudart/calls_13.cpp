// Functions whose parameters changed with CUDA 13, as they are since then.
#include <cuda_runtime_api.h>

#include "cudart/exporting.h"

// clang-format off
CUDART_EARLY(cudaGetDeviceProperties, (cudaDeviceProp* properties, int device),
    device_properties(properties, device))
CUDART(cudaMemAdvise, (const void*, size_t, cudaMemoryAdvise, cudaMemLocation), cudaSuccess)
CUDART_PTSZ(cudaMemPrefetchAsync,
    (const void*, size_t, cudaMemLocation, unsigned int, cudaStream_t), cudaSuccess)
CUDART(cudaGraphAddNode,
    (cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
     const cudaGraphEdgeData* edges, size_t count, cudaGraphNodeParams* parameters),
    add_node(node, graph, dependencies, edges, count, parameters))
CUDART(cudaGraphAddDependencies,
    (cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
     const cudaGraphEdgeData* edges, size_t count),
    cuGraphAddDependencies_v2(graph, from, to, reinterpret_cast<const CUgraphEdgeData*>(edges),
                              count))
CUDART(cudaGraphGetEdges,
    (cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
     size_t* count),
    cuGraphGetEdges_v2(graph, from, to, reinterpret_cast<CUgraphEdgeData*>(edges), count))
CUDART_PTSZ(cudaStreamGetCaptureInfo,
    (cudaStream_t stream, cudaStreamCaptureStatus* status, unsigned long long* id,
     cudaGraph_t* graph, const cudaGraphNode_t** dependencies, const cudaGraphEdgeData** edges,
     size_t* count),
    capture_info(stream, status, id, graph, dependencies, edges, count))
CUDART_PTSZ(cudaStreamUpdateCaptureDependencies,
    (cudaStream_t stream, cudaGraphNode_t* dependencies, const cudaGraphEdgeData* edges,
     size_t count, unsigned int flags),
    cuStreamUpdateCaptureDependencies_v2(at(stream), dependencies,
        reinterpret_cast<const CUgraphEdgeData*>(edges), count, flags))
// clang-format on
