// Exported: the part of the profiling API that comes before the range profiler.
#include <cupti_profiler_target.h>

#include <cstring>

#include "chips.h"
#include "counters/availability_image.h"
#include "counters/metrics.h"
#include "entry.h"
#include "process.h"

namespace {

using simgpu::Driver;
using namespace simgpu::cupti;

}  // namespace

extern "C" {

CUptiResult CUPTIAPI cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* pParams) {
  return with_driver([&](Process& process, const Driver&) {
    if (!valid(pParams, CUpti_Profiler_Initialize_Params_STRUCT_SIZE))
      return CUPTI_ERROR_INVALID_PARAMETER;
    process.attach();
    process.ranges.set_initialized(true);
    return CUPTI_SUCCESS;
  });
}

CUptiResult CUPTIAPI cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* pParams) {
  return with_driver([&](Process& process, const Driver& driver) {
    if (!valid(pParams, CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE))
      return CUPTI_ERROR_INVALID_PARAMETER;
    if (pParams->cuDevice < 0 || pParams->cuDevice >= driver.device_count())
      return CUPTI_ERROR_INVALID_DEVICE;
    const auto chip = find_chip(driver.chip_name(pParams->cuDevice));
    const bool virtual_gpu = process.environment.faults.unsupported_device;
    const auto yes = CUPTI_PROFILER_CONFIGURATION_SUPPORTED;
    pParams->architecture = chip ? yes : CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
    pParams->sli = yes;
    pParams->vGpu = virtual_gpu ? CUPTI_PROFILER_CONFIGURATION_DISABLED : yes;
    pParams->confidentialCompute = yes;
    pParams->cmp = yes;
    pParams->wsl = yes;
    pParams->isSupported = chip && !virtual_gpu ? yes : CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
    // The enumeration of older headers has no such value.
    constexpr int kLimitedSupport = 4;
    if (pParams->isSupported == yes && process.environment.faults.limited_support)
      std::memcpy(&pParams->isSupported, &kLimitedSupport, sizeof kLimitedSupport);
    return CUPTI_SUCCESS;
  });
}

// Any session on the device is in the way, as the header says.
CUptiResult CUPTIAPI
cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params* pParams) {
  return with_driver([&](Process& process, const Driver& driver) {
    if (!valid(pParams, CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE))
      return CUPTI_ERROR_INVALID_PARAMETER;
    const CUcontext context = pParams->ctx != nullptr ? pParams->ctx : driver.current_context();
    if (driver.context_id(context) == 0) return CUPTI_ERROR_INVALID_CONTEXT;
    const uint32_t device = driver.device_of_context(context);
    const auto chip = find_chip(driver.chip_name(static_cast<int>(device)));
    if (!chip) return CUPTI_ERROR_NOT_SUPPORTED;
    if (const CUptiResult told = process.ranges.tells_availability(device); told != CUPTI_SUCCESS)
      return told;
    const std::vector<uint8_t> image = write_availability_image(
        {*chip, counters_named(*chip, process.environment.faults.slice_lacks)});
    const size_t room = pParams->counterAvailabilityImageSize;
    pParams->counterAvailabilityImageSize = image.size();
    if (pParams->pCounterAvailabilityImage == nullptr) return CUPTI_SUCCESS;
    if (room < image.size()) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
    std::memcpy(pParams->pCounterAvailabilityImage, image.data(), image.size());
    return CUPTI_SUCCESS;
  });
}

}  // extern "C"
