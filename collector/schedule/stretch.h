// Stretches of launches, in each of which one sample of every group is taken, at a random place.
// sampled_signature.h says how they follow one another.
#pragma once
#include <cstdint>

namespace flopinj {

// splitmix64. Not for secrets.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t n);  // uniform in [0, n); 0 for n = 0

 private:
  uint64_t state_;
};

// One stretch: the round is armed once `arm_after` of its launches have been made; then a number of
// launches below `skip_below` is passed over, drawn for each group.
struct Stretch {
  uint64_t launches = 0, arm_after = 0, skip_below = 0;
};
inline constexpr uint64_t kFirstStretch = 16;
inline constexpr uint32_t kShortStretches = 64;
inline constexpr uint64_t kVaryingStretch = 1'024;
// What is passed over is at most all of a stretch of up to 1,024 launches, and of a longer one a
// 16th or 4,096, so that launches pay for being counted only near the sample.
Stretch stretch_of(uint32_t round, bool varying, Random&);

}  // namespace flopinj
