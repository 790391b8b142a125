// What differs between the versions of CUPTI that this library can be.
//
// Sources: the headers and libraries of the wheels 12.1.105, 12.4.127, 12.6.80, 12.8.90, 12.9.79,
// 13.0.85, 13.1.115, 13.2.75, 13.2.86, 13.3.75, 13.4.92 and 13.5.25 on PyPI; for refused buffers,
// kineto issue 1275.
#pragma once
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace simgpu::cupti {

inline constexpr uint32_t kCupti126 = 24, kCupti128 = 26, kCupti129 = 27, kCupti130 = 130000,
                          kCupti131 = 130100, kCupti132 = 130200, kCupti133 = 130300,
                          kCupti134 = 130400;

// The CUDA driver must be of this major version or a later one.
constexpr int driver_major(uint32_t version) {
  return version < kCupti130 ? 12 : static_cast<int>(version / 10000);
}

// Without a driver that fits, calls that need one give this; see also refused_unstarted().
constexpr CUptiResult no_driver_error(uint32_t version) {
  return version < kCupti130 ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_ERROR_UNKNOWN;
}

// A null activity buffer rejects the request; before, it is written to.
constexpr bool null_buffer_is_refusal(uint32_t version) { return version >= kCupti129; }

// The default of CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER.
constexpr bool per_thread_buffers(uint32_t version) { return version >= kCupti130; }

// From a version on, the size of a structure.
struct SizeSince {
  uint32_t version;
  size_t size;
};
// Of the structures that have grown; empty for all others.
template <class Params>
inline constexpr std::span<const SizeSince> kGrowth{};

inline constexpr SizeSince kDeviceSupported[] = {{0, 52}, {kCupti131, 56}};
template <>
inline constexpr std::span<const SizeSince> kGrowth<CUpti_Profiler_DeviceSupported_Params> =
    kDeviceSupported;
inline constexpr SizeSince kMetricProperties[] = {{0, 60}, {kCupti131, 64}};
template <>
inline constexpr std::span<const SizeSince>
    kGrowth<CUpti_Profiler_Host_GetMetricProperties_Params> = kMetricProperties;
inline constexpr SizeSince kHostInitialize[] = {{0, 48}, {kCupti132, 56}};
template <>
inline constexpr std::span<const SizeSince> kGrowth<CUpti_Profiler_Host_Initialize_Params> =
    kHostInitialize;
inline constexpr SizeSince kRangeEnable[] = {{0, 32}, {kCupti134, 36}};
template <>
inline constexpr std::span<const SizeSince> kGrowth<CUpti_RangeProfiler_Enable_Params> =
    kRangeEnable;
inline constexpr SizeSince kSubscriber[] = {{0, 32}, {kCupti132, 40}};
template <>
inline constexpr std::span<const SizeSince> kGrowth<CUpti_SubscriberParams> = kSubscriber;

// The size that `version` knows; `unchanged` is that of a structure that has not grown.
constexpr size_t size_in(std::span<const SizeSince> growth, uint32_t version, size_t unchanged) {
  size_t size = unchanged;
  for (const SizeSince& step : growth)
    if (step.version <= version) size = step.size;
  return size;
}

// Whether `version` takes a structure of this size: of its own, or of an older version unless
// `exact`. CUPTI 13.0 refuses both smaller and larger ones than every version up to it has; whether
// those after it take an older size has not been tried, for want of a driver.
constexpr bool takes_size(std::span<const SizeSince> growth, uint32_t version, size_t unchanged,
                          bool exact, size_t size) {
  if (size == size_in(growth, version, unchanged)) return true;
  if (!exact)
    for (const SizeSince& step : growth)
      if (step.version <= version && step.size == size) return true;
  return false;
}

}  // namespace simgpu::cupti
