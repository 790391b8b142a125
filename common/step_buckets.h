// Buckets that durations are counted in: 64 to an octave, so that a bucket's middle is within 0.8 %
// of every duration in it. Numbers are part of the trace format (StepSums.bucket).
#pragma once
#include <bit>
#include <cstdint>

namespace flopinj {

inline constexpr uint32_t kStepBucketBits = 6;

// Up to 127 ns each duration has its own. A double has the position of the highest bit, and the
// bits after it: to make one takes less time than to count bits does.
constexpr uint32_t step_bucket(uint64_t ns) {
  constexpr uint32_t kMantissaBits = 52, kExponentOf1 = 1023;
  if (ns < 2U << kStepBucketBits) return static_cast<uint32_t>(ns);
  if (ns >> kMantissaBits != 0) return step_bucket(ns >> 12) + (12 << kStepBucketBits);
  const auto bits = std::bit_cast<uint64_t>(static_cast<double>(static_cast<int64_t>(ns)));
  return static_cast<uint32_t>(bits >> (kMantissaBits - kStepBucketBits)) -
         ((kExponentOf1 + kStepBucketBits - 1) << kStepBucketBits);
}

// The smallest duration in a bucket; UINT64_MAX past the last one.
constexpr uint64_t step_bucket_begin(uint32_t bucket) {
  constexpr uint32_t kOwn = 2U << kStepBucketBits;
  if (bucket < kOwn) return bucket;
  const uint32_t shift = (bucket >> kStepBucketBits) - 1;
  if (shift > 64 - kStepBucketBits - 1) return UINT64_MAX;
  return uint64_t{bucket - (shift << kStepBucketBits)} << shift;
}

// What a duration in a bucket is taken for.
constexpr double step_bucket_middle(uint32_t bucket) {
  return static_cast<double>(step_bucket_begin(bucket)) / 2 +
         static_cast<double>(step_bucket_begin(bucket + 1) - 1) / 2;
}

static_assert(step_bucket(127) == 127 && step_bucket(128) == 128 && step_bucket(129) == 128);
static_assert(step_bucket_begin(step_bucket(1'000'000)) <= 1'000'000);
static_assert(step_bucket_begin(step_bucket(1'000'000) + 1) > 1'000'000);
inline constexpr uint32_t kStepBuckets = step_bucket(UINT64_MAX) + 1;

}  // namespace flopinj
