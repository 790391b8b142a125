// Graphs: attributes of kernel nodes that are part of a launch's shape: the cluster. Parameters of
// a node do not hold it, and it stays when they are set anew.
#include <injector/graphs/graphs.h>
#include <injector/vendor/graph_readers.h>

namespace flopinj {

// What a node's parameters leave out. Nothing where the driver does not say it.
void Graphs::add_cluster(GraphCall& call) const {
  CUlaunchAttributeValue value{};
  if (edge_.cuda.GraphKernelNodeGetAttribute == nullptr || call.node == nullptr ||
      edge_.cuda.GraphKernelNodeGetAttribute(call.node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                             &value) != CUDA_SUCCESS)
    return;
  const auto& [x, y, z] = value.clusterDim;
  // A launch without clusters has none in its signature; a driver may call that one block.
  if (uint64_t{x} * y * z > 1) call.kernel_call.shape.cluster = {x, y, z};
}

// The kernel of a node as the driver has it.
std::optional<NodeKernel> Graphs::read_node(ThreadContext& thread, CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS_v2 parameters{};
  if (edge_.cuda.GraphKernelNodeGetParams == nullptr ||
      edge_.cuda.GraphKernelNodeGetParams(node, &parameters) != CUDA_SUCCESS)
    return std::nullopt;
  GraphCall call{};
  call.node = node;
  readers::read_node_kernel(parameters, call);
  functions_.learn({&call.kernel_call.function, nullptr, 1, true});
  add_cluster(call);
  return kernel_of(thread, call);
}

void Graphs::set_attribute(ThreadContext& thread, const GraphCall& call) {
  const std::optional<NodeKernel> kernel = read_node(thread, call.node);
  if (!kernel) return;
  const MutexLock lock(mutex_);
  NodeKernel* const known = nodes_.find(call.node);
  if (known != nullptr) known->run(*kernel);  // else asked for when it is instantiated
}

}  // namespace flopinj
