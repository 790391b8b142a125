// Exported: the part of the profiling API that comes before the range profiler.
#include <cupti_profiler_target.h>

#include <cstring>

#include "chips.h"
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

}  // extern "C"
