#include <injector/graphs/graph_nodes.h>

#include <algorithm>
#include <utility>

namespace flopinj {

ExecNode* ExecutableGraph::find(CUgraphNode origin) {
  const auto node = std::ranges::find(nodes, origin, &ExecNode::origin);
  return node == nodes.end() ? nullptr : &*node;
}

bool ExecutableGraph::update(const std::vector<SourceNode>& places,
                             const std::vector<SourceNode>& values) {
  if (places.size() != values.size()) return false;
  for (size_t i = 0; i < places.size(); ++i) {
    // In an update of a whole graph the node is in its place.
    ExecNode* node = i < nodes.size() ? &nodes[i] : nullptr;
    if (node == nullptr || node->origin != places[i].node) node = find(places[i].node);
    if (node != nullptr) node->kernel = values[i].kernel;
  }
  return true;
}

bool GraphNodes::put(CUgraph graph, CUgraphNode node, const NodeKernel& kernel) {
  const auto known = nodes_.find(node);
  if (known != nodes_.end() && (graph == nullptr || known->second.graph == graph)) {
    known->second.kernel = kernel;
    return true;
  }
  if (known != nodes_.end()) drop_node(node, false);  // the handle has come back
  if (nodes_.size() >= kMostNodes) return false;
  nodes_[node] = {graph, kernel};
  graphs_[graph].kernels.push_back(node);
  return true;
}

NodeKernel* GraphNodes::find(CUgraphNode node) {
  const auto known = nodes_.find(node);
  return known == nodes_.end() ? nullptr : &known->second.kernel;
}

void GraphNodes::drop_node(CUgraphNode node, bool holds_graphs) {
  if (holds_graphs)
    for (auto& [graph, contents] : graphs_) {
      std::erase_if(contents.children, [&](const ChildGraph& c) { return c.node == node; });
      std::erase_if(contents.conditionals, [&](const Conditional& c) { return c.node == node; });
    }
  const auto known = nodes_.find(node);
  if (known == nodes_.end()) return;
  if (const auto graph = graphs_.find(known->second.graph); graph != graphs_.end())
    std::erase(graph->second.kernels, node);
  nodes_.erase(known);
}

void GraphNodes::add_child(CUgraph parent, ChildGraph child) {
  graphs_[parent].children.push_back(std::move(child));
}

void GraphNodes::add_conditional(CUgraph parent, CUgraphNode node, std::vector<CUgraph> bodies) {
  graphs_[parent].conditionals.push_back({node, std::move(bodies)});
}

void GraphNodes::add_waiting(CUgraph graph) { graphs_[graph].waits = true; }

bool GraphNodes::waits(CUgraph handle) const {
  const auto graph = graphs_.find(handle);
  if (graph == graphs_.end()) return false;
  return graph->second.waits ||
         std::ranges::any_of(graph->second.children,
                             [&](const ChildGraph& child) { return waits(child.copy); }) ||
         std::ranges::any_of(graph->second.conditionals, [&](const Conditional& inner) {
           return std::ranges::any_of(inner.bodies, [&](CUgraph body) { return waits(body); });
         });
}

void GraphNodes::drop_graph(CUgraph handle) {
  const auto graph = graphs_.find(handle);
  if (graph == graphs_.end()) return;
  const Graph contents = std::move(graph->second);
  graphs_.erase(graph);
  for (const CUgraphNode node : contents.kernels) nodes_.erase(node);
  for (const ChildGraph& child : contents.children)
    if (child.copy != nullptr) drop_graph(child.copy);
  for (const Conditional& conditional : contents.conditionals)
    for (const CUgraph body : conditional.bodies) drop_graph(body);
}

std::vector<SourceNode> GraphNodes::flatten(CUgraph graph) const {
  std::vector<SourceNode> nodes;
  flatten(graph, nodes, false);
  return nodes;
}

void GraphNodes::flatten(CUgraph handle, std::vector<SourceNode>& out, bool conditional) const {
  const auto graph = graphs_.find(handle);
  if (graph == graphs_.end()) return;
  for (const CUgraphNode node : graph->second.kernels)
    if (const auto known = nodes_.find(node); known != nodes_.end())
      out.push_back({node, known->second.kernel, conditional});
  for (const ChildGraph& child : graph->second.children) {
    for (SourceNode node : child.contents) {
      node.conditional |= conditional;
      out.push_back(node);
    }
    if (child.copy != nullptr) flatten(child.copy, out, conditional);
  }
  for (const Conditional& inner : graph->second.conditionals)
    for (const CUgraph body : inner.bodies) flatten(body, out, true);
}

std::vector<SourceNode> GraphNodes::contents_of_child(CUgraphNode node) const {
  std::vector<SourceNode> found;
  for (const auto& [graph, contents] : graphs_)
    for (const ChildGraph& child : contents.children) {
      if (child.node != node) continue;
      found = child.contents;
      if (child.copy != nullptr) flatten(child.copy, found, false);
    }
  return found;
}

bool GraphNodes::put_executable(CUgraphExec handle, ExecutableGraph graph) {
  if (executables_.size() >= kMostExecutables && !executables_.contains(handle)) return false;
  executables_.insert_or_assign(handle, std::move(graph));
  return true;
}

ExecutableGraph* GraphNodes::executable(CUgraphExec handle) {
  const auto known = executables_.find(handle);
  return known == executables_.end() ? nullptr : &known->second;
}

bool GraphNodes::drop_executable(CUgraphExec handle) { return executables_.erase(handle) > 0; }

}  // namespace flopinj
