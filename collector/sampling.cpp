#include <collector/sampling.h>

#include <algorithm>
#include <bit>

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

std::optional<uint32_t> SampledSignature::least_sampled(uint64_t among, uint32_t enough) const {
  std::optional<uint32_t> least;
  uint32_t least_samples = enough;
  for (; among != 0; among &= among - 1) {
    const auto g = static_cast<uint32_t>(std::countr_zero(among));
    const uint32_t samples = groups[g].samples + groups[g].pending;
    const bool backwards = least && samples == least_samples && samples % 2 != 0;
    if (groups[g].given_up || (samples >= least_samples && !backwards)) continue;
    least = g;
    least_samples = samples;
  }
  return least;
}

uint64_t SampledSignature::missing() const {
  uint64_t result = 0;
  for (uint64_t left = needed; left != 0; left &= left - 1) {
    const auto g = static_cast<uint32_t>(std::countr_zero(left));
    if (groups[g].samples == 0 && !groups[g].given_up) result |= uint64_t{1} << g;
  }
  return result;
}

bool SampledSignature::has_every_group() const {
  for (uint64_t left = needed; left != 0; left &= left - 1)
    if (groups[static_cast<size_t>(std::countr_zero(left))].samples == 0) return false;
  return needed != 0;
}

std::optional<uint32_t> SignatureFamily::least_taken(uint64_t among) const {
  std::optional<uint32_t> least;
  for (; among != 0; among &= among - 1) {
    const auto g = static_cast<uint32_t>(std::countr_zero(among));
    if (groups[g].taken < kAgreeing && (!least || groups[g].taken < groups[*least].taken))
      least = g;
  }
  return least;
}

bool SignatureFamily::agrees(uint64_t among) const {
  for (; among != 0; among &= among - 1)
    if (groups[static_cast<size_t>(std::countr_zero(among))].samples < kAgreeing) return false;
  return !apart;
}

uint64_t SampledSignature::usual_ns(uint64_t instrumented_groups) const {
  if (timed != 0) return mean_gpu_ns();
  uint64_t least = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    if (((instrumented_groups >> g) & 1) == 0 && groups[g].call_ns != 0)
      least = least == 0 ? groups[g].call_ns : std::min(least, groups[g].call_ns);
  return least;
}

std::optional<double> SampledSignature::slow_down() const {
  const auto mean = static_cast<double>(mean_gpu_ns());
  if (instrumented == 0 || windowed_timed < windowed || mean == 0) return std::nullopt;
  const double beyond =
      static_cast<double>(windowed_gpu_ns) - mean * static_cast<double>(windowed_timed);
  return 1 + std::max(0.0, beyond) / (mean * static_cast<double>(instrumented));
}

void SampledSignature::rest(Random& random) {
  phase = Phase::kResting;
  armed = 0;
  // A round that came late (for want of budget, or because launches came fast) shortens no stretch.
  stretch_began = std::max(stretch_began + stretch_launches, launches);
  const Stretch next = stretch_of(rounds, varying, random);
  stretch_launches = next.launches;
  skip_below = next.skip_below;
  next_at = stretch_began + next.arm_after;
}

}  // namespace flopinj
