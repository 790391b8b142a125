// Plans, and the decision at a launch.
#include <collector/schedule/scheduler_state.h>

#include <algorithm>
#include <string>
#include <utility>

namespace flopinj {
namespace {

std::optional<size_t> column_of(const MetricGroupPlan& group, const std::string& metric) {
  const auto it = std::find(group.metrics.begin(), group.metrics.end(), metric);
  if (it == group.metrics.end()) return std::nullopt;
  return static_cast<size_t>(it - group.metrics.begin());
}

// Instructions and operations of a kernel: the same whenever it does the same work.
bool counts_work(const std::string& metric) {
  return metric.find("inst_executed") != std::string::npos ||
         metric.find("__ops_path_") != std::string::npos;
}

// Of `group`, which is the one with index `needed` in `plan`, or is not in it. False: none is read.
bool add_conditions(std::vector<GroupCondition>& conditions, const MetricGroupPlan& group,
                    std::optional<uint32_t> needed, const std::vector<MetricGroupPlan>& plan) {
  const size_t before = conditions.size();
  for (const NeededIf& need : group.needed_if)
    for (uint32_t g = 0; g < plan.size(); ++g) {
      const auto metric = column_of(plan[g], need.metric);
      if (metric && plan[g].needed_if.empty())
        conditions.push_back({g, *metric, column_of(plan[g], need.included), needed});
    }
  return conditions.size() != before;
}

std::vector<std::optional<uint32_t>> substitutes_of(const std::vector<MetricGroupPlan>& plan) {
  std::vector<std::optional<uint32_t>> substitutes(plan.size());
  for (uint32_t g = 0; g < plan.size(); ++g)
    for (uint32_t of = 0; of < plan.size(); ++of)
      if (!plan[g].instead_of.empty() && plan[g].instead_of == plan[of].name) substitutes[of] = g;
  return substitutes;
}

// Devices of one chip share a plan where they can be read by the same metrics.
std::string kind_of(const std::string& chip, const std::vector<MetricGroupPlan>& groups) {
  std::string kind = chip;
  for (const MetricGroupPlan& group : groups) {
    kind.append("\n").append(group.name);
    for (const std::string& metric : group.metrics) kind.append(" ").append(metric);
  }
  return kind;
}

// A window gives way when the kernel that it was opened for comes again, when one kernel follows
// itself, or when no kernel wants it.
bool gives_way(const MeasurementWindow& window, const Signature& signature,
               const SchedulerConfig& config) {
  return window.unchosen >= config.switch_launches ||
         (!window.rows.empty() && (window.rows.front().signature == &signature ||
                                   window.rows.back().signature == &signature));
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
  const MutexLock lock(state_->mutex);
  if (state_->config.seed == 0) state_->random = Random(seed);
  state_->budget.begin(now_ns);
}

// Null: there are no bits for its groups.
MeasurementScheduler::State::Plan* MeasurementScheduler::State::plan_for(
    const std::string& chip, const std::vector<MetricGroupPlan>& all_groups) {
  std::vector<MetricGroupPlan> metric_groups;
  for (const MetricGroupPlan& group : all_groups)
    if (group.unavailable.empty()) metric_groups.push_back(group);
  const std::string kind = kind_of(chip, metric_groups);
  if (const auto it = plans.find(kind); it != plans.end()) return &it->second;
  const auto groups = static_cast<uint32_t>(std::min<size_t>(metric_groups.size(), kMaxGroups + 1));
  if (groups == 0 || used_bits + groups > kMaxGroups) return nullptr;
  Plan& added = plans[kind];
  added.first_bit = used_bits;
  added.groups = groups;
  added.substitute = substitutes_of(metric_groups);
  added.always =
      GroupSet::first(groups);  // a group whose conditions nothing reads is for every kernel
  uint32_t next = 0;
  for (const MetricGroupPlan& group : all_groups) {
    const auto g = group.unavailable.empty() ? std::optional(next++) : std::nullopt;
    const bool told = add_conditions(added.conditions, group, g, metric_groups);
    if (told && g) added.always -= GroupSet(*g);
    added.lacks = added.lacks || (!told && !g && !group.needed_if.empty());
  }
  for (const GroupCondition& condition : added.conditions)
    added.answering |= GroupSet(condition.group);
  for (const auto& substitute : added.substitute)
    if (substitute) added.always -= GroupSet(*substitute);
  for (uint32_t g = 0; g < groups; ++g) {
    if (metric_groups[g].instrumented) added.instrumented |= GroupSet(g);
    if (metric_groups[g].required || !metric_groups[g].needed_if.empty() ||
        !metric_groups[g].instead_of.empty())
      added.tells_work |= GroupSet(g);
    const auto& metrics = metric_groups[g].metrics;
    const auto rest = added.tells_work.contains(g) ? metrics.end()
                                                   : std::ranges::find_if_not(metrics, counts_work);
    added.work_columns.push_back(static_cast<size_t>(rest - metrics.begin()));
  }
  used_bits += groups;
  return &added;
}

std::vector<GroupId> MeasurementScheduler::add_plan(DeviceId device, const std::string& chip,
                                                    const std::vector<MetricGroupPlan>& groups) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  if (const auto it = state.devices.find(device); it != state.devices.end()) return it->second.ids;
  if (!device || device.value > kMaxPlannedDevices || state.stopped) return {};
  State::Plan* const plan = state.plan_for(chip, groups);
  if (plan == nullptr) return {};
  State::Device& added = state.devices[device];
  added.plan = plan;
  for (const MetricGroupPlan& group : groups)
    added.ids.push_back(group.unavailable.empty() ? GroupId{++state.used_ids} : GroupId{});
  added.empty_failures.resize(plan->groups);
  const bool alone = state.enabled(*plan).empty();
  plan->devices.push_back(device);
  const uint64_t always = plan->always.bits(plan->first_bit);
  state.device_bits[device.value].store(GroupSet::first(plan->groups).bits(plan->first_bit),
                                        std::memory_order_release);
  state.wanted.fetch_or(always, std::memory_order_relaxed);
  // Signatures that another device's launches have filled in want nothing more.
  if (alone) state.table.want_everywhere(always);
  state.count_before_plan(device, *plan);
  return added.ids;
}

void MeasurementScheduler::disable(DeviceId device) noexcept {
  const MutexLock lock(state_->mutex);
  if (state_->devices.contains(device))
    state_->drop_bits(device, state_->device_bits[device.value]);
}

void MeasurementScheduler::disable(DeviceId device, uint32_t group) noexcept {
  const MutexLock lock(state_->mutex);
  if (State::Plan* const plan = state_->plan_of(device, group)) state_->lose(*plan, device, group);
}

GroupSet MeasurementScheduler::State::read_as(const Plan& plan, uint32_t group) const {
  return config.every_launch ? GroupSet::first(plan.groups) : GroupSet(group);
}

// Nothing on the device wants the group any more.
void MeasurementScheduler::State::lose(Plan& plan, DeviceId device, uint32_t group) {
  drop_bits(device, read_as(plan, group).bits(plan.first_bit));
  const bool nowhere = !enabled(plan).contains(group);
  const auto substitute = plan.substitute[group];
  if (nowhere && substitute) {  // from now on it is the substitute that every kernel needs
    plan.always -= GroupSet(group);
    plan.always |= GroupSet(*substitute);
    const uint64_t bits = (GroupSet(*substitute) & enabled(plan)).bits(plan.first_bit);
    wanted.fetch_or(bits, std::memory_order_relaxed);
    table.want_everywhere(bits);
  }
  const bool answers = plan.answering.contains(group);
  if (nowhere && answers) plan.always -= GroupSet(group);
  for (auto& [id, s] : plan.signatures) {
    if (nowhere && substitute && need_substitute(plan, s, group)) need_no_more(s, group);
    if (nowhere && answers && s.groups[group].samples == 0) need_no_more(s, group);
    if (answers) assume(plan, s);
  }
}

void MeasurementScheduler::State::set_paused(DeviceId device, uint32_t group, bool paused) {
  const MutexLock lock(mutex);
  Plan* const plan = plan_of(device, group);
  if (plan == nullptr) return;
  const uint64_t bits = read_as(*plan, group).bits(plan->first_bit);
  if (paused)
    paused_bits[device.value].fetch_or(bits, std::memory_order_relaxed);
  else
    paused_bits[device.value].fetch_and(~bits, std::memory_order_relaxed);
  for (auto& [id, s] : plan->signatures) {
    // A bound now is better than a count that may never come.
    if (paused) need_substitute(*plan, s, group);
    if (plan->answering.contains(group)) assume(*plan, s);
  }
}
void MeasurementScheduler::pause(DeviceId device, uint32_t group) noexcept {
  state_->set_paused(device, group, true);
}
void MeasurementScheduler::resume(DeviceId device, uint32_t group) noexcept {
  state_->set_paused(device, group, false);
}

uint64_t MeasurementScheduler::initial_wanted() const noexcept {
  return state_->wanted.load(std::memory_order_relaxed);
}

MeasurementScheduler::State::Plan* MeasurementScheduler::State::plan_of(DeviceId device,
                                                                        uint32_t group) {
  const auto it = devices.find(device);
  return it == devices.end() || group >= it->second.plan->groups ? nullptr : it->second.plan;
}

GroupSet MeasurementScheduler::State::enabled(const Plan& plan) const {
  GroupSet groups;
  for (const DeviceId device : plan.devices) groups |= enabled(plan, device);
  return groups;
}
GroupSet MeasurementScheduler::State::enabled(const Plan& plan, DeviceId device) const {
  return GroupSet(device_bits[device.value].load(std::memory_order_relaxed), plan.first_bit);
}

GroupSet MeasurementScheduler::State::paused(const Plan& plan, DeviceId device) const {
  return GroupSet(paused_bits[device.value].load(std::memory_order_relaxed), plan.first_bit);
}

SampledSignature& MeasurementScheduler::State::sampled(Plan& plan, const Signature& signature) {
  const auto known = plan.signatures.find(signature.id);
  if (known != plan.signatures.end()) return known->second;
  SampledSignature s;
  s.signature = &signature;
  s.needed = plan.always;
  s.hopeless = plan.lacks;
  s.groups.resize(plan.groups);  // may throw: then there is none, not one without groups
  join_family(plan, s);
  SampledSignature& added = plan.signatures.emplace(signature.id, std::move(s)).first->second;
  assume(plan, added);
  return added;
}

void MeasurementScheduler::State::want(const Plan& plan, const SampledSignature& s,
                                       GroupSet groups) const {
  s.signature->wanted_groups.fetch_or((groups & enabled(plan)).bits(plan.first_bit),
                                      std::memory_order_relaxed);
}
void MeasurementScheduler::State::want_not(const Plan& plan, const SampledSignature& s,
                                           GroupSet groups) const {
  s.signature->wanted_groups.fetch_and(
      ~(groups & GroupSet::first(plan.groups)).bits(plan.first_bit), std::memory_order_relaxed);
}

void MeasurementScheduler::State::drop_bits(DeviceId device, uint64_t bits) {
  device_bits[device.value].fetch_and(~bits, std::memory_order_relaxed);
  for (const auto& [other, known] : devices)  // of the same chip, perhaps
    bits &= ~device_bits[other.value].load(std::memory_order_relaxed);
  wanted.fetch_and(~bits, std::memory_order_relaxed);
  table.want_nowhere(bits);
}

void MeasurementScheduler::State::stop(std::string reason) {
  stop_reason = std::move(reason);
  for (const auto& [device, known] : devices) drop_bits(device, device_bits[device.value]);
  stopped.store(true, std::memory_order_relaxed);
}

bool MeasurementScheduler::may_want(DeviceId device, const Signature& signature) const noexcept {
  return device.value <= kMaxPlannedDevices && may_be_measured(signature) &&
         (state_->device_bits[device.value].load(std::memory_order_acquire) &
          ~state_->paused_bits[device.value].load(std::memory_order_relaxed) &
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
  if (open == nullptr && !may_want(device, signature)) return {};
  const MutexLock lock(state.mutex);
  State::Plan* const plan = state.plan_of(device, 0);
  if (plan == nullptr) return {};
  if (open != nullptr && state.too_long_for(*plan, signature, *open, now_ns))
    return {true, {}, false, true};
  if (!may_want(device, signature)) return {};
  if (state.config.every_launch) {
    if (open != nullptr) return {false, {}, true, true};
    return {false, 0, true, true};
  }
  state.clock_ns = now_ns;
  try {
    SampledSignature& s = state.sampled(*plan, signature);
    if (s.phase == SampledSignature::Phase::kFirst)
      return state.decide_first(*plan, device, s, open, now_ns);
    if (s.phase == SampledSignature::Phase::kArmed)
      return state.decide_armed(*plan, device, s, open);
    state.want_not(*plan, s, GroupSet::first(plan->groups));
  } catch (const std::exception&) {
    signature.wanted_groups.store(0, std::memory_order_relaxed);
  }
  return {};
}

bool MeasurementScheduler::affords(DeviceId device, const Signature& signature, uint64_t ns,
                                   uint64_t now_ns) const noexcept {
  const MutexLock lock(state_->mutex);
  const State::Plan* const plan = state_->plan_of(device, 0);
  if (plan == nullptr) return false;
  const auto known = plan->signatures.find(signature.id);
  const bool incomplete = known == plan->signatures.end() || !known->second.missing().empty();
  return state_->budget.affords(incomplete, ns, now_ns);
}

bool MeasurementScheduler::affords_window(DeviceId device, uint32_t group,
                                          uint64_t now_ns) const noexcept {
  const MutexLock lock(state_->mutex);
  const State::Plan* const plan = state_->plan_of(device, group);
  if (plan == nullptr) return false;
  const uint64_t cost = state_->budget.predicted_ns(plan->instrumented.contains(group), 0, 0);
  return state_->budget.affords(true, cost, now_ns);
}

// Everything that is launched in an instrumented window is slowed down, chosen or not: a kernel
// whose time is not known, or is more than there is room for, ends it.
bool MeasurementScheduler::State::too_long_for(const Plan& plan, const Signature& signature,
                                               const MeasurementWindow& open,
                                               uint64_t now_ns) const {
  if (config.every_launch || budget.unlimited() || !plan.instrumented.contains(open.group))
    return false;
  const auto known = plan.signatures.find(signature.id);
  if (known == plan.signatures.end()) return true;
  const SampledSignature& s = known->second;
  if (s.usual_ns(plan.instrumented) == 0 && s.groups[open.group].call_ns == 0) return true;
  return !budget.affords(true, predicted_ns(plan, s, GroupSet(open.group)), now_ns);
}

LaunchDecision MeasurementScheduler::State::decide_first(Plan& plan, DeviceId device,
                                                         SampledSignature& s,
                                                         const MeasurementWindow* open,
                                                         uint64_t now_ns) {
  if (const auto decision = decide_for_family(plan, device, s, open, now_ns)) return *decision;
  const GroupSet waiting = paused(plan, device);
  for (const uint32_t g : s.needed& waiting) need_substitute(plan, s, g);
  const GroupSet needed = s.needed & enabled(plan, device);
  const auto group = s.least_sampled(needed - waiting, config.first_samples);
  if (!group) {
    if ((needed & waiting).empty()) advance(plan, s);
    return {};
  }
  if (open != nullptr && open->group == *group) return {false, {}, true, true};
  if (open != nullptr) {
    const bool lacks = s.groups[*group].samples == 0;
    const bool close = gives_way(*open, *s.signature, config) || (lacks && s.waited);
    s.waited |= lacks && !close;
    return {close, {}, false, true};
  }
  if (!budget.affords(true, predicted_ns(plan, s, GroupSet(*group)), now_ns)) {
    refuse(plan, s);
    return {};
  }
  return {false, group, true, true};
}

// Every launch counts for every group of the round. Two groups that fall on one launch: the later
// one draws again.
LaunchDecision MeasurementScheduler::State::decide_armed(Plan& plan, DeviceId device,
                                                         SampledSignature& s,
                                                         const MeasurementWindow* open) {
  std::optional<uint32_t> chosen;
  if (s.stretch_left > 0) --s.stretch_left;
  for (const uint32_t g : (s.armed & enabled(plan, device)) - paused(plan, device)) {
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
  const MutexLock lock(state.mutex);
  State::Plan* const plan = state.plan_of(window.device, window.group);
  if (plan == nullptr || !state.enabled(*plan, window.device).contains(window.group)) return true;
  const bool old = now_ns > window.opened_ns && now_ns - window.opened_ns >= config.max_open_ns;
  if (old || window.rows.size() >= config.max_ranges) return true;
  if (config.every_launch) return false;
  const auto known = plan->signatures.find(row.signature->id);
  if (known != plan->signatures.end()) {
    SampledSignature& s = known->second;
    GroupProgress& group = s.groups[window.group];
    if (row.chosen) ++group.pending;
    group.call_ns = row.call_ns;
    if (++s.windowed > 1) state.launched_again(s);
    if (plan->instrumented.contains(window.group)) ++s.instrumented;
    if (group.failures != 0) return true;
  }
  return !window.shared || window.unchosen >= config.idle_launches ||
         !state.budget.affords(true, state.budget.waiting_ns(window.cost), now_ns);
}

const SchedulerConfig& MeasurementScheduler::config() const { return state_->config; }
uint64_t MeasurementScheduler::windows_opened() const {
  const MutexLock lock(state_->mutex);
  return state_->opened;
}
uint64_t MeasurementScheduler::windows_discarded() const {
  const MutexLock lock(state_->mutex);
  return state_->discarded;
}

}  // namespace flopinj
