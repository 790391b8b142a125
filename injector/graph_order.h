// Whether a graph may be inside a measurement window, and in which order its kernels run: asked of
// the driver when the graph is instantiated, since its executable graphs keep nodes and edges.
//
// In a window CUPTI may run the kernels one by one, each when the one before has ended. So a graph
// with nodes that wait for the host or for others, or whose kernels are not those that we know, is
// not fit.
#pragma once
#include <cuda.h>
#include <injector/cuda_api.h>

#include <cstdint>
#include <unordered_map>

namespace flopinj {

struct GraphOrder {
  bool fit = false;
  bool ordered = false;  // every kernel follows the one before it; never with child graphs
  std::unordered_map<CUgraphNode, uint32_t> kernels;  // and their places, where `ordered`
};

GraphOrder order_of(const CudaApi&, CUgraph);

}  // namespace flopinj
