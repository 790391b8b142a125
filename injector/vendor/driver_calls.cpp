#include <cupti.h>
#include <injector/vendor/driver_calls.h>
#include <injector/vendor/graph_readers.h>
#include <injector/vendor/later_calls.h>
#include <injector/vendor/module_readers.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace flopinj {
namespace {

namespace r = readers;
using A = GraphAction;
using L = LaunchKind;

constexpr bool kLegacy = false, kPerThread = true;  // the null stream

template <L kind, void (*read)(const void*, LaunchCall&)>
constexpr LaunchFunction launch(bool stream) {
  return {kind, stream, read};
}
constexpr GraphFunction graph(A action, void (*read)(const void*, GraphCall&)) {
  return {action, read};
}
template <A action, class P>
constexpr GraphFunction capture(bool stream) {
  return {action, stream == kLegacy ? r::capture<P, false> : r::capture<P, true>};
}

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
              offsetof(cuStreamQuery_params, hStream) == 0 &&
              offsetof(cuStreamSynchronize_params, hStream) == 0 &&
              offsetof(cuStreamDestroy_params, hStream) == 0 &&
              offsetof(cuStreamDestroy_v2_params, hStream) == 0);
constexpr WaitFunction waits(bool stream) { return {stream, first_member}; }
constexpr StreamEndFunction kEndsStream{first_member};
constexpr SyncFunction kSynchronizes;
constexpr SyncFunction waits_for_all(SyncFunction::Of context) { return {context, false, nullptr}; }
constexpr SyncFunction waits_for(bool stream) {
  return {SyncFunction::Of::kStream, stream, first_member};
}

// clang-format off
// None of them hands the name on: some names are macros of cuda.h.
#define CALL(name, ...) DriverCall{CUPTI_DRIVER_TRACE_CBID_##name, __VA_ARGS__}
#define GRAPH(name, action, read) \
  DriverCall{CUPTI_DRIVER_TRACE_CBID_##name, graph(A::action, r::read<name##_params>)}
#define MODULE(name, ...) \
  DriverCall{CUPTI_DRIVER_TRACE_CBID_##name, ModuleFunction{r::__VA_ARGS__}}
// With the call of programs whose null stream is the thread's own.
#define TWICE(name, ...) \
  DriverCall{CUPTI_DRIVER_TRACE_CBID_##name, (__VA_ARGS__)(kLegacy)}, \
  DriverCall{CUPTI_DRIVER_TRACE_CBID_##name##_ptsz, (__VA_ARGS__)(kPerThread)}
#define LATER(name, ...) \
  DriverCall{later::name, (__VA_ARGS__)(kLegacy)}, \
  DriverCall{later::name##PerThread, (__VA_ARGS__)(kPerThread)}

constexpr std::array kCalls{
    CALL(cuLaunch, launch<L::kKernel, r::read_launch>(kLegacy)),
    CALL(cuLaunchGrid, launch<L::kKernel, r::read_grid>(kLegacy)),
    CALL(cuLaunchGridAsync, launch<L::kKernel, r::read_grid_async>(kLegacy)),
    TWICE(cuLaunchKernel, launch<L::kKernel, r::read_kernel<cuLaunchKernel_params>>),
    TWICE(cuLaunchKernelEx, launch<L::kKernel, r::read_ex>),
    TWICE(cuLaunchCooperativeKernel, launch<L::kKernel, r::read_cooperative>),
    CALL(cuLaunchCooperativeKernelMultiDevice, launch<L::kMultiDevice, nullptr>(kLegacy)),
    TWICE(cuGraphLaunch, launch<L::kGraph, r::read_graph>),

    TWICE(cuStreamAddCallback, waits),
    TWICE(cuLaunchHostFunc, waits),
    LATER(kLaunchHostFunc2, waits),
    TWICE(cuStreamWaitValue32, waits),
    TWICE(cuStreamWaitValue32_v2, waits),
    TWICE(cuStreamWaitValue64, waits),
    TWICE(cuStreamWaitValue64_v2, waits),
    TWICE(cuStreamBatchMemOp, waits),
    TWICE(cuStreamBatchMemOp_v2, waits),
    CALL(cuStreamDestroy, kEndsStream),
    CALL(cuStreamDestroy_v2, kEndsStream),

    CALL(cuGreenCtxCreate, GreenFunction{}),

    CALL(cuCtxSynchronize, waits_for_all(SyncFunction::Of::kThisContext)),
    DriverCall{later::kCtxSynchronize2, waits_for_all(SyncFunction::Of::kContext)},
    CALL(cuEventQuery, kSynchronizes),
    CALL(cuEventSynchronize, kSynchronizes),
    TWICE(cuStreamQuery, waits_for),
    TWICE(cuStreamSynchronize, waits_for),
    CALL(cuMemcpy, kSynchronizes),
    CALL(cuMemcpy_v2, kSynchronizes),
    CALL(cuMemcpy_ptds, kSynchronizes),
    CALL(cuMemcpy2DUnaligned_v2, kSynchronizes),
    CALL(cuMemcpyDtoH, kSynchronizes),
    CALL(cuMemcpyDtoH_v2, kSynchronizes),
    CALL(cuMemcpyDtoH_v2_ptds, kSynchronizes),
    CALL(cuMemcpyDtoHAsync, kSynchronizes),
    CALL(cuMemcpyDtoHAsync_v2, kSynchronizes),
    CALL(cuMemcpyDtoHAsync_v2_ptsz, kSynchronizes),

    MODULE(cuModuleLoad, load_module<cuModuleLoad_params>),
    MODULE(cuModuleLoadData, load_module<cuModuleLoadData_params>),
    MODULE(cuModuleLoadDataEx, load_module<cuModuleLoadDataEx_params>),
    MODULE(cuModuleLoadFatBinary, load_module<cuModuleLoadFatBinary_params>),
    MODULE(cuLibraryLoadData, load_library<cuLibraryLoadData_params>),
    MODULE(cuLibraryLoadFromFile, load_library<cuLibraryLoadFromFile_params>),
    MODULE(cuLibraryGetModule, module_of_library),
    MODULE(cuModuleGetFunction, function_of_module),
    MODULE(cuModuleEnumerateFunctions, functions_of_module),
    MODULE(cuLibraryGetKernel, kernel_of_library),
    MODULE(cuLibraryEnumerateKernels, kernels_of_library),
    MODULE(cuKernelGetFunction, function_of_kernel),
    MODULE(cuFuncGetName, name_of<cuFuncGetName_params>),
    MODULE(cuKernelGetName, name_of<cuKernelGetName_params>),

    TWICE(cuStreamBeginCapture, capture<A::kBeginCapture, cuStreamBeginCapture_params>),
    TWICE(cuStreamBeginCapture_v2, capture<A::kBeginCapture, cuStreamBeginCapture_v2_params>),
    TWICE(cuStreamBeginCaptureToGraph,
          capture<A::kBeginCapture, cuStreamBeginCaptureToGraph_params>),
    LATER(kBeginCaptureToCig, capture<A::kBeginCapture, cuStreamBeginCapture_params>),
    LATER(kBeginRecapture, capture<A::kBeginCapture, cuStreamBeginCapture_params>),
    TWICE(cuStreamEndCapture, capture<A::kEndCapture, cuStreamEndCapture_params>),
    LATER(kEndCaptureToCig, capture<A::kEndCapture, cuStreamEndCapture_params>),
    GRAPH(cuGraphAddKernelNode, kAddKernel, add_kernel),
    GRAPH(cuGraphAddKernelNode_v2, kAddKernel, add_kernel),
    GRAPH(cuGraphAddNode, kAddKernel, add_kernel),
    GRAPH(cuGraphAddNode_v2, kAddKernel, add_kernel),
    DriverCall{later::kGraphAddNode3,
               graph(A::kAddKernel, r::add_kernel<cuGraphAddNode_v2_params>)},
    CALL(cuGraphAddChildGraphNode, graph(A::kAddChild, r::add_child)),
    GRAPH(cuGraphKernelNodeSetParams, kSetKernel, set_kernel),
    GRAPH(cuGraphKernelNodeSetParams_v2, kSetKernel, set_kernel),
    GRAPH(cuGraphNodeSetParams, kSetKernel, set_kernel),
    DriverCall{later::kGraphNodeSetParams2,
               graph(A::kSetKernel, r::set_kernel<cuGraphNodeSetParams_params>)},
    GRAPH(cuGraphKernelNodeGetParams, kTell, set_kernel),
    GRAPH(cuGraphKernelNodeGetParams_v2, kTell, set_kernel),
    CALL(cuGraphKernelNodeCopyAttributes, graph(A::kSetAttribute, r::copy_attributes)),
    CALL(cuGraphKernelNodeSetAttribute, graph(A::kSetAttribute, r::set_attribute)),
    GRAPH(cuGraphInstantiate, kInstantiate, instantiate),
    GRAPH(cuGraphInstantiate_v2, kInstantiate, instantiate),
    GRAPH(cuGraphInstantiateWithFlags, kInstantiate, instantiate),
    GRAPH(cuGraphInstantiateWithParams, kInstantiate, instantiate),
    CALL(cuGraphInstantiateWithParams_ptsz,
         graph(A::kInstantiate, r::instantiate<cuGraphInstantiateWithParams_params>)),
    GRAPH(cuGraphExecKernelNodeSetParams, kSetExecKernel, set_kernel),
    GRAPH(cuGraphExecKernelNodeSetParams_v2, kSetExecKernel, set_kernel),
    GRAPH(cuGraphExecNodeSetParams, kSetExecKernel, set_kernel),
    CALL(cuGraphExecChildGraphNodeSetParams, graph(A::kSetExecChild, r::set_exec_child)),
    GRAPH(cuGraphExecUpdate, kUpdate, update),
    GRAPH(cuGraphExecUpdate_v2, kUpdate, update),
    CALL(cuGraphNodeSetEnabled, graph(A::kEnable, r::enable)),
};
// clang-format on
#undef CALL
#undef GRAPH
#undef MODULE
#undef TWICE
#undef LATER

// Where in the table a callback id is, plus 1. A second row of one would not compile.
constexpr auto kPlaces = [] {
  std::array<uint8_t, std::ranges::max(kCalls, {}, &DriverCall::cbid).cbid + 1> places{};
  for (size_t i = 0; i < kCalls.size(); ++i)
    if (std::exchange(places[kCalls[i].cbid], static_cast<uint8_t>(i + 1)) != 0) std::abort();
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
