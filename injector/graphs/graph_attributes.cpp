// Graphs: attributes of kernel nodes that are part of a launch's shape: the cluster. Parameters of
// a node do not hold it, and it stays when they are set anew.
#include <injector/graphs/graphs.h>

namespace flopinj {

std::array<uint32_t, 3> Graphs::cluster_of(const NodeKernel* kernel) const {
  const Signature* const signature =
      kernel != nullptr ? edge_.collector->signature(kernel->signature) : nullptr;
  return signature != nullptr ? signature->shape.cluster : std::array<uint32_t, 3>{};
}

// Of a node whose parameters are set.
void Graphs::keep_cluster(GraphCall& call) {
  const MutexLock lock(mutex_);
  const NodeKernel* kernel = nullptr;
  if (call.exec == nullptr) {
    kernel = nodes_.find(call.node);
  } else if (ExecutableGraph* const exec = nodes_.executable(call.exec)) {
    const ExecNode* const node = exec->find(call.node);
    kernel = node != nullptr ? &node->kernel : nullptr;
  }
  call.kernel_call.shape.cluster = cluster_of(kernel);
}

void Graphs::set_attribute(const GraphCall& call) {
  const MutexLock lock(mutex_);
  NodeKernel* const kernel = nodes_.find(call.node);
  const Signature* const before =
      kernel != nullptr ? edge_.collector->signature(kernel->signature) : nullptr;
  if (before == nullptr) return;
  const auto cluster = call.source != nullptr ? cluster_of(nodes_.find(call.source))
                                              : call.kernel_call.shape.cluster;
  if (const Signature* const made = edge_.collector->with_cluster(*before, cluster))
    kernel->signature = made->id;
}

}  // namespace flopinj
