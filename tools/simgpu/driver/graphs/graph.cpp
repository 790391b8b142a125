#include "driver/graphs/graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "driver/observer.h"

namespace simgpu {
namespace {

CUgraphNodeType type_of(const NodeWork& work) {
  constexpr CUgraphNodeType kTypes[] = {CU_GRAPH_NODE_TYPE_EMPTY,      CU_GRAPH_NODE_TYPE_KERNEL,
                                        CU_GRAPH_NODE_TYPE_MEMCPY,     CU_GRAPH_NODE_TYPE_MEMSET,
                                        CU_GRAPH_NODE_TYPE_HOST,       CU_GRAPH_NODE_TYPE_GRAPH,
                                        CU_GRAPH_NODE_TYPE_CONDITIONAL};
  return kTypes[work.index()];
}

GraphInfo info_of(const Graph* graph, const GraphNode* node) {
  GraphInfo info{};
  if (graph != nullptr) info.graph = handle_of(*graph);
  if (node != nullptr) {
    info.node = handle_of(*node);
    info.node_type = node->type();
  }
  return info;
}

void link(GraphNode& from, GraphNode& to) {
  from.dependents.push_back(&to);
  to.dependencies.push_back(&from);
}

std::shared_ptr<GraphNode> new_node(Graph& graph, NodeWork work) {
  Runtime& runtime = Runtime::get();
  auto node = std::make_shared<GraphNode>();
  node->id = runtime.node_ids.fetch_add(1);
  node->graph = &graph;
  node->work = std::move(work);
  runtime.nodes.insert(node);
  graph.nodes.push_back(node);
  return node;
}

}  // namespace

CUgraphNodeType GraphNode::type() const { return type_of(work); }

std::vector<std::shared_ptr<Graph>> inner_graphs(const GraphNode& node) {
  if (const auto* child = std::get_if<ChildWork>(&node.work)) return {*child};
  if (const auto* conditional = std::get_if<ConditionalWork>(&node.work))
    return conditional->bodies;
  return {};
}

void notify_graph(GraphEvent event, const GraphInfo& info) { tell(&Observer::graph, event, &info); }

std::shared_ptr<Graph> create_graph() {
  Runtime& runtime = Runtime::get();
  auto graph = std::make_shared<Graph>();
  graph->id = runtime.next_id(runtime.graph_ids);
  runtime.graphs.insert(graph);
  notify_graph(GraphEvent::kCreated, info_of(graph.get(), nullptr));
  return graph;
}

void destroy_graph(const std::shared_ptr<Graph>& graph) {
  Runtime& runtime = Runtime::get();
  notify_graph(GraphEvent::kDestroying, info_of(graph.get(), nullptr));
  const std::lock_guard lock(graph->mutex);
  for (const auto& node : graph->nodes) {
    notify_graph(GraphEvent::kNodeDestroying, info_of(graph.get(), node.get()));
    for (const auto& inner : inner_graphs(*node)) destroy_graph(inner);
    node->graph = nullptr;
    runtime.nodes.erase(handle_of(*node));
  }
  graph->nodes.clear();
  runtime.graphs.erase(handle_of(*graph));
}

CUresult add_node(Graph& graph, std::span<const CUgraphNode> dependencies, NodeWork work,
                  CUgraphNode* node) {
  Runtime& runtime = Runtime::get();
  const std::lock_guard lock(graph.mutex);
  std::vector<std::shared_ptr<GraphNode>> before;
  for (const CUgraphNode handle : dependencies) {
    auto found = runtime.nodes.find(handle);
    if (!found || found->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    if (std::find(before.begin(), before.end(), found) != before.end())
      return CUDA_ERROR_INVALID_VALUE;
    before.push_back(std::move(found));
  }
  const auto added = new_node(graph, std::move(work));
  for (const auto& from : before) link(*from, *added);
  *node = handle_of(*added);
  notify_graph(GraphEvent::kNodeCreated, info_of(&graph, added.get()));
  return CUDA_SUCCESS;
}

CUresult add_edge(Graph& graph, CUgraphNode from, CUgraphNode to) {
  const std::lock_guard lock(graph.mutex);
  const auto first = Runtime::get().nodes.find(from), second = Runtime::get().nodes.find(to);
  if (!first || !second || first->graph != &graph || second->graph != &graph)
    return CUDA_ERROR_INVALID_VALUE;
  const auto& known = second->dependencies;
  if (std::find(known.begin(), known.end(), first.get()) != known.end())
    return CUDA_ERROR_INVALID_VALUE;
  GraphNode* const of[] = {first.get()};
  if (is_ancestor(second.get(), of)) return CUDA_ERROR_INVALID_VALUE;
  link(*first, *second);
  return CUDA_SUCCESS;
}

CUresult destroy_node(const std::shared_ptr<GraphNode>& node) {
  Graph* const graph = node->graph;
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(graph->mutex);
  notify_graph(GraphEvent::kNodeDestroying, info_of(graph, node.get()));
  for (GraphNode* other : node->dependencies) std::erase(other->dependents, node.get());
  for (GraphNode* other : node->dependents) std::erase(other->dependencies, node.get());
  for (const auto& inner : inner_graphs(*node)) destroy_graph(inner);
  node->graph = nullptr;
  Runtime::get().nodes.erase(handle_of(*node));
  std::erase(graph->nodes, node);
  return CUDA_SUCCESS;
}

std::shared_ptr<Graph> clone_graph(const Graph& graph) {
  Runtime& runtime = Runtime::get();
  auto clone = std::make_shared<Graph>();
  clone->id = runtime.next_id(runtime.graph_ids);
  runtime.graphs.insert(clone);
  GraphInfo info = info_of(clone.get(), nullptr);
  info.original_graph = handle_of(graph);
  notify_graph(GraphEvent::kCloned, info);
  const std::scoped_lock lock(graph.mutex, clone->mutex);
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : graph.nodes) {
    NodeWork work = node->work;
    if (const auto* child = std::get_if<ChildWork>(&work)) {
      auto inner = clone_graph(**child);
      inner->owned_by_node = true;
      work = std::move(inner);
    } else if (auto* conditional = std::get_if<ConditionalWork>(&work)) {
      for (auto& body : conditional->bodies) {
        body = clone_graph(*body);
        body->owned_by_node = true;
      }
      conditional->handles.reset();  // an executable graph is never asked for them
    }
    const auto copy = new_node(*clone, std::move(work));
    copy->cloned_from = node->id;
    copies.emplace(node.get(), copy.get());
    GraphInfo cloned = info_of(clone.get(), copy.get());
    cloned.original_graph = handle_of(graph);
    cloned.original_node = handle_of(*node);
    notify_graph(GraphEvent::kNodeCloned, cloned);
  }
  for (const auto& node : graph.nodes)
    for (const GraphNode* from : node->dependencies) link(*copies.at(from), *copies.at(node.get()));
  return clone;
}

std::vector<GraphNode*> topological_order(const Graph& graph) {
  std::unordered_map<const GraphNode*, size_t> waiting;
  for (const auto& node : graph.nodes) waiting.emplace(node.get(), node->dependencies.size());
  std::vector<GraphNode*> order;
  std::unordered_set<const GraphNode*> placed;
  // A pass over the nodes in order of creation places all that are ready; captured graphs need one
  // pass.
  while (order.size() < graph.nodes.size()) {
    for (const auto& node : graph.nodes) {
      if (waiting.at(node.get()) != 0 || !placed.insert(node.get()).second) continue;
      order.push_back(node.get());
      for (const GraphNode* next : node->dependents) --waiting.at(next);
    }
  }
  return order;
}

bool is_ancestor(const GraphNode* node, std::span<GraphNode* const> of) {
  std::vector<const GraphNode*> open(of.begin(), of.end());
  std::unordered_set<const GraphNode*> seen(open.begin(), open.end());
  while (!open.empty()) {
    const GraphNode* at = open.back();
    open.pop_back();
    if (at == node) return true;
    for (const GraphNode* from : at->dependencies)
      if (seen.insert(from).second) open.push_back(from);
  }
  return false;
}

}  // namespace simgpu
