// What windows bring: samples, failures, their cost.
#include <collector/schedule/scheduler_state.h>
#include <xxhash.h>

#include <algorithm>

namespace flopinj {
namespace {

bool is_first_of_signature(const std::vector<WindowRow>& rows, size_t i) {
  return std::none_of(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(i),
                      [&](const WindowRow& r) { return r.signature == rows[i].signature; });
}

}  // namespace

void MeasurementScheduler::State::account(const Plan& plan, const MeasurementWindow& window) {
  if (window.trial)
    return budget.tried(plan.instrumented.contains(window.group), window.cost.overhead_ns);
  uint64_t gpu_ns = 0;
  for (const WindowRow& row : window.rows)
    if (const auto s = plan.signatures.find(row.signature->id); s != plan.signatures.end())
      gpu_ns += s->second.mean_gpu_ns();
  const bool instrumented = plan.instrumented.contains(window.group);
  budget.window(instrumented, window.cost, gpu_ns);
}

uint64_t MeasurementScheduler::State::work_of(const Plan& plan, uint32_t g,
                                              std::span<const double> values) {
  const auto work = values.first(std::min(plan.work_columns[g], values.size()));
  return XXH3_64bits(work.data(), work.size_bytes());
}

void MeasurementScheduler::State::compare(const Plan& plan, SampledSignature& s, uint32_t g,
                                          std::span<const double> values) const {
  GroupProgress& group = s.groups[g];
  const uint64_t seen = work_of(plan, g, values);
  if (group.samples == 0)
    group.fingerprint = seen;
  else if (group.fingerprint != seen && plan.tells_work.contains(g))
    s.varying = true;
}

void MeasurementScheduler::State::sample(Plan& plan, SampledSignature& s, uint32_t g,
                                         std::span<const double> values) {
  GroupProgress& group = s.groups[g];
  if (group.pending != 0) --group.pending;
  group.failures = 0;
  compare(plan, s, g, values);
  family_sample(plan, s, g, values);
  ++group.samples;
  if (plan.answering.contains(g)) assume(plan, s);
  s.armed -= GroupSet(g);
  if (s.phase == SampledSignature::Phase::kArmed) want_not(plan, s, GroupSet(g));
  if (!s.complete && !s.hopeless && s.has_every_group()) set_complete(s, true);
}

void MeasurementScheduler::window_succeeded(const MeasurementWindow& window,
                                            std::span<const double> values) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  if (!window.trial) ++state.opened;
  State::Plan* const plan = state.plan_of(window.device, window.group);
  if (plan == nullptr) return;
  state.account(*plan, window);
  state.devices[window.device].empty_failures[window.group] = 0;
  const std::vector<WindowRow>& rows = window.rows;
  const size_t width = rows.empty() ? 0 : values.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!may_be_measured(*rows[i].signature)) continue;
    try {
      SampledSignature& s = state.sampled(*plan, *rows[i].signature);
      if (rows[i].unread) {
        GroupProgress& group = s.groups[window.group];
        if (rows[i].chosen && group.pending != 0) --group.pending;
        continue;
      }
      const auto row = values.subspan(i * width, width);
      for (const GroupCondition& condition : plan->conditions)
        if (condition.group == window.group && condition.holds(row))
          state.need(*plan, s, condition.needed);
      if (state.config.every_launch) {
        for (const uint32_t g : window.together) ++s.groups[g].samples;
        if (!s.hopeless && s.has_every_group()) state.set_complete(s, true);
        continue;
      }
      if (rows[i].chosen)
        state.sample(*plan, s, window.group, row);
      else
        state.compare(*plan, s, window.group, row);  // it was read anyway
    } catch (const std::exception&) {
      rows[i].signature->wanted_groups.store(0, std::memory_order_relaxed);
    }
  }
  for (size_t i = 0; i < rows.size() && !state.config.every_launch; ++i) {
    if (!is_first_of_signature(rows, i)) continue;
    if (const auto s = plan->signatures.find(rows[i].signature->id); s != plan->signatures.end())
      state.advance(*plan, s->second);
  }
}

void MeasurementScheduler::State::fail(Plan& plan, SampledSignature& s, uint32_t g) {
  GroupProgress& group = s.groups[g];
  group.pending = 0;
  group.skip = random.below(s.skip_below);
  if (++group.failures >= config.max_failures) give_up(plan, s, g);
}

void MeasurementScheduler::State::give_up(Plan& plan, SampledSignature& s, uint32_t g) {
  GroupProgress& group = s.groups[g];
  group.given_up = true;
  if (group.samples == 0 && s.needed.contains(g)) {
    if (need_substitute(plan, s, g)) {
      need_no_more(s, g);
    } else if (plan.answering.contains(g)) {
      need_no_more(s, g);
      assume(plan, s);
    } else {
      set_hopeless(s);
    }
  }
  s.armed -= GroupSet(g);
  want_not(plan, s, GroupSet(g));
  advance(plan, s);
}

MeasurementScheduler::State::Plan* MeasurementScheduler::State::discard(
    const MeasurementWindow& window) {
  if (!window.trial) ++opened, ++discarded;
  Plan* const plan = plan_of(window.device, window.group);
  if (plan != nullptr) account(*plan, window);
  return plan;
}

void MeasurementScheduler::window_failed(const MeasurementWindow& window) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  State::Plan* const plan = state.discard(window);
  if (plan == nullptr) return;
  if (window.rows.empty()) {
    if (++state.devices[window.device].empty_failures[window.group] >= state.config.max_failures)
      state.lose(*plan, window.device, window.group);
    return;
  }
  for (size_t i = 0; i < window.rows.size(); ++i) {
    if (!is_first_of_signature(window.rows, i)) continue;
    const Signature& signature = *window.rows[i].signature;
    if (!may_be_measured(signature)) continue;
    try {
      state.fail(*plan, state.sampled(*plan, signature), window.group);
    } catch (const std::exception&) {
      signature.wanted_groups.store(0, std::memory_order_relaxed);
    }
  }
}

void MeasurementScheduler::window_unread(const MeasurementWindow& window) noexcept {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  State::Plan* const plan = state.discard(window);
  if (plan == nullptr) return;
  for (const WindowRow& row : window.rows)
    if (const auto s = plan->signatures.find(row.signature->id); s != plan->signatures.end())
      s->second.groups[window.group].pending = 0;
}

void MeasurementScheduler::cannot_measure(DeviceId device, const Signature& signature,
                                          uint32_t group) noexcept {
  state_->without_row(device, signature, group, &State::give_up);
}

void MeasurementScheduler::cannot_measure_launch(DeviceId device, const Signature& signature,
                                                 uint32_t group) noexcept {
  state_->without_row(device, signature, group, &State::fail);
}

// What a launch outside of windows has shown.
void MeasurementScheduler::State::without_row(DeviceId device, const Signature& signature,
                                              uint32_t group,
                                              void (State::*happened)(Plan&, SampledSignature&,
                                                                      uint32_t)) noexcept {
  const MutexLock lock(mutex);
  Plan* const plan = plan_of(device, group);
  if (plan == nullptr) return;
  try {
    (this->*happened)(*plan, sampled(*plan, signature), group);
  } catch (const std::exception&) {
    signature.wanted_groups.store(0, std::memory_order_relaxed);
  }
}

void MeasurementScheduler::add_cost(uint64_t ns) noexcept {
  const MutexLock lock(state_->mutex);
  state_->budget.overhead(ns);
}

}  // namespace flopinj
