// Kernels whose parameters never come again: SignatureFamily.
#include <collector/schedule/scheduler_state.h>
#include <xxhash.h>

namespace flopinj {

void MeasurementScheduler::State::join_family(Plan& plan, SampledSignature& s) const {
  if (s.signature->parameter_class != ParameterClass::kExact || config.every_launch) return;
  SignatureFamily& family = plan.families[{s.signature->function, s.signature->shape}];
  if (family.members == 0) {
    family.groups.resize(plan.groups);
    family.needed = plan.always;
  }
  ++family.members;
  s.family = &family;
}

void MeasurementScheduler::State::launched_again(SampledSignature& s) const {
  if (s.repeated || s.family == nullptr) return;
  s.repeated = true;
  ++s.family->repeated;
}

// At the first launch of one more member of a family that never repeats. Empty: as for any other.
std::optional<LaunchDecision> MeasurementScheduler::State::decide_for_family(
    Plan& plan, DeviceId device, SampledSignature& s, const MeasurementWindow* open,
    uint64_t now_ns) {
  if (s.family == nullptr || s.repeated || s.windowed != 0 || !s.family->never_repeats())
    return std::nullopt;
  SignatureFamily& family = *s.family;
  const auto group =
      family.least_taken((family.needed & enabled(plan, device)) - paused(plan, device));
  if (!group) return std::nullopt;
  if (open != nullptr && open->group != *group) return LaunchDecision{true, {}, false, true};
  if (open == nullptr && !budget.affords(true, predicted_ns(plan, s, GroupSet(*group)), now_ns))
    return std::nullopt;
  ++family.groups[*group].taken;
  if (open != nullptr) return LaunchDecision{false, {}, true, true};
  return LaunchDecision{false, group, true, true};
}

void MeasurementScheduler::State::family_sample(Plan& plan, SampledSignature& s, uint32_t g,
                                                std::span<const double> values) {
  if (s.family == nullptr || s.repeated || s.groups[g].samples != 0) return;
  SignatureFamily& family = *s.family;
  SignatureFamily::Group& group = family.groups[g];
  const uint64_t seen = XXH3_64bits(values.data(), values.size_bytes());
  if (++group.samples == 1)
    group.fingerprint = seen;
  else if (group.fingerprint != seen && plan.tells_work.contains(g))
    family.apart = true;
  if (!family.never_repeats() || !family.agrees(family.needed & enabled(plan))) return;
  family.merged = true;
  table.merge_from_now(*s.signature);
}

}  // namespace flopinj
