#include <collector/schedule/sampled_signature.h>

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

std::optional<uint32_t> SampledSignature::least_sampled(GroupSet among, uint32_t enough) const {
  std::optional<uint32_t> least;
  uint32_t least_samples = enough;
  for (const uint32_t g : among) {
    const uint32_t samples = groups[g].samples + groups[g].pending;
    const bool backwards = least && samples == least_samples && samples % 2 != 0;
    if (groups[g].given_up || (samples >= least_samples && !backwards)) continue;
    least = g;
    least_samples = samples;
  }
  return least;
}

GroupSet SampledSignature::missing() const {
  GroupSet result;
  for (const uint32_t g : needed)
    if (groups[g].samples == 0 && !groups[g].given_up) result |= GroupSet(g);
  return result;
}

bool SampledSignature::has_every_group() const {
  for (const uint32_t g : needed)
    if (groups[g].samples == 0) return false;
  return !needed.empty();
}

std::optional<uint32_t> SignatureFamily::least_taken(GroupSet among) const {
  std::optional<uint32_t> least;
  for (const uint32_t g : among) {
    if (groups[g].taken < kAgreeing && (!least || groups[g].taken < groups[*least].taken))
      least = g;
  }
  return least;
}

bool SignatureFamily::agrees(GroupSet among) const {
  for (const uint32_t g : among)
    if (groups[g].samples < kAgreeing) return false;
  return !apart;
}

uint64_t SampledSignature::usual_ns(GroupSet instrumented_groups) const {
  if (timed != 0) return mean_gpu_ns();
  uint64_t least = 0;
  for (uint32_t g = 0; g < groups.size(); ++g)
    if (!instrumented_groups.contains(g) && groups[g].call_ns != 0)
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
  armed = {};
  // A round that came late (for want of budget, or because launches came fast) shortens no stretch.
  stretch_began = std::max(stretch_began + stretch_launches, launches);
  const Stretch next = stretch_of(rounds, varying, random);
  stretch_launches = next.launches;
  skip_below = next.skip_below;
  next_at = stretch_began + next.arm_after;
}

}  // namespace flopinj
