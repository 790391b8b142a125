// Compiled, and nothing more, against the headers of every CUPTI of cmake/cupti-wheels.txt: what
// the library takes for granted of them holds.
#include <cupti_activity.h>
#include <cupti_version.h>
#if CUPTI_API_VERSION >= 20
#include <cupti_activity_deprecated.h>  // before, cupti_activity.h has all records
#endif
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_profiler_target.h>
#if CUPTI_API_VERSION >= 24
#include <injector/vendor/cupti_structs.h>  // has assertions of its own
#endif
#include <injector/vendor/later_calls.h>

#include <cstddef>

namespace {

// Kernel records have only grown at their end.
template <class Record>
constexpr bool laid_out_as_we_read() {
  return offsetof(Record, start) == 16 && offsetof(Record, end) == 24 &&
         offsetof(Record, correlationId) == 92 && offsetof(Record, graphNodeId) == 144;
}
static_assert(laid_out_as_we_read<CUpti_ActivityKernel9>());
#if CUPTI_API_VERSION >= 130000
static_assert(laid_out_as_we_read<CUpti_ActivityKernel10>());
#endif
#if CUPTI_API_VERSION >= 130100
static_assert(laid_out_as_we_read<CUpti_ActivityKernel11>());
#endif
#if CUPTI_API_VERSION >= 130300
static_assert(laid_out_as_we_read<CUpti_ActivityKernel12>());
#endif
#if CUPTI_API_VERSION >= 130400
static_assert(laid_out_as_we_read<CUpti_ActivityKernel13>());
#endif
// As have those of copies and fills.
template <class Record>
constexpr bool begins_as_a_copy() {
  return offsetof(Record, bytes) == 8 && offsetof(Record, start) == 16 &&
         offsetof(Record, end) == 24 && offsetof(Record, deviceId) == 32;
}
template <class Record>
constexpr bool is_a_copy() {
  return begins_as_a_copy<Record>() && offsetof(Record, copyKind) == 4 &&
         offsetof(Record, srcKind) == 5 && offsetof(Record, dstKind) == 6;
}
static_assert(is_a_copy<CUpti_ActivityMemcpy5>());
static_assert(is_a_copy<CUpti_ActivityMemcpyPtoP4>());
static_assert(offsetof(CUpti_ActivityMemcpyPtoP4, srcDeviceId) == 44);
static_assert(offsetof(CUpti_ActivityMemcpyPtoP4, dstDeviceId) == 52);
static_assert(begins_as_a_copy<CUpti_ActivityMemset4>());
#if CUPTI_API_VERSION >= 26
static_assert(is_a_copy<CUpti_ActivityMemcpy6>());
#endif
#if CUPTI_API_VERSION >= 130400
static_assert(is_a_copy<CUpti_ActivityMemcpy7>());
static_assert(begins_as_a_copy<CUpti_ActivityMemset5>());
#endif
static_assert(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL == 10);
#if CUPTI_API_VERSION >= 22
static_assert(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER == 9);
#endif

// What callbacks are given.
static_assert(sizeof(CUpti_CallbackData) == 72);
static_assert(sizeof(CUpti_ModuleResourceData) == 24);
static_assert(sizeof(CUpti_GraphData) == 56);
static_assert(sizeof(CUpti_ResourceData) == 24);
static_assert(CUPTI_CBID_RESOURCE_MODULE_LOADED == 6);
static_assert(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED == 20);

// Functions that are newer than some of these headers.
#if CUPTI_API_VERSION >= 130100
static_assert(CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc_v2 == flopinj::later::kLaunchHostFunc2);
static_assert(CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc_v2_ptsz ==
              flopinj::later::kLaunchHostFunc2PerThread);
static_assert(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToCig ==
              flopinj::later::kBeginCaptureToCig);
static_assert(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginCaptureToCig_ptsz ==
              flopinj::later::kBeginCaptureToCigPerThread);
static_assert(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCaptureToCig == flopinj::later::kEndCaptureToCig);
static_assert(CUPTI_DRIVER_TRACE_CBID_cuStreamEndCaptureToCig_ptsz ==
              flopinj::later::kEndCaptureToCigPerThread);
#endif
#if CUPTI_API_VERSION >= 130300
static_assert(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginRecaptureToGraph ==
              flopinj::later::kBeginRecapture);
static_assert(CUPTI_DRIVER_TRACE_CBID_cuStreamBeginRecaptureToGraph_ptsz ==
              flopinj::later::kBeginRecapturePerThread);
#endif
#if CUPTI_API_VERSION >= 130400
static_assert(CUPTI_DRIVER_TRACE_CBID_cuGraphAddNode_v3 == flopinj::later::kGraphAddNode3);
static_assert(CUPTI_DRIVER_TRACE_CBID_cuGraphNodeSetParams_v2 ==
              flopinj::later::kGraphNodeSetParams2);
#endif

// How well a device is supported.
static_assert(CUPTI_PROFILER_CONFIGURATION_UNKNOWN == 0);
static_assert(CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED == 1);
static_assert(CUPTI_PROFILER_CONFIGURATION_DISABLED == 2);
static_assert(CUPTI_PROFILER_CONFIGURATION_SUPPORTED == 3);
#if CUPTI_API_VERSION >= 130300
static_assert(CUPTI_PROFILER_CONFIGURATION_LIMITED_SUPPORT == 4);
#endif

}  // namespace
