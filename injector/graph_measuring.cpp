// Graphs: what of an executable graph may be measured.
#include <injector/graph_order.h>
#include <injector/graphs.h>

#include <algorithm>

namespace flopinj {

// At instantiation, not under the lock.
void Graphs::set_order(CUgraph graph, Exec& exec) const {
  const GraphOrder order = order_of(edge_.cuda, graph);
  exec.measurable = order.fit && order.kernels.size() == exec.nodes.size();
  for (ExecNode& node : exec.nodes) {
    const auto kernel = order.kernels.find(node.origin);
    exec.measurable = exec.measurable && kernel != order.kernels.end();
    if (kernel != order.kernels.end()) node.place = kernel->second;
  }
  exec.ordered = exec.measurable && order.ordered;
}

// Under the lock. Null: its launches are never in a window.
MeasuredGraph* Graphs::measured_as(const Exec& exec) {
  if (!exec.measurable || !exec.launched.id) return nullptr;
  std::vector<const ExecNode*> nodes;
  bool told_apart = true;  // else two orders of the same nodes would be one graph
  for (const ExecNode& node : exec.nodes) {
    if (!node.enabled) continue;
    // What kernels may change, or whose kernels start others.
    if (node.conditional || node.kernel.device_updatable || node.kernel.flags != 0) return nullptr;
    told_apart = told_apart && node.id != 0;
    nodes.push_back(&node);
  }
  if (nodes.empty()) return nullptr;
  std::ranges::stable_sort(nodes, {}, &ExecNode::place);
  std::vector<GraphKernel> kernels;
  for (const ExecNode* node : nodes) kernels.push_back({node->kernel.signature, node->kernel.path});
  const auto [at, added] = measured_.try_emplace(exec.launched.id);
  MeasuredGraph& graph = at->second;
  if (!added) return &graph;
  graph.kernels = std::move(kernels);
  graph.ordered = exec.ordered && told_apart;
  return &graph;
}

}  // namespace flopinj
