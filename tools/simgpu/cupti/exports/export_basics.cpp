// Exported: version, results, time, ids of CUDA objects, detaching.
#include <cupti.h>
#include <cupti_target.h>
#include <time.h>

#include "chips.h"
#include "entry.h"
#include "process.h"

namespace {

using simgpu::Driver;
using namespace simgpu::cupti;

}  // namespace

extern "C" {

// The real one has no such function: by it a tool knows whose CUPTI it is.
CUPTIAPI __attribute__((visibility("default"))) const char* cuptiSimgpuVersion() {
  return "simulated CUPTI";
}

CUptiResult CUPTIAPI cuptiGetVersion(uint32_t* version) {
  return entry([&] {
    if (version == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    *version = Process::get().environment.cupti_version;
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* timestamp) {
  return entry([&] {
    if (timestamp == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    if (Process::get().version() >= kCupti133 && Process::get().callbacks.shared())
      return CUPTI_ERROR_NOT_COMPATIBLE;  // openxla/xla, pull request 44322
    if (const Driver* driver = Process::get().driver()) {
      *timestamp = driver->timestamp_ns();
      return CUPTI_SUCCESS;
    }
    timespec now{};  // works without a driver, as in CUPTI
    clock_gettime(CLOCK_REALTIME, &now);
    *timestamp =
        static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t* contextId) {
  return with_driver([&](Process&, const Driver& driver) {
    if (contextId == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    const uint32_t id = context == nullptr ? 0 : driver.context_id(context);
    if (id == 0) return CUPTI_ERROR_INVALID_CONTEXT;
    *contextId = id;
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t* deviceId) {
  return with_driver([&](Process&, const Driver& driver) {
    if (deviceId == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    if (context == nullptr || driver.context_id(context) == 0) return CUPTI_ERROR_INVALID_DEVICE;
    *deviceId = driver.device_of_context(context);
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* streamId) {
  return with_driver([&](Process&, const Driver& driver) {
    if (streamId == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
    const uint32_t id = driver.stream_id(context, stream);
    if (id == 0) return CUPTI_ERROR_INVALID_STREAM;
    *streamId = id;
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
                                        uint32_t* streamId) {
  // The null stream with per-thread default streams is the calling thread's own.
  const bool own = perThreadStream != 0 && stream == nullptr;
  return cuptiGetStreamId(context, own ? CU_STREAM_PER_THREAD : stream, streamId);
}

CUptiResult CUPTIAPI cuptiGetGraphNodeId(CUgraphNode node, uint64_t* nodeId) {
  return with_driver([&](Process&, const Driver& driver) {
    const uint64_t id = nodeId == nullptr || node == nullptr ? 0 : driver.graph_node_id(node);
    if (id == 0) return CUPTI_ERROR_INVALID_PARAMETER;
    *nodeId = id;
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* pParams) {
  return with_driver([&](Process&, const Driver& driver) {
    if (!valid(pParams, CUpti_Device_GetChipName_Params_STRUCT_SIZE))
      return CUPTI_ERROR_INVALID_PARAMETER;
    if (pParams->deviceIndex >= static_cast<size_t>(driver.device_count()))
      return CUPTI_ERROR_INVALID_DEVICE;
    const std::string& other = Process::get().environment.chip_name;
    pParams->pChipName =
        other.empty() ? driver.chip_name(static_cast<int>(pParams->deviceIndex)) : other.c_str();
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiFinalize(void) {
  return entry([] {
    Process::get().detach();
    return CUPTI_SUCCESS;
  });
}

}  // extern "C"
