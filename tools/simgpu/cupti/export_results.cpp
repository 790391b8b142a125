// Exported: names and messages of result codes, thread id type.
#include <cupti.h>

#include <array>
#include <atomic>

#include "entry.h"

namespace simgpu::cupti {

CUptiResult& last_error() noexcept {
  thread_local CUptiResult last = CUPTI_SUCCESS;
  return last;
}

}  // namespace simgpu::cupti

namespace {

// In the order of CUptiResult, from 0.
constexpr std::array kNames = {
    "CUPTI_SUCCESS",
    "CUPTI_ERROR_INVALID_PARAMETER",
    "CUPTI_ERROR_INVALID_DEVICE",
    "CUPTI_ERROR_INVALID_CONTEXT",
    "CUPTI_ERROR_INVALID_EVENT_DOMAIN_ID",
    "CUPTI_ERROR_INVALID_EVENT_ID",
    "CUPTI_ERROR_INVALID_EVENT_NAME",
    "CUPTI_ERROR_INVALID_OPERATION",
    "CUPTI_ERROR_OUT_OF_MEMORY",
    "CUPTI_ERROR_HARDWARE",
    "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT",
    "CUPTI_ERROR_API_NOT_IMPLEMENTED",
    "CUPTI_ERROR_MAX_LIMIT_REACHED",
    "CUPTI_ERROR_NOT_READY",
    "CUPTI_ERROR_NOT_COMPATIBLE",
    "CUPTI_ERROR_NOT_INITIALIZED",
    "CUPTI_ERROR_INVALID_METRIC_ID",
    "CUPTI_ERROR_INVALID_METRIC_NAME",
    "CUPTI_ERROR_QUEUE_EMPTY",
    "CUPTI_ERROR_INVALID_HANDLE",
    "CUPTI_ERROR_INVALID_STREAM",
    "CUPTI_ERROR_INVALID_KIND",
    "CUPTI_ERROR_INVALID_EVENT_VALUE",
    "CUPTI_ERROR_DISABLED",
    "CUPTI_ERROR_INVALID_MODULE",
    "CUPTI_ERROR_INVALID_METRIC_VALUE",
    "CUPTI_ERROR_HARDWARE_BUSY",
    "CUPTI_ERROR_NOT_SUPPORTED",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES",
    "CUPTI_ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS",
    "CUPTI_ERROR_CDP_TRACING_NOT_SUPPORTED",
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_CUDA_COMPILER_NOT_COMPATIBLE",
    "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES",
    "CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED",
    "CUPTI_ERROR_OPENACC_UNDEFINED_ROUTINE",
    "CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED",
    "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
    "CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
    "CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
    "CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED",
    "CUPTI_ERROR_INVALID_CHIP_NAME",
};
static_assert(kNames.size() == CUPTI_ERROR_INVALID_CHIP_NAME + 1);

const char* name_of(CUptiResult result) {
  if (result == CUPTI_ERROR_UNKNOWN) return "CUPTI_ERROR_UNKNOWN";
  const auto index = static_cast<size_t>(result);
  return index < kNames.size() ? kNames[index] : nullptr;
}

std::atomic<CUpti_ActivityThreadIdType> g_thread_id_type{CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT};

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** str) {
  const char* name = name_of(result);
  if (str == nullptr || name == nullptr)
    return simgpu::cupti::report(CUPTI_ERROR_INVALID_PARAMETER);
  *str = name;
  return CUPTI_SUCCESS;
}

// CUPTI has a longer text for a few codes and the name for the others; here it is always the name.
CUptiResult CUPTIAPI cuptiGetErrorMessage(CUptiResult result, const char** str) {
  return cuptiGetResultString(result, str);
}

CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type) {
  if (type != CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT && type != CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM)
    return simgpu::cupti::report(CUPTI_ERROR_NOT_SUPPORTED);
  g_thread_id_type.store(type, std::memory_order_relaxed);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetThreadIdType(CUpti_ActivityThreadIdType* type) {
  if (type == nullptr) return simgpu::cupti::report(CUPTI_ERROR_INVALID_PARAMETER);
  *type = g_thread_id_type.load(std::memory_order_relaxed);
  return CUPTI_SUCCESS;
}

}  // extern "C"
