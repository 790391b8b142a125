// How parameter structures of graph and capture functions are read, at EXIT of a call. Out
// parameters are only read where it succeeded. Private to the table of driver calls.
#pragma once
#include <cupti.h>
#include <injector/vendor/graph_calls.h>

namespace flopinj::readers {

template <class P>
void read_node_kernel(const P& p, GraphCall& call) {
  call.kernel_call.function = p.func;
  if constexpr (requires { p.kern; }) call.kernel = p.kern;
  read_shape(p, call.kernel_call.shape);
  call.kernel_call.parameters = parameter_values(p.kernelParams, p.extra);
}

// A node of any type.
inline void read_node(const CUgraphNodeParams* p, GraphCall& call) {
  if (p->type == CU_GRAPH_NODE_TYPE_KERNEL) {
    read_node_kernel(p->kernel, call);
  } else if (p->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    call.action = call.action == GraphAction::kAddKernel ? GraphAction::kAddChild
                                                         : GraphAction::kSetExecChild;
    call.other = p->graph.graph;
    call.relevant = call.action == GraphAction::kAddChild || call.exec != nullptr;
  } else if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && call.action == GraphAction::kAddKernel) {
    call.action = GraphAction::kAddConditional;
    if (p->conditional.phGraph_out != nullptr)
      call.bodies = {p->conditional.phGraph_out, p->conditional.size};
  } else {
    call.relevant = false;
  }
}

template <class P>
void add_kernel(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.graph = p.hGraph;
  if (p.phGraphNode != nullptr) call.node = *p.phGraphNode;
  if (p.nodeParams == nullptr)
    call.relevant = false;
  else if constexpr (requires { p.nodeParams->type; })
    read_node(p.nodeParams, call);
  else
    read_node_kernel(*p.nodeParams, call);
}

template <class P>
void set_kernel(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.node = p.hNode;
  if constexpr (requires { p.hGraphExec; }) call.exec = p.hGraphExec;
  if (p.nodeParams == nullptr)
    call.relevant = false;
  else if constexpr (requires { p.nodeParams->type; })
    read_node(p.nodeParams, call);
  else
    read_node_kernel(*p.nodeParams, call);
}

inline void add_child(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphAddChildGraphNode_params*>(parameters);
  call.graph = p.hGraph;
  call.other = p.childGraph;
  if (p.phGraphNode != nullptr) call.node = *p.phGraphNode;
}

template <class P>
void instantiate(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.graph = p.hGraph;
  if (p.phGraphExec != nullptr) call.exec = *p.phGraphExec;
  unsigned long long flags = 0;
  if constexpr (requires { p.instantiateParams; }) {
    if (p.instantiateParams != nullptr) flags = p.instantiateParams->flags;
  } else if constexpr (requires { p.flags; }) {
    flags = p.flags;
  }
  call.for_device = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0;
}

inline void set_attribute(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphKernelNodeSetAttribute_params*>(parameters);
  call.node = p.hNode;
  call.relevant = p.attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && p.value != nullptr;
  if (!call.relevant) return;
  const auto& [x, y, z] = p.value->clusterDim;
  // A launch without clusters has none in its signature; a program may call that one block.
  if (uint64_t{x} * y * z > 1) call.kernel_call.shape.cluster = {x, y, z};
}

inline void copy_attributes(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphKernelNodeCopyAttributes_params*>(parameters);
  call.node = p.dst;
  call.source = p.src;
}

inline void set_exec_child(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphExecChildGraphNodeSetParams_params*>(parameters);
  call.exec = p.hGraphExec;
  call.node = p.hNode;
  call.other = p.childGraph;
}

inline void enable(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphNodeSetEnabled_params*>(parameters);
  call.exec = p.hGraphExec;
  call.node = p.hNode;
  call.enabled = p.isEnabled != 0;
}

template <class P>
void update(const void* parameters, GraphCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.exec = p.hGraphExec;
  call.other = p.hGraph;
}

template <class P, bool PerThread>
void capture(const void* parameters, GraphCall& call) {
  call.stream = static_cast<const P*>(parameters)->hStream;
  if (PerThread && call.stream == nullptr) call.stream = CU_STREAM_PER_THREAD;
}

}  // namespace flopinj::readers
