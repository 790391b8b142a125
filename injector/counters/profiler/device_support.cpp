#include <injector/counters/profiler/device_support.h>

#include <cstring>

namespace flopinj {
namespace {

// As a number: a newer CUPTI answers levels that the enumeration of the headers does not have, and
// such a value must not be read as an enumerator.
int number_of(const CUpti_Profiler_Support_Level& level) {
  int number = 0;
  static_assert(sizeof number == sizeof level);
  std::memcpy(&number, &level, sizeof number);
  return number;
}

// Of one feature. Unknown is no refusal.
bool refuses(const CUpti_Profiler_Support_Level& level) {
  const int number = number_of(level);
  return number == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED ||
         number == CUPTI_PROFILER_CONFIGURATION_DISABLED;
}

}  // namespace

DeviceSupport device_support(const CUpti_Profiler_DeviceSupported_Params& p, Problem& problem) {
  if (number_of(p.isSupported) == kLimitedSupport) {
    problem = {"counters.limited",
               "CUPTI supports this GPU only for a limited set of metrics: groups that it cannot "
               "read are named, and kernels that need them have no count"};
    return DeviceSupport::kLimited;
  }
  if (!refuses(p.isSupported)) return DeviceSupport::kTry;

  CUptiResult why = CUPTI_ERROR_NOT_SUPPORTED;
  if (refuses(p.confidentialCompute)) why = CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED;
  if (refuses(p.vGpu)) why = CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED;
  if (number_of(p.vGpu) == CUPTI_PROFILER_CONFIGURATION_DISABLED)
    why = CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES;
  if (refuses(p.sli)) why = kSliNotSupported;
  if (refuses(p.cmp)) why = CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED;
  if (refuses(p.wsl)) why = kWslNotSupported;
  check(why, "cuptiProfilerDeviceSupported", problem);
  if (refuses(p.architecture))
    problem = {"counters.architecture",
               "CUPTI's range profiler reads no counters of GPUs before Turing (compute capability "
               "7.5): kernels are timed"};
  return DeviceSupport::kRefused;
}

}  // namespace flopinj
