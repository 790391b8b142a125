#include <injector/vendor/graph_calls.h>
#include <injector/vendor/graph_readers.h>

namespace flopinj {

void read_kernel_node(const CUDA_KERNEL_NODE_PARAMS_v2& parameters, GraphCall& call) {
  readers::read_node_kernel(parameters, call);
}

}  // namespace flopinj
