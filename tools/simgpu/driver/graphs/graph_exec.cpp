#include "driver/graphs/graph_exec.h"

#include <algorithm>
#include <cstdlib>

#include "driver/graphs/conditional.h"

namespace simgpu {
namespace {

void flatten(const Graph& graph, std::vector<GraphNode*>& order) {
  for (GraphNode* node : topological_order(graph)) {
    if (const auto* child = std::get_if<ChildWork>(&node->work)) {
      flatten(**child, order);
    } else {
      order.push_back(node);
    }
  }
}

// A kernel runs where its function lives; everything else on the launching stream.
std::shared_ptr<Stream> stream_for(const LaunchWork& work, const Stream& stream) {
  if (work.function->context == stream.context) return nullptr;
  const std::lock_guard lock(work.function->context->mutex);
  return work.function->context->legacy_stream;
}

struct Runner {
  Stream& stream;
  const GraphOrigin& origin;

  CUresult operator()(std::monostate) const { return CUDA_SUCCESS; }
  CUresult operator()(const LaunchWork& work) const {
    const auto other = stream_for(work, stream);
    return run_launch(other ? *other : stream, work, origin);
  }
  CUresult operator()(const CopyWork& work) const { return run_copy(stream, work); }
  CUresult operator()(const FillWork& work) const { return run_fill(stream, work); }
  CUresult operator()(const HostWork& work) const {
    work.function(work.data);
    return CUDA_SUCCESS;
  }
  CUresult operator()(const ChildWork&) const { return CUDA_SUCCESS; }  // flattened
  CUresult operator()(const ConditionalWork& work) const {
    if (stream.context->session.load().conditionals_crash != 0) std::abort();
    return run_conditional(stream, work, origin);
  }
};

bool same_shape(const Graph& a, const Graph& b, CUgraphExecUpdateResultInfo& info) {
  const auto position = [](const Graph& graph, const GraphNode* node) {
    return std::find_if(graph.nodes.begin(), graph.nodes.end(),
                        [&](const auto& n) { return n.get() == node; }) -
           graph.nodes.begin();
  };
  const auto fail = [&](CUgraphExecUpdateResult why, const GraphNode* node) {
    info.result = why;
    info.errorNode = node != nullptr ? handle_of(*node) : nullptr;
    return false;
  };
  if (a.nodes.size() != b.nodes.size())
    return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, nullptr);
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    const GraphNode &x = *a.nodes[i], &y = *b.nodes[i];
    if (x.type() != y.type()) return fail(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, &y);
    if (x.dependencies.size() != y.dependencies.size())
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &y);
    for (size_t d = 0; d < x.dependencies.size(); ++d)
      if (position(a, x.dependencies[d]) != position(b, y.dependencies[d]))
        return fail(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, &y);
    const auto inside = inner_graphs(x), other = inner_graphs(y);
    if (inside.size() != other.size())
      return fail(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, &y);
    for (size_t g = 0; g < inside.size(); ++g)
      if (!same_shape(*inside[g], *other[g], info)) return false;
  }
  return true;
}

void take_over(Graph& to, const Graph& from) {
  for (size_t i = 0; i < to.nodes.size(); ++i) {
    const auto inside = inner_graphs(*to.nodes[i]), other = inner_graphs(*from.nodes[i]);
    for (size_t g = 0; g < inside.size(); ++g) take_over(*inside[g], *other[g]);
    if (inside.empty()) to.nodes[i]->work = from.nodes[i]->work;
    to.nodes[i]->cloned_from = from.nodes[i]->id;
  }
}

}  // namespace

std::vector<GraphNode*> execution_order(const Graph& graph) {
  std::vector<GraphNode*> order;
  flatten(graph, order);
  return order;
}

CUresult run_work(Stream& stream, const NodeWork& work, const GraphOrigin& origin) {
  return std::visit(Runner{stream, origin}, work);
}

std::shared_ptr<GraphExec> instantiate(const Graph& graph) {
  Runtime& runtime = Runtime::get();
  auto exec = std::make_shared<GraphExec>();
  exec->graph = clone_graph(graph);
  exec->id = exec->graph->id;
  runtime.graphs.erase(handle_of(*exec->graph));  // the program has no handle to it
  exec->order = execution_order(*exec->graph);
  runtime.execs.insert(exec);
  GraphInfo info{};
  info.graph = info.original_graph = handle_of(graph);
  info.exec = handle_of(*exec);
  notify_graph(GraphEvent::kExecCreated, info);
  return exec;
}

void wait_for_launches(GraphExec& exec) {
  Mark launched;
  {
    const std::lock_guard lock(exec.launches_mutex);
    launched = exec.launched;
  }
  launched.wait();
}

void destroy_exec(const std::shared_ptr<GraphExec>& exec) {
  wait_for_launches(*exec);
  GraphInfo info{};
  info.exec = handle_of(*exec);
  notify_graph(GraphEvent::kExecDestroying, info);
  const std::lock_guard lock(exec->mutex);
  exec->order.clear();
  destroy_graph(exec->graph);
  Runtime::get().execs.erase(handle_of(*exec));
}

CUresult launch_exec(GraphExec& exec, Stream& stream) {
  const std::lock_guard lock(exec.mutex);
  apply_defaults(*exec.graph);
  for (const GraphNode* node : exec.order) {
    if (!node->enabled) continue;
    const CUresult result = run_work(stream, node->work, {exec.id, node->id});
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

namespace {

GraphNode* copy_in(const Graph& graph, const GraphNode& original) {
  for (const auto& node : graph.nodes) {
    if (node->cloned_from == original.id) return node.get();
    for (const auto& inner : inner_graphs(*node))
      if (GraphNode* const copy = copy_in(*inner, original)) return copy;
  }
  return nullptr;
}

}  // namespace

GraphNode* counterpart(const GraphExec& exec, const GraphNode& original) {
  return copy_in(*exec.graph, original);
}

CUresult update_child(GraphExec& exec, const GraphNode& node, const Graph& graph) {
  wait_for_launches(exec);
  const std::lock_guard lock(exec.mutex);
  const std::lock_guard graph_lock(graph.mutex);
  const GraphNode* const copy = counterpart(exec, node);
  const auto* const child = copy != nullptr ? std::get_if<ChildWork>(&copy->work) : nullptr;
  CUgraphExecUpdateResultInfo why{};
  if (child == nullptr || !same_shape(**child, graph, why)) return CUDA_ERROR_INVALID_VALUE;
  // The nodes of the executable graph stay copies of the child graph that is in the node.
  std::vector<uint64_t> origins;
  for (const auto& n : (*child)->nodes) origins.push_back(n->cloned_from);
  take_over(**child, graph);
  for (size_t i = 0; i < origins.size(); ++i) (*child)->nodes[i]->cloned_from = origins[i];
  return CUDA_SUCCESS;
}

CUresult update_exec(GraphExec& exec, const Graph& graph, CUgraphExecUpdateResultInfo* info) {
  wait_for_launches(exec);
  const std::lock_guard lock(exec.mutex);
  const std::lock_guard graph_lock(graph.mutex);
  CUgraphExecUpdateResultInfo why{};
  const bool same = same_shape(*exec.graph, graph, why);
  if (same) take_over(*exec.graph, graph);
  why.result = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : why.result;
  if (info != nullptr) *info = why;
  return same ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

}  // namespace simgpu
