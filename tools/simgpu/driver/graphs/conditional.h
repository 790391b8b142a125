// Conditional nodes: graphs inside a graph that run, or run again, as a value on the device says.
//
// CUDA's rules that are kept: a handle is made for a graph before the node; a graph with such nodes
// is not cloned, is no child, and has one executable graph at a time; the default value is applied
// at every launch where the handle was made with CU_GRAPH_COND_ASSIGN_DEFAULT; a kernel sets the
// value by cudaGraphSetConditional.
#pragma once
#include "driver/execution/stream.h"
#include "driver/graphs/graph.h"

namespace simgpu {

// CUDA_ERROR_INVALID_VALUE: flags that CUDA does not know.
CUresult create_condition(const Graph& graph, unsigned int default_value, unsigned int flags,
                          CUgraphConditionalHandle* handle);
// For kernels: a handle that nobody made is passed over.
void set_condition(uint64_t handle, uint32_t value);

// A node's work from its parameters, whose phGraph_out then names the new bodies. INVALID_VALUE for
// a handle of another graph, or a number of bodies that the type does not have.
CUresult make_conditional(const Graph& graph, CUDA_CONDITIONAL_NODE_PARAMS& params,
                          ConditionalWork& work);
bool has_conditionals(const Graph& graph);
// At a launch: default values of the conditions of all its nodes, bodies included.
void apply_defaults(const Graph& graph);

// Runs bodies as the value says, until it says no more.
CUresult run_conditional(Stream& stream, const ConditionalWork& work, const GraphOrigin& origin);

}  // namespace simgpu
