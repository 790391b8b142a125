#include <cupti.h>
#include <injector/vendor/driver_calls.h>
#include <injector/vendor/graph_readers.h>
#include <injector/vendor/later_calls.h>
#include <injector/vendor/module_readers.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace flopinj {
namespace {

namespace r = readers;
using A = GraphAction;
using L = LaunchKind;

constexpr bool kLegacy = false, kPerThread = true;  // the null stream

constexpr LaunchFunction launch(L kind, bool stream, void (*read)(const void*, LaunchCall&)) {
  return {kind, stream, read};
}
constexpr GraphFunction graph(A action, void (*read)(const void*, GraphCall&)) {
  return {action, read};
}
constexpr ModuleFunction module(CUmodule (*read)(const void*)) { return {read, nullptr}; }
constexpr ModuleFunction gives(GivenHandles (*read)(const void*)) { return {nullptr, read}; }

// The structures of all these calls begin with the stream.
CUstream first_member(const void* parameters) {
  return static_cast<const cuLaunchHostFunc_params*>(parameters)->hStream;
}
static_assert(offsetof(cuLaunchHostFunc_params, hStream) == 0 &&
              offsetof(cuStreamAddCallback_params, hStream) == 0 &&
              offsetof(cuStreamWaitValue32_params, stream) == 0 &&
              offsetof(cuStreamWaitValue64_params, stream) == 0 &&
              offsetof(cuStreamBatchMemOp_params, stream) == 0 &&
              offsetof(cuStreamWaitValue32_v2_params, stream) == 0 &&
              offsetof(cuStreamWaitValue64_v2_params, stream) == 0 &&
              offsetof(cuStreamBatchMemOp_v2_params, stream) == 0 &&
              offsetof(cuStreamDestroy_params, hStream) == 0 &&
              offsetof(cuStreamDestroy_v2_params, hStream) == 0);
constexpr WaitFunction waits(bool stream) { return {stream, first_member}; }
constexpr StreamEndFunction kEndsStream{first_member};
constexpr SyncFunction kSynchronizes;

constexpr std::array kCalls{
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuModuleLoad, module(r::new_module<cuModuleLoad_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
               module(r::new_module<cuModuleLoadData_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx,
               module(r::new_module<cuModuleLoadDataEx_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary,
               module(r::new_module<cuModuleLoadFatBinary_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction,
               ModuleFunction{r::module_asked, r::function_of_module}},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunch, launch(L::kKernel, kLegacy, r::read_launch)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchGrid, launch(L::kKernel, kLegacy, r::read_grid)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchGridAsync,
               launch(L::kKernel, kLegacy, r::read_grid_async)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuEventQuery, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamQuery, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy, kEndsStream},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpy_v2, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpy, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
               launch(L::kKernel, kLegacy, r::read_kernel<cuLaunchKernel_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamDestroy_v2, kEndsStream},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamAddCallback, waits(kLegacy)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2_ptds, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpy_ptds, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2_ptsz, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamAddCallback_ptsz, waits(kPerThread)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamQuery_ptsz, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz, kSynchronizes},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
               launch(L::kKernel, kPerThread, r::read_kernel<cuLaunchKernel_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32, waits(kLegacy)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_ptsz, waits(kPerThread)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBatchMemOp, waits(kLegacy)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBatchMemOp_ptsz, waits(kPerThread)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64, waits(kLegacy)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_ptsz, waits(kPerThread)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
               launch(L::kKernel, kLegacy, r::read_cooperative)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
               launch(L::kKernel, kPerThread, r::read_cooperative)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernelMultiDevice,
               launch(L::kMultiDevice, kLegacy, nullptr)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCapture_params, false>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_ptsz,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCapture_ptsz_params, true>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture,
               graph(A::kEndCapture, r::capture<cuStreamEndCapture_params, false>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamEndCapture_ptsz,
               graph(A::kEndCapture, r::capture<cuStreamEndCapture_ptsz_params, true>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode,
               graph(A::kAddKernel, r::add_kernel<cuGraphAddKernelNode_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeGetParams,
               gives(r::of_node<cuGraphKernelNodeGetParams_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate,
               graph(A::kInstantiate, r::instantiate<cuGraphInstantiate_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, launch(L::kGraph, kLegacy, r::read_graph)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
               launch(L::kGraph, kPerThread, r::read_graph)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetParams,
               graph(A::kSetKernel, r::set_kernel<cuGraphKernelNodeSetParams_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphAddChildGraphNode, graph(A::kAddChild, r::add_child)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc, waits(kLegacy)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc_ptsz, waits(kPerThread)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams,
               graph(A::kSetExecKernel, r::set_kernel<cuGraphExecKernelNodeSetParams_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCapture_v2_params, false>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCapture_v2_ptsz,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCapture_v2_ptsz_params, true>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate,
               graph(A::kUpdate, r::update<cuGraphExecUpdate_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeCopyAttributes,
               graph(A::kSetAttribute, r::copy_attributes)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetAttribute,
               graph(A::kSetAttribute, r::set_attribute)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiate_v2,
               graph(A::kInstantiate, r::instantiate<cuGraphInstantiate_v2_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphExecChildGraphNodeSetParams,
               graph(A::kSetExecChild, r::set_exec_child)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithFlags,
               graph(A::kInstantiate, r::instantiate<cuGraphInstantiateWithFlags_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetEnabled, graph(A::kEnable, r::enable)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, launch(L::kKernel, kLegacy, r::read_ex)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
               launch(L::kKernel, kPerThread, r::read_ex)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams,
               graph(A::kInstantiate, r::instantiate<cuGraphInstantiateWithParams_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphInstantiateWithParams_ptsz,
               graph(A::kInstantiate, r::instantiate<cuGraphInstantiateWithParams_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2, waits(kLegacy)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue32_v2_ptsz, waits(kPerThread)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_v2, waits(kLegacy)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamWaitValue64_v2_ptsz, waits(kPerThread)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBatchMemOp_v2, waits(kLegacy)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBatchMemOp_v2_ptsz, waits(kPerThread)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLibraryGetKernel, gives(r::kernel_of_library)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLibraryGetModule, module(r::library_module)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuKernelGetFunction, gives(r::function_of_kernel)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphAddKernelNode_v2,
               graph(A::kAddKernel, r::add_kernel<cuGraphAddKernelNode_v2_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeGetParams_v2,
               gives(r::of_node<cuGraphKernelNodeGetParams_v2_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphKernelNodeSetParams_v2,
               graph(A::kSetKernel, r::set_kernel<cuGraphKernelNodeSetParams_v2_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphExecKernelNodeSetParams_v2,
               graph(A::kSetExecKernel, r::set_kernel<cuGraphExecKernelNodeSetParams_v2_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphExecUpdate_v2,
               graph(A::kUpdate, r::update<cuGraphExecUpdate_v2_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode,
               graph(A::kAddKernel, r::add_kernel<cuGraphAddNode_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetParams,
               graph(A::kSetKernel, r::set_kernel<cuGraphNodeSetParams_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphExecNodeSetParams,
               graph(A::kSetExecKernel, r::set_kernel<cuGraphExecNodeSetParams_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCaptureToGraph_params, false>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToGraph_ptsz,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCaptureToGraph_ptsz_params, true>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v2,
               graph(A::kAddKernel, r::add_kernel<cuGraphAddNode_v2_params>)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuModuleEnumerateFunctions, gives(r::functions_of_module)},
    DriverCall{CUPTI_DRIVER_TRACE_CBID_cuLibraryEnumerateKernels, gives(r::kernels_of_library)},
    DriverCall{later::kBeginCaptureToCig,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCapture_params, false>)},
    DriverCall{later::kCtxSynchronize2, kSynchronizes},
    DriverCall{later::kBeginCaptureToCigPerThread,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCapture_ptsz_params, true>)},
    DriverCall{later::kEndCaptureToCig,
               graph(A::kEndCapture, r::capture<cuStreamEndCapture_params, false>)},
    DriverCall{later::kEndCaptureToCigPerThread,
               graph(A::kEndCapture, r::capture<cuStreamEndCapture_ptsz_params, true>)},
    DriverCall{later::kLaunchHostFunc2, waits(kLegacy)},
    DriverCall{later::kLaunchHostFunc2PerThread, waits(kPerThread)},
    DriverCall{later::kBeginRecapture,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCapture_params, false>)},
    DriverCall{later::kBeginRecapturePerThread,
               graph(A::kBeginCapture, r::capture<cuStreamBeginCapture_ptsz_params, true>)},
    DriverCall{later::kGraphAddNode3,
               graph(A::kAddKernel, r::add_kernel<cuGraphAddNode_v2_params>)},
    DriverCall{later::kGraphNodeSetParams2,
               graph(A::kSetKernel, r::set_kernel<cuGraphNodeSetParams_params>)},
};
static_assert(std::ranges::is_sorted(kCalls, {}, &DriverCall::cbid));

// Where in the table a callback id is, plus 1.
constexpr auto kPlaces = [] {
  std::array<uint8_t, kCalls.back().cbid + 1> places{};
  for (size_t i = 0; i < kCalls.size(); ++i) places[kCalls[i].cbid] = static_cast<uint8_t>(i + 1);
  return places;
}();
static_assert(kCalls.size() < 256);

}  // namespace

std::span<const DriverCall> driver_calls() { return kCalls; }

const DriverCall* find_driver_call(uint32_t cbid) noexcept {
  if (cbid >= kPlaces.size() || kPlaces[cbid] == 0) return nullptr;
  return &kCalls[kPlaces[cbid] - 1U];
}

}  // namespace flopinj
