#include <collector/schedule/stretch.h>

#include <algorithm>

namespace flopinj {

uint64_t Random::next() {
  uint64_t z = state_ += 0x9e37'79b9'7f4a'7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11ebULL;
  return z ^ (z >> 31);
}

uint64_t Random::below(uint64_t n) {  // the bias, n / 2^64, is nothing here
  return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
}

Stretch stretch_of(uint32_t round, bool varying, Random& random) {
  constexpr uint32_t kMostDoublings = 40;
  constexpr uint64_t kAllOf = 1'024, kPart = 16, kMostSkipped = 4'096;
  Stretch stretch;
  stretch.launches = kFirstStretch + std::min(round, kShortStretches);
  if (round >= kShortStretches)
    stretch.launches <<= std::min(round - kShortStretches + 1, kMostDoublings);
  if (varying) stretch.launches = std::min(stretch.launches, kVaryingStretch);
  stretch.skip_below =
      std::min(stretch.launches, std::clamp(stretch.launches / kPart, kAllOf, kMostSkipped));
  stretch.arm_after = random.below(stretch.launches - stretch.skip_below + 1);
  return stretch;
}

}  // namespace flopinj
