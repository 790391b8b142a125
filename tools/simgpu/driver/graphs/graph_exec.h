// Executable graphs: a clone of a graph, fixed in shape, that can be launched again and again.
#pragma once
#include "driver/graphs/graph.h"

namespace simgpu {

struct GraphExec {
  uint32_t id = 0;
  std::mutex mutex;               // one launch or update at a time
  std::shared_ptr<Graph> graph;   // its own clone; reachable by no program
  std::vector<GraphNode*> order;  // the clone's nodes, child graphs' nodes in place of theirs
  std::mutex launches_mutex;
  Mark launched;  // the newest launch, under launches_mutex
};

inline CUgraphExec handle_of(const GraphExec& exec) {
  return HandleTable<CUgraphExec, GraphExec>::handle_of(&exec);
}

// A graph's nodes as they are run, child graphs' nodes in place of theirs.
std::vector<GraphNode*> execution_order(const Graph& graph);

std::shared_ptr<GraphExec> instantiate(const Graph& graph);
void destroy_exec(const std::shared_ptr<GraphExec>& exec);

// Waits for launches in flight, before it changes: they run as it was.
void wait_for_launches(GraphExec& exec);

// Runs every node. A node that fails ends the launch with its error.
CUresult launch_exec(GraphExec& exec, Stream& stream);

// The executable's copy of a node of the graph it was made from, or of a graph inside that; null
// when there is none.
GraphNode* counterpart(const GraphExec& exec, const GraphNode& original);

// Takes over the parameters of a graph of the same shape; else CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
// and why.
CUresult update_exec(GraphExec& exec, const Graph& graph, CUgraphExecUpdateResultInfo* info);

// The same for one child graph, whose node is `node`.
CUresult update_child(GraphExec& exec, const GraphNode& node, const Graph& graph);

// Runs `work` on the stream now; a child graph's nodes one after the other.
CUresult run_work(Stream& stream, const NodeWork& work, const GraphOrigin& origin);

}  // namespace simgpu
