// What cuptiProfilerDeviceSupported says of a device, as a decision.
#pragma once
#include <cupti_profiler_target.h>
#include <injector/vendor/cupti_check.h>

#include <cstdint>

namespace flopinj {

// CUPTI 13.3 and later: "supported, but only for a limited set of metrics".
inline constexpr int kLimitedSupport = 4;

enum class DeviceSupport : uint8_t {
  kTry,      // supported, or CUPTI does not know: what follows says better what is wrong
  kLimited,  // some metrics cannot be read; `problem` says so
  kRefused   // `problem` says why, and what helps
};

// Of a call that succeeded. Pure.
DeviceSupport device_support(const CUpti_Profiler_DeviceSupported_Params&, Problem& problem);

}  // namespace flopinj
