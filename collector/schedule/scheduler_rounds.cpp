// What comes after a signature's first samples: rounds, the budget's queue, coverage.
#include <collector/schedule/scheduler_state.h>

#include <algorithm>
#include <cstdio>

namespace flopinj {
namespace {

using Phase = SampledSignature::Phase;

constexpr size_t kMostTried = 64;               // of a queue at a time
constexpr uint64_t kSweepNs = 1'000'000'000;    // how often
constexpr uint64_t kForgetNs = 10'000'000'000;  // an armed signature that is not launched

std::string stop_line(const Coverage& coverage, double until) {
  const char* const what = coverage.gpu_ns != 0 ? "GPU time" : "launches";
  char text[160];
  std::snprintf(text, sizeof text,
                "covered: %.2f %% of %s has complete counts, %.2f %% was asked for",
                coverage.share() * 100, what, until * 100);
  std::string line = text;
  if (coverage.unmeasurable_launches == 0) return line;
  std::snprintf(text, sizeof text, "; left out: %.2f %% of all %s, which cannot be measured",
                coverage.unmeasurable_share() * 100, what);
  return line + text;
}

double share_of(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

}  // namespace

double Coverage::share() const {
  return gpu_ns != 0 ? share_of(covered_gpu_ns, gpu_ns - unmeasurable_gpu_ns)
                     : share_of(covered_launches, launches - unmeasurable_launches);
}
double Coverage::unmeasurable_share() const {
  return gpu_ns != 0 ? share_of(unmeasurable_gpu_ns, gpu_ns)
                     : share_of(unmeasurable_launches, launches);
}

void MeasurementScheduler::State::set_complete(SampledSignature& s, bool complete) {
  if (s.complete == complete) return;
  s.complete = complete;
  const auto change = [&](uint64_t& sum, uint64_t by) { sum = complete ? sum + by : sum - by; };
  change(coverage.covered_launches, s.recorded);
  change(coverage.covered_gpu_ns, s.gpu_ns);
}

// A group that the signature needs cannot be measured here, or was given up before it was read
// once: it will never be complete.
void MeasurementScheduler::State::set_hopeless(SampledSignature& s) {
  if (!s.measurable()) return void(s.hopeless = true);
  s.hopeless = true;
  coverage.unmeasurable_launches += s.recorded;
  coverage.unmeasurable_gpu_ns += s.gpu_ns;
}

// Launches where windows are: with the first ones the signature can be measured.
void MeasurementScheduler::State::count_launches(SampledSignature& s, uint64_t launches) {
  const bool before = s.measurable();
  s.launches += launches;
  if (before || !s.measurable()) return;
  coverage.unmeasurable_launches -= s.recorded;
  coverage.unmeasurable_gpu_ns -= s.gpu_ns;
}

// A sample has shown that the signature needs the group.
void MeasurementScheduler::State::need(Plan& plan, SampledSignature& s,
                                       std::optional<uint32_t> needed) {
  if (!needed) {
    set_complete(s, false);
    return set_hopeless(s);
  }
  s.shown |= GroupSet(*needed);
  if (s.family != nullptr) s.family->shown |= GroupSet(*needed);
  need_group(plan, s, *needed);
}

void MeasurementScheduler::State::need_group(Plan& plan, SampledSignature& s, uint32_t g) {
  if (s.needed.contains(g)) return;
  const GroupSet group(g);
  s.needed |= group;
  if (s.family != nullptr) s.family->needed |= group;
  set_complete(s, false);
  if (s.groups[g].given_up) set_hopeless(s);
  if (s.phase == Phase::kResting) {
    s.phase = Phase::kQueued;
    incomplete.push_back({&plan, &s});
  }
  if (s.phase == Phase::kQueued) return;
  if (s.phase == Phase::kArmed) {
    s.armed |= group;
    s.groups[g].skip = random.below(kFirstStretch);
  }
  want(plan, s, group);
}

// True: the group that bounds what `of` would have counted is measured for the signature.
bool MeasurementScheduler::State::need_substitute(Plan& plan, SampledSignature& s, uint32_t of) {
  const auto substitute = plan.substitute[of];
  if (!substitute || s.groups[of].samples != 0 || s.groups[*substitute].given_up ||
      !enabled(plan).contains(*substitute))
    return false;
  need_group(plan, s, *substitute);
  return true;
}

// Nothing reads the group of the signature, now or ever: it was given up, or a device that measures
// has it paused or lost.
bool MeasurementScheduler::State::is_silent(const Plan& plan, const SampledSignature& s,
                                            uint32_t g) const {
  if (s.groups[g].samples != 0) return false;
  if (s.groups[g].given_up) return true;
  for (const DeviceId device : plan.devices) {
    const GroupSet groups = enabled(plan, device);
    if (!groups.empty() && !(groups - paused(plan, device)).contains(g)) return true;
  }
  return false;
}

// Where the group that screens is silent, the signature needs every conditional group: else its
// work would be missing without a mark. Groups that were needed for this reason only are dropped
// once the screening group has samples.
void MeasurementScheduler::State::assume(Plan& plan, SampledSignature& s) {
  if (config.every_launch) return;
  GroupSet assumed;
  for (const GroupCondition& condition : plan.conditions) {
    if (!is_silent(plan, s, condition.group)) continue;
    if (condition.needed)
      assumed |= GroupSet(*condition.needed);
    else if (s.groups[condition.group].given_up || !enabled(plan).contains(condition.group))
      need(plan, s, {});
  }
  for (const uint32_t g : s.assumed - assumed) {
    if (s.shown.contains(g)) continue;
    need_no_more(s, g);
    s.armed -= GroupSet(g);
    want_not(plan, s, GroupSet(g));
  }
  s.assumed = assumed;
  for (const uint32_t g : assumed) need_group(plan, s, g);
}

void MeasurementScheduler::State::need_no_more(SampledSignature& s, uint32_t g) {
  s.needed -= GroupSet(g);
  if (s.family != nullptr && !s.family->shown.contains(g)) s.family->needed -= GroupSet(g);
}

// Looks whether the signature has what it was to be measured for.
void MeasurementScheduler::State::advance(Plan& plan, SampledSignature& s) {
  if (config.every_launch) return;
  if (s.phase == Phase::kFirst) {
    if (s.least_sampled(s.needed & enabled(plan), config.first_samples)) return;
    for (const GroupProgress& group : s.groups)
      if (group.pending != 0) return;
    rest(plan, s);
  } else if (s.phase == Phase::kArmed && (s.armed & enabled(plan)).empty()) {
    ++s.rounds;
    next_stretch(plan, s);
  }
}

// A round is over. A short stretch begins at once, unless others wait for the budget.
void MeasurementScheduler::State::next_stretch(Plan& plan, SampledSignature& s) {
  const uint64_t left = s.stretch_left;
  rest(plan, s);
  const GroupSet groups = groups_of_round(plan, s);
  if (s.rounds >= kShortStretches || groups.empty() || !incomplete.empty() || !due.empty() ||
      !arm(plan, s, groups, s.skip_below, false))
    return;
  s.stretch_left += left;
  for (GroupProgress& group : s.groups) group.skip += left;
}

void MeasurementScheduler::State::disarm(Plan& plan, SampledSignature& s) {
  want_not(plan, s, GroupSet::first(plan.groups));
  budget.release(s.reserved_ns);
  s.reserved_ns = 0;
}

void MeasurementScheduler::State::rest(Plan& plan, SampledSignature& s) {
  disarm(plan, s);
  s.rest(random);
}

// No room in the budget: the launch path is left alone until there is. What lacks no group can wait
// for its first round.
void MeasurementScheduler::State::refuse(Plan& plan, SampledSignature& s) {
  disarm(plan, s);
  if (s.missing().empty()) return s.rest(random);
  s.phase = Phase::kQueued;
  incomplete.push_back({&plan, &s});
}

uint64_t MeasurementScheduler::State::predicted_ns(const Plan& plan, const SampledSignature& s,
                                                   GroupSet groups) const {
  uint64_t sum = 0;
  for (const uint32_t g : groups) {
    const bool instrumented = plan.instrumented.contains(g);
    sum += budget.predicted_ns(instrumented, s.groups[g].call_ns,
                               instrumented ? s.usual_ns(plan.instrumented) : 0);
  }
  return sum;
}

GroupSet MeasurementScheduler::State::groups_of_round(const Plan& plan,
                                                      const SampledSignature& s) const {
  GroupSet groups = s.needed & enabled(plan);
  if (!s.varying && s.rounds >= kShortStretches && s.rounds % 2 != 0) groups -= plan.instrumented;
  for (uint32_t g = 0; g < plan.groups; ++g)
    if (s.groups[g].given_up) groups -= GroupSet(g);
  return groups;
}

bool MeasurementScheduler::State::arm(Plan& plan, SampledSignature& s, GroupSet groups,
                                      uint64_t skip_below, bool lacks_groups) {
  const uint64_t cost = predicted_ns(plan, s, groups);
  if (!budget.affords(lacks_groups, cost, clock_ns)) return false;
  if (!s.listed) armed.push_back({&plan, &s});
  s.listed = true;
  budget.reserve(cost);
  s.reserved_ns = cost;
  s.phase = Phase::kArmed;
  s.last_seen_ns = std::max(s.last_seen_ns, clock_ns);
  s.armed = groups;
  s.skip_below = s.stretch_left = skip_below;
  for (const uint32_t g : groups) s.groups[g].skip = random.below(skip_below);
  want(plan, s, groups);
  return true;
}

void MeasurementScheduler::State::count(const LaunchProgress& p) {
  coverage.launches += p.recorded;
  coverage.gpu_ns += p.gpu_ns;
  if (Plan* const plan = plan_of(p.device, 0); plan != nullptr)
    count_for(*plan, p);
  else
    before_plan[p.device][p.signature].add(p);
}

// A plan that has come covers the launches before it, too.
void MeasurementScheduler::State::count_before_plan(DeviceId device, Plan& plan) {
  const auto before = before_plan.extract(device);
  if (before.empty()) return;
  for (const auto& [signature, progress] : before.mapped()) count_for(plan, progress);
}

void MeasurementScheduler::State::count_for(Plan& plan, const LaunchProgress& p) {
  const Signature* const signature = table.find(p.signature);
  if (signature == nullptr) return;
  if (!may_be_measured(*signature)) {
    coverage.unmeasurable_launches += p.recorded;
    coverage.unmeasurable_gpu_ns += p.gpu_ns;
    return;
  }
  SampledSignature& s = sampled(plan, *signature);
  count_launches(s, p.launches);
  s.recorded += p.recorded;
  s.timed += p.timed;
  s.gpu_ns += p.gpu_ns;
  if (s.complete) {
    coverage.covered_launches += p.recorded;
    coverage.covered_gpu_ns += p.gpu_ns;
  }
  if (!s.measurable()) {
    coverage.unmeasurable_launches += p.recorded;
    coverage.unmeasurable_gpu_ns += p.gpu_ns;
  }
  if (const uint64_t usual = p.windowed_timed * s.mean_gpu_ns();
      s.timed != 0 && p.windowed_gpu_ns > usual)
    budget.slowed_down(p.windowed_gpu_ns - usual);
  s.windowed_timed += p.windowed_timed;
  s.windowed_gpu_ns += p.windowed_gpu_ns;
  if (const auto slow_down = s.slow_down(); slow_down && !s.slow_down_told) {
    s.slow_down_told = true;
    budget.slow_down_seen(*slow_down);
  }
  if (p.launches == 0) return;
  if (s.launches > 1) launched_again(s);
  s.last_seen_ns = clock_ns;
  if (s.phase != Phase::kResting || s.launches < s.next_at || stopped || config.every_launch)
    return;
  s.phase = Phase::kQueued;
  (s.missing().empty() ? due : incomplete).push_back({&plan, &s});
}

// Arms what the budget has room for. What it has none for goes to the end of its queue, so that one
// expensive kernel does not hold up the others.
void MeasurementScheduler::State::arm_due() {
  for (size_t tried = std::min(incomplete.size(), kMostTried); tried > 0; --tried) {
    const Entry e = incomplete.front();
    incomplete.pop_front();
    if (e.signature->phase != Phase::kQueued) continue;
    const GroupSet groups = e.signature->missing() & enabled(*e.plan);
    if (groups.empty())
      rest(*e.plan, *e.signature);
    else if (!arm(*e.plan, *e.signature, groups, kFirstStretch, true))
      incomplete.push_back(e);
  }
  for (size_t tried = std::min(due.size(), kMostTried); tried > 0; --tried) {
    const Entry e = due.front();
    due.pop_front();
    if (e.signature->phase != Phase::kQueued) continue;
    const GroupSet groups = groups_of_round(*e.plan, *e.signature);
    if (groups.empty()) {
      ++e.signature->rounds;
      rest(*e.plan, *e.signature);
    } else if (!arm(*e.plan, *e.signature, groups, e.signature->skip_below, false)) {
      due.push_back(e);
    }
  }
}

// What was armed and is launched no more gives its part of the budget back.
void MeasurementScheduler::State::sweep() {
  if (clock_ns < next_sweep_ns) return;
  next_sweep_ns = clock_ns + kSweepNs;
  std::erase_if(armed, [&](const Entry& e) FLOPINJ_REQUIRES(mutex) {
    SampledSignature& s = *e.signature;
    if (s.phase == Phase::kArmed && clock_ns - s.last_seen_ns < kForgetNs) return false;
    if (s.phase == Phase::kArmed) rest(*e.plan, s);
    s.listed = false;
    return true;
  });
}

void MeasurementScheduler::State::check_coverage() {
  if (config.until_covered <= 0 || stopped) return;
  if (coverage.share() < config.until_covered) {
    covered_since_ns = 0;
  } else if (covered_since_ns == 0) {
    covered_since_ns = clock_ns;
  } else if (clock_ns - covered_since_ns >= config.covered_for_ns) {
    stop(stop_line(coverage, config.until_covered));
  }
}

void MeasurementScheduler::progress(std::span<const LaunchProgress> seen, uint64_t calls_outside,
                                    uint64_t calls_outside_ns, uint64_t now_ns) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  try {
    state.clock_ns = now_ns;
    state.budget.calls_outside(calls_outside, calls_outside_ns);
    for (const LaunchProgress& p : seen) state.count(p);
    if (!state.stopped && !state.config.every_launch) state.arm_due();
    state.sweep();
    state.check_coverage();
  } catch (const std::exception&) {  // without memory nothing more is armed
  }
}

Coverage MeasurementScheduler::coverage() const {
  const MutexLock lock(state_->mutex);
  return state_->coverage;
}
std::string MeasurementScheduler::stop_reason() const {
  const MutexLock lock(state_->mutex);
  return state_->stop_reason;
}
uint64_t MeasurementScheduler::spent_ns() const {
  const MutexLock lock(state_->mutex);
  return state_->budget.spent_ns();
}
bool MeasurementScheduler::varying(DeviceId device, SignatureId id) const {
  const MutexLock lock(state_->mutex);
  const auto* const plan = state_->plan_of(device, 0);
  if (plan == nullptr) return false;
  const auto s = plan->signatures.find(id);
  return s != plan->signatures.end() && s->second.varying;
}

}  // namespace flopinj
