#include <collector/schedule/sampled_signature.h>

#include <algorithm>

namespace flopinj {

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
