#include <cupti.h>
#include <injector/graph_calls.h>

#include <algorithm>
#include <array>

namespace flopinj {
namespace {

template <class P>
void read_kernel(const P& p, GraphCall& call) {
  call.kernel_call.function = p.func;
  if constexpr (requires { p.kern; }) call.kernel = p.kern;
  call.kernel_call.shape.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  call.kernel_call.shape.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  call.kernel_call.shape.dynamic_shared_bytes = p.sharedMemBytes;
  call.kernel_call.parameters = parameter_values(p.kernelParams, p.extra);
}

// A node of any type.
void read_node(const CUgraphNodeParams* p, bool done, GraphCall& call) {
  if (p->type == CU_GRAPH_NODE_TYPE_KERNEL) {
    read_kernel(p->kernel, call);
  } else if (p->type == CU_GRAPH_NODE_TYPE_GRAPH) {
    call.action = call.action == GraphAction::kAddKernel ? GraphAction::kAddChild
                                                         : GraphAction::kSetExecChild;
    call.other = p->graph.graph;
    call.relevant = call.action == GraphAction::kAddChild || call.exec != nullptr;
  } else if (p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && call.action == GraphAction::kAddKernel) {
    call.action = GraphAction::kAddConditional;
    if (done && p->conditional.phGraph_out != nullptr)
      call.bodies = {p->conditional.phGraph_out, p->conditional.size};
  } else {
    call.relevant = false;
  }
}

template <class P>
void add_kernel(const void* parameters, bool done, GraphCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.graph = p.hGraph;
  if (done && p.phGraphNode != nullptr) call.node = *p.phGraphNode;
  if (p.nodeParams == nullptr)
    call.relevant = false;
  else if constexpr (requires { p.nodeParams->type; })
    read_node(p.nodeParams, done, call);
  else
    read_kernel(*p.nodeParams, call);
}

template <class P>
void set_kernel(const void* parameters, bool done, GraphCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.node = p.hNode;
  if constexpr (requires { p.hGraphExec; }) call.exec = p.hGraphExec;
  if (p.nodeParams == nullptr)
    call.relevant = false;
  else if constexpr (requires { p.nodeParams->type; })
    read_node(p.nodeParams, done, call);
  else
    read_kernel(*p.nodeParams, call);
}

void add_child(const void* parameters, bool done, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphAddChildGraphNode_params*>(parameters);
  call.graph = p.hGraph;
  call.other = p.childGraph;
  if (done && p.phGraphNode != nullptr) call.node = *p.phGraphNode;
}

template <class P>
void instantiate(const void* parameters, bool done, GraphCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.graph = p.hGraph;
  if (done && p.phGraphExec != nullptr) call.exec = *p.phGraphExec;
  unsigned long long flags = 0;
  if constexpr (requires { p.instantiateParams; }) {
    if (p.instantiateParams != nullptr) flags = p.instantiateParams->flags;
  } else if constexpr (requires { p.flags; }) {
    flags = p.flags;
  }
  call.for_device = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0;
}

void set_attribute(const void* parameters, bool, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphKernelNodeSetAttribute_params*>(parameters);
  call.node = p.hNode;
  call.relevant = p.attr == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
}

void copy_attributes(const void* parameters, bool, GraphCall& call) {
  call.node = static_cast<const cuGraphKernelNodeCopyAttributes_params*>(parameters)->dst;
}

void set_exec_child(const void* parameters, bool, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphExecChildGraphNodeSetParams_params*>(parameters);
  call.exec = p.hGraphExec;
  call.node = p.hNode;
  call.other = p.childGraph;
}

void enable(const void* parameters, bool, GraphCall& call) {
  const auto& p = *static_cast<const cuGraphNodeSetEnabled_params*>(parameters);
  call.exec = p.hGraphExec;
  call.node = p.hNode;
  call.enabled = p.isEnabled != 0;
}

template <class P>
void update(const void* parameters, bool, GraphCall& call) {
  const auto& p = *static_cast<const P*>(parameters);
  call.exec = p.hGraphExec;
  call.other = p.hGraph;
}

template <class P, bool PerThread>
void capture(const void* parameters, bool, GraphCall& call) {
  call.stream = static_cast<const P*>(parameters)->hStream;
  if (PerThread && call.stream == nullptr) call.stream = CU_STREAM_PER_THREAD;
}

using A = GraphAction;
constexpr std::array kFunctions{
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture, A::kBeginCapture,
                  capture<cuStreamBeginCapture_params, false>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz, A::kBeginCapture,
                  capture<cuStreamBeginCapture_ptsz_params, true>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture, A::kEndCapture,
                  capture<cuStreamEndCapture_params, false>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz, A::kEndCapture,
                  capture<cuStreamEndCapture_ptsz_params, true>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode, A::kAddKernel,
                  add_kernel<cuGraphAddKernelNode_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate, A::kInstantiate,
                  instantiate<cuGraphInstantiate_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetParams, A::kSetKernel,
                  set_kernel<cuGraphKernelNodeSetParams_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphAddChildGraphNode, A::kAddChild, add_child},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams, A::kSetExecKernel,
                  set_kernel<cuGraphExecKernelNodeSetParams_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2, A::kBeginCapture,
                  capture<cuStreamBeginCapture_v2_params, false>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz, A::kBeginCapture,
                  capture<cuStreamBeginCapture_v2_ptsz_params, true>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate, A::kUpdate,
                  update<cuGraphExecUpdate_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeCopyAttributes, A::kSetAttribute,
                  copy_attributes},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetAttribute, A::kSetAttribute,
                  set_attribute},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2, A::kInstantiate,
                  instantiate<cuGraphInstantiate_v2_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphExecChildGraphNodeSetParams, A::kSetExecChild,
                  set_exec_child},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags, A::kInstantiate,
                  instantiate<cuGraphInstantiateWithFlags_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled, A::kEnable, enable},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams, A::kInstantiate,
                  instantiate<cuGraphInstantiateWithParams_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz, A::kInstantiate,
                  instantiate<cuGraphInstantiateWithParams_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode_v2, A::kAddKernel,
                  add_kernel<cuGraphAddKernelNode_v2_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetParams_v2, A::kSetKernel,
                  set_kernel<cuGraphKernelNodeSetParams_v2_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2, A::kSetExecKernel,
                  set_kernel<cuGraphExecKernelNodeSetParams_v2_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2, A::kUpdate,
                  update<cuGraphExecUpdate_v2_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode, A::kAddKernel,
                  add_kernel<cuGraphAddNode_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetParams, A::kSetKernel,
                  set_kernel<cuGraphNodeSetParams_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphExecNodeSetParams, A::kSetExecKernel,
                  set_kernel<cuGraphExecNodeSetParams_params>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph, A::kBeginCapture,
                  capture<cuStreamBeginCaptureToGraph_params, false>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz, A::kBeginCapture,
                  capture<cuStreamBeginCaptureToGraph_ptsz_params, true>},
    GraphFunction{CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2, A::kAddKernel,
                  add_kernel<cuGraphAddNode_v2_params>},
};
static_assert(std::ranges::is_sorted(kFunctions, {}, &GraphFunction::cbid));

}  // namespace

std::span<const GraphFunction> graph_functions() { return kFunctions; }

const GraphFunction* find_graph_function(uint32_t cbid) noexcept {
  const auto at = std::ranges::lower_bound(kFunctions, cbid, {}, &GraphFunction::cbid);
  return at != kFunctions.end() && at->cbid == cbid ? &*at : nullptr;
}

void read_kernel_node(const CUDA_KERNEL_NODE_PARAMS_v2& parameters, GraphCall& call) {
  read_kernel(parameters, call);
}

}  // namespace flopinj
