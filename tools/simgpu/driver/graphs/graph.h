// Graphs: nodes of work with dependencies between them, built by calls or by stream capture.
#pragma once
#include <simgpu/hooks.h>

#include <span>
#include <variant>
#include <vector>

#include "driver/execution/launch.h"
#include "driver/execution/memory.h"

namespace simgpu {

struct HostWork {
  CUhostFn function = nullptr;
  void* data = nullptr;
};
using ChildWork = std::shared_ptr<Graph>;
struct ConditionalWork {  // conditional.h
  CUgraphConditionalHandle handle = 0;
  CUgraphConditionalNodeType type = CU_GRAPH_COND_TYPE_IF;
  std::vector<std::shared_ptr<Graph>> bodies;
  std::shared_ptr<std::vector<CUgraph>> handles;  // of the bodies, as the program is given them
};
using NodeWork = std::variant<std::monostate, LaunchWork, CopyWork, FillWork, HostWork, ChildWork,
                              ConditionalWork>;  // monostate: empty

struct GraphNode {
  uint64_t id = 0;         // unique per process
  Graph* graph = nullptr;  // the graph that owns it; null in an executable graph
  NodeWork work;
  std::vector<GraphNode*> dependencies, dependents;
  std::vector<void*> param_pointers;  // into work's parameters, for cuGraphKernelNodeGetParams
  uint64_t cloned_from = 0;           // id of the node this one was cloned from, 0: none
  bool enabled = true;                // in an executable graph

  CUgraphNodeType type() const;
};

struct Graph {
  uint32_t id = 0;             // unique per process; executable graphs are numbered in the same row
  bool owned_by_node = false;  // a child graph: cuGraphDestroy refuses it
  std::weak_ptr<struct GraphExec> only_exec;  // of a graph with conditional nodes
  mutable std::mutex mutex;
  std::vector<std::shared_ptr<GraphNode>> nodes;  // in order of creation
};

inline CUgraph handle_of(const Graph& graph) {
  return HandleTable<CUgraph, Graph>::handle_of(&graph);
}
inline CUgraphNode handle_of(const GraphNode& node) {
  return HandleTable<CUgraphNode, GraphNode>::handle_of(&node);
}

std::shared_ptr<Graph> create_graph();
void destroy_graph(const std::shared_ptr<Graph>& graph);

// Adds a node behind `dependencies`, which must be nodes of this graph (else
// CUDA_ERROR_INVALID_VALUE).
CUresult add_node(Graph& graph, std::span<const CUgraphNode> dependencies, NodeWork work,
                  CUgraphNode* node);
// CUDA_ERROR_INVALID_VALUE: not two nodes of this graph, or the edge is there already, or would
// close a circle.
CUresult add_edge(Graph& graph, CUgraphNode from, CUgraphNode to);
CUresult destroy_node(const std::shared_ptr<GraphNode>& node);

// A copy with nodes of its own, child graphs included.
std::shared_ptr<Graph> clone_graph(const Graph& graph);

// Every node after the nodes that it depends on; among equals in order of creation.
std::vector<GraphNode*> topological_order(const Graph& graph);

// Whether `node` is one of `of` or something they depend on.
bool is_ancestor(const GraphNode* node, std::span<GraphNode* const> of);

// The graphs inside a node: its child, its bodies.
std::vector<std::shared_ptr<Graph>> inner_graphs(const GraphNode& node);

void notify_graph(GraphEvent event, const GraphInfo& info);

}  // namespace simgpu
