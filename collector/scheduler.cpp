// Plans, the decision at a launch, and what windows bring.
#include <collector/scheduler_state.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace flopinj {
namespace {

std::optional<size_t> column_of(const MetricGroupPlan& group, const std::string& metric) {
  const auto it = std::find(group.metrics.begin(), group.metrics.end(), metric);
  if (it == group.metrics.end()) return std::nullopt;
  return static_cast<size_t>(it - group.metrics.begin());
}

std::vector<GroupCondition> conditions_of(const std::vector<MetricGroupPlan>& plan) {
  std::vector<GroupCondition> conditions;
  for (uint32_t needed = 0; needed < plan.size(); ++needed)
    for (const NeededIf& need : plan[needed].needed_if)
      for (uint32_t g = 0; g < plan.size(); ++g) {
        const auto metric = column_of(plan[g], need.metric);
        if (metric && plan[g].needed_if.empty())
          conditions.push_back({g, *metric, column_of(plan[g], need.included), needed});
      }
  return conditions;
}

std::vector<GroupId> ids_from(uint32_t first_bit, uint32_t groups) {
  std::vector<GroupId> ids;
  for (uint32_t g = 0; g < groups; ++g) ids.push_back(GroupId{first_bit + g + 1});
  return ids;
}

// A window gives way when what it was opened for comes again, when one kernel follows itself, or when
// it serves nobody.
bool gives_way(const MeasurementWindow& window, const Signature& signature,
               const SchedulerConfig& config) {
  return window.unchosen >= config.switch_launches ||
         (!window.rows.empty() && (window.rows.front().signature == &signature ||
                                   window.rows.back().signature == &signature));
}

// Calls visit(row index) for the first row of every signature.
template <class Visit>
void for_each_signature(const std::vector<WindowRow>& rows, Visit&& visit) {
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto same = [&](const WindowRow& r) { return r.signature == rows[i].signature; };
    if (std::none_of(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(i), same)) visit(i);
  }
}

}  // namespace

bool GroupCondition::holds(std::span<const double> row) const {
  if (std::max(metric, included.value_or(0)) >= row.size()) return false;
  return row[metric] > (included ? row[*included] : 0.0);
}

MeasurementScheduler::MeasurementScheduler(SchedulerConfig config, SignatureTable& table)
    : state_(std::make_unique<State>(config, table)) {}
MeasurementScheduler::~MeasurementScheduler() = default;

void MeasurementScheduler::begin(uint64_t now_ns, uint64_t seed) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->config.seed == 0) state_->random = Random(seed);
  state_->budget.begin(now_ns);
}

std::vector<GroupId> MeasurementScheduler::add_plan(DeviceId device,
                                                    const std::vector<MetricGroupPlan>& plan) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (const auto it = state.plans.find(device); it != state.plans.end())
    return ids_from(it->second.first_bit, it->second.groups);
  const auto groups = static_cast<uint32_t>(std::min<size_t>(plan.size(), kMaxGroups + 1));
  if (groups == 0 || state.used_bits + groups > kMaxGroups || !device ||
      device.value > kMaxPlannedDevices || state.stopped)
    return {};
  State::Plan added;
  added.device = device;
  added.first_bit = state.used_bits;
  added.groups = groups;
  added.empty_failures.resize(groups);
  added.conditions = conditions_of(plan);
  const uint64_t all = groups == kMaxGroups ? ~uint64_t{0} : group_mask(groups) - 1;
  added.always = all;  // a group whose conditions nothing reads is measured for every kernel
  for (const GroupCondition& condition : added.conditions)
    added.always &= ~group_mask(condition.needed);
  for (uint32_t g = 0; g < groups; ++g) {
    if (plan[g].instrumented) added.instrumented |= group_mask(g);
    if (plan[g].required || !plan[g].needed_if.empty()) added.tells_work |= group_mask(g);
  }
  const uint64_t always = added.always << added.first_bit;
  const uint32_t first = added.first_bit;
  std::vector<GroupId> ids = ids_from(first, groups);
  state.plans.emplace(device, std::move(added));
  state.used_bits += groups;
  state.device_bits[device.value].store(all << first, std::memory_order_release);
  state.wanted.fetch_or(always, std::memory_order_relaxed);
  state.table.want_everywhere(always);
  return ids;
}

void MeasurementScheduler::disable(DeviceId device) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->plans.contains(device)) state_->drop_bits(device, state_->device_bits[device.value]);
}

void MeasurementScheduler::disable_all() noexcept {
  const std::lock_guard lock(state_->mutex);
  for (const auto& [device, plan] : state_->plans)
    state_->drop_bits(device, state_->device_bits[device.value]);
}

uint64_t MeasurementScheduler::initial_wanted() const noexcept {
  return state_->wanted.load(std::memory_order_relaxed);
}

MeasurementScheduler::State::Plan* MeasurementScheduler::State::plan_of(DeviceId device,
                                                                        uint32_t group) {
  const auto it = plans.find(device);
  return it == plans.end() || group >= it->second.groups ? nullptr : &it->second;
}

uint64_t MeasurementScheduler::State::enabled(const Plan& plan) const {
  return device_bits[plan.device.value].load(std::memory_order_relaxed) >> plan.first_bit;
}

SampledSignature& MeasurementScheduler::State::sampled(Plan& plan, const Signature& signature) {
  const auto [at, fresh] = plan.signatures.try_emplace(signature.id);
  SampledSignature& s = at->second;
  if (!fresh) return s;
  s.signature = &signature;
  s.needed = plan.always;
  s.groups.resize(plan.groups);
  return s;
}

void MeasurementScheduler::State::want(const Plan& plan, const SampledSignature& s,
                                       uint64_t groups) const {
  s.signature->wanted_groups.fetch_or((groups & enabled(plan)) << plan.first_bit,
                                      std::memory_order_relaxed);
}
void MeasurementScheduler::State::want_not(const Plan& plan, const SampledSignature& s,
                                           uint64_t groups) const {
  const uint64_t all = plan.groups == kMaxGroups ? ~uint64_t{0} : group_mask(plan.groups) - 1;
  s.signature->wanted_groups.fetch_and(~((groups & all) << plan.first_bit),
                                       std::memory_order_relaxed);
}

void MeasurementScheduler::State::drop_bits(DeviceId device, uint64_t bits) {
  wanted.fetch_and(~bits, std::memory_order_relaxed);
  device_bits[device.value].fetch_and(~bits, std::memory_order_relaxed);
  table.want_nowhere(bits);
}

void MeasurementScheduler::State::stop(std::string reason) {
  stop_reason = std::move(reason);
  for (const auto& [device, plan] : plans) drop_bits(device, device_bits[device.value]);
  stopped.store(true, std::memory_order_relaxed);
}

bool MeasurementScheduler::may_want(DeviceId device, const Signature& signature) const noexcept {
  return device.value <= kMaxPlannedDevices && may_be_measured(signature) &&
         (state_->device_bits[device.value].load(std::memory_order_acquire) &
          signature.wanted_groups.load(std::memory_order_relaxed)) != 0;
}

bool MeasurementScheduler::stopped() const noexcept {
  return state_->stopped.load(std::memory_order_relaxed);
}

bool MeasurementScheduler::close_before(const Signature* next) const noexcept {
  return next == nullptr || !may_be_measured(*next);
}

LaunchDecision MeasurementScheduler::decide(DeviceId device, const Signature& signature,
                                            const MeasurementWindow* open,
                                            uint64_t now_ns) noexcept {
  State& state = *state_;
  if (!may_want(device, signature)) return {};
  const std::lock_guard lock(state.mutex);
  State::Plan* const plan = state.plan_of(device, 0);
  if (plan == nullptr) return {};
  if (state.config.every_launch) {
    if (open != nullptr) return {false, {}, true, true};
    return {false, 0, true, true};
  }
  try {
    SampledSignature& s = state.sampled(*plan, signature);
    if (s.phase == SampledSignature::Phase::kFirst)
      return state.decide_first(*plan, s, open, now_ns);
    if (s.phase == SampledSignature::Phase::kArmed) return state.decide_armed(*plan, s, open);
    state.want_not(*plan, s, ~uint64_t{0});
  } catch (const std::exception&) {
    signature.wanted_groups.store(0, std::memory_order_relaxed);
  }
  return {};
}

LaunchDecision MeasurementScheduler::State::decide_first(Plan& plan, SampledSignature& s,
                                                         const MeasurementWindow* open,
                                                         uint64_t now_ns) {
  const auto group = s.least_sampled(s.needed & enabled(plan), config.first_samples);
  if (!group) {
    advance(plan, s);
    return {};
  }
  if (open != nullptr && open->group == *group) return {false, {}, true, true};
  if (open != nullptr) {
    const bool lacks = s.groups[*group].samples == 0;
    const bool close = gives_way(*open, *s.signature, config) || (lacks && s.waited);
    s.waited |= lacks && !close;
    return {close, {}, false, true};
  }
  if (!budget.affords(true, predicted_ns(plan, s, group_mask(*group)), now_ns)) {
    refuse(plan, s);
    return {};
  }
  return {false, group, true, true};
}

// Every launch counts for every group of the round. Two groups that fall on one launch: the later
// one draws again.
LaunchDecision MeasurementScheduler::State::decide_armed(Plan& plan, SampledSignature& s,
                                                         const MeasurementWindow* open) {
  std::optional<uint32_t> chosen;
  for (uint64_t left = s.armed & enabled(plan); left != 0; left &= left - 1) {
    const auto g = static_cast<uint32_t>(std::countr_zero(left));
    GroupProgress& group = s.groups[g];
    if (group.pending != 0) continue;
    if (group.skip > 0)
      --group.skip;
    else if (!chosen)
      chosen = g;
    else
      group.skip = random.below(s.skip_below);
  }
  if (!chosen) return {};
  if (open != nullptr && open->group == *chosen) return {false, {}, true, false};
  return {open != nullptr, chosen, true, false};
}

bool MeasurementScheduler::row_added(MeasurementWindow& window, const WindowRow& row,
                                     uint64_t now_ns) noexcept {
  State& state = *state_;
  const SchedulerConfig& config = state.config;
  window.rows.push_back(row);
  window.unchosen = row.chosen ? 0 : window.unchosen + 1;
  window.cost.calls_ns += row.call_ns;
  ++window.cost.launches;
  const std::lock_guard lock(state.mutex);
  State::Plan* const plan = state.plan_of(window.device, window.group);
  if (plan == nullptr || (state.enabled(*plan) & group_mask(window.group)) == 0) return true;
  const bool old = now_ns > window.opened_ns && now_ns - window.opened_ns >= config.max_open_ns;
  if (old || window.rows.size() >= config.max_ranges) return true;
  if (config.every_launch) return false;
  const auto known = plan->signatures.find(row.signature->id);
  if (known != plan->signatures.end()) {
    GroupProgress& group = known->second.groups[window.group];
    if (row.chosen) {
      ++group.pending;
      group.call_ns = row.call_ns;
    }
    if (group.failures != 0) return true;
  }
  return !window.shared || window.unchosen >= config.idle_launches ||
         !state.budget.affords(true, state.budget.waiting_ns(window.cost), now_ns);
}

void MeasurementScheduler::State::account(const Plan& plan, const MeasurementWindow& window) {
  uint64_t gpu_ns = 0;
  for (const WindowRow& row : window.rows)
    if (const auto s = plan.signatures.find(row.signature->id); s != plan.signatures.end())
      gpu_ns += s->second.mean_gpu_ns();
  const bool instrumented = ((plan.instrumented >> window.group) & 1) != 0;
  budget.window(instrumented, window.cost, gpu_ns);
}

void MeasurementScheduler::State::compare(const Plan& plan, SampledSignature& s, uint32_t g,
                                          std::span<const double> values) const {
  GroupProgress& group = s.groups[g];
  const uint64_t seen = XXH3_64bits(values.data(), values.size_bytes());
  if (group.samples == 0)
    group.fingerprint = seen;
  else if (group.fingerprint != seen && ((plan.tells_work >> g) & 1) != 0)
    s.varying = true;
}

void MeasurementScheduler::State::sample(Plan& plan, SampledSignature& s, uint32_t g,
                                         std::span<const double> values) {
  GroupProgress& group = s.groups[g];
  if (group.pending != 0) --group.pending;
  group.failures = 0;
  compare(plan, s, g, values);
  ++group.samples;
  s.armed &= ~group_mask(g);
  if (s.phase == SampledSignature::Phase::kArmed) want_not(plan, s, group_mask(g));
  if (!s.complete && s.has_every_group()) set_complete(s, true);
}

void MeasurementScheduler::window_succeeded(const MeasurementWindow& window,
                                            std::span<const double> values) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  ++state.opened;
  State::Plan* const plan = state.plan_of(window.device, window.group);
  if (plan == nullptr) return;
  state.account(*plan, window);
  plan->empty_failures[window.group] = 0;
  const std::vector<WindowRow>& rows = window.rows;
  const size_t width = rows.empty() ? 0 : values.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!may_be_measured(*rows[i].signature)) continue;
    try {
      SampledSignature& s = state.sampled(*plan, *rows[i].signature);
      if (state.config.every_launch) {
        for (GroupProgress& group : s.groups) ++group.samples;
        if (!s.complete) state.set_complete(s, true);
        continue;
      }
      const auto row = values.subspan(i * width, width);
      for (const GroupCondition& condition : plan->conditions)
        if (condition.group == window.group && condition.holds(row))
          state.need(*plan, s, condition.needed);
      if (rows[i].chosen)
        state.sample(*plan, s, window.group, row);
      else
        state.compare(*plan, s, window.group, row);  // it was read anyway
    } catch (const std::exception&) {
      rows[i].signature->wanted_groups.store(0, std::memory_order_relaxed);
    }
  }
  if (state.config.every_launch) return;
  for_each_signature(rows, [&](size_t i) {
    if (const auto s = plan->signatures.find(rows[i].signature->id); s != plan->signatures.end())
      state.advance(*plan, s->second);
  });
}

void MeasurementScheduler::State::fail(Plan& plan, SampledSignature& s, uint32_t g) {
  GroupProgress& group = s.groups[g];
  group.pending = 0;
  group.skip = random.below(s.skip_below);
  if (++group.failures < config.max_failures) return;
  group.given_up = true;
  s.armed &= ~group_mask(g);
  want_not(plan, s, group_mask(g));
  advance(plan, s);
}

void MeasurementScheduler::window_failed(const MeasurementWindow& window) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  ++state.opened;
  ++state.discarded;
  State::Plan* const plan = state.plan_of(window.device, window.group);
  if (plan == nullptr) return;
  state.account(*plan, window);
  if (window.rows.empty()) {
    if (++plan->empty_failures[window.group] >= state.config.max_failures)
      state.drop_bits(window.device, group_mask(window.group) << plan->first_bit);
    return;
  }
  for_each_signature(window.rows, [&](size_t i) {
    const Signature& signature = *window.rows[i].signature;
    if (!may_be_measured(signature)) return;
    try {
      state.fail(*plan, state.sampled(*plan, signature), window.group);
    } catch (const std::exception&) {
      signature.wanted_groups.store(0, std::memory_order_relaxed);
    }
  });
}

void MeasurementScheduler::add_cost(uint64_t ns) noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->budget.overhead(ns);
}

const SchedulerConfig& MeasurementScheduler::config() const { return state_->config; }
uint64_t MeasurementScheduler::windows_opened() const {
  const std::lock_guard lock(state_->mutex);
  return state_->opened;
}
uint64_t MeasurementScheduler::windows_discarded() const {
  const std::lock_guard lock(state_->mutex);
  return state_->discarded;
}

}  // namespace flopinj
