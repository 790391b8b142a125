// The order in which a graph's kernels run, asked of the driver when the graph is instantiated: an
// executable graph keeps nodes and edges.
//
// In a window CUPTI runs the kernels one by one, each when the one before has ended. So a graph in
// which a node waits for the host or another node, whose kernels other kernels may change, or that
// has no single order, has none.
#pragma once
#include <cuda.h>
#include <injector/vendor/cuda_api.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace flopinj {

inline constexpr size_t kMostMeasuredNodes = 4'096;

struct GraphOrder {
  std::vector<CUgraphNode> kernels;
  bool cooperative = false;  // one of them is
};

std::optional<GraphOrder> order_of(const CudaApi&, CUgraph);

}  // namespace flopinj
