#include <collector/scheduler.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>
#include <string>
#include <unordered_map>

namespace flopinj {
namespace {

inline constexpr uint32_t kMaxPlannedDevices = kMaxGroups;  // each has at least one group

// What is known of one signature in one group.
struct Progress {
  uint32_t samples = 0, failures = 0;  // failures: windows in a row
};
struct ProgressKey {
  SignatureId signature;
  uint32_t bit;
  bool operator==(const ProgressKey&) const = default;
};
struct ProgressKeyHash {
  size_t operator()(const ProgressKey& k) const noexcept {
    return (uint64_t{k.bit} << 32 | k.signature.value) * 0x9e37'79b9'7f4a'7c15ULL >> 16;
  }
};

constexpr uint64_t mask(uint32_t bit) { return uint64_t{1} << bit; }

void stop_wanting(const Signature& signature, uint32_t bit) {
  signature.wanted_groups.fetch_and(~mask(bit), std::memory_order_relaxed);
}

// Two columns of a group's values that make another group necessary: NeededIf, looked up.
struct Condition {
  uint32_t group;                  // whose values they are
  size_t metric;                   // column
  std::optional<size_t> included;  // column
  uint32_t needed;                 // the other group

  bool holds(std::span<const double> row) const {
    if (std::max(metric, included.value_or(0)) >= row.size()) return false;
    return row[metric] > (included ? row[*included] : 0.0);
  }
};

std::optional<size_t> column_of(const MetricGroupPlan& group, const std::string& metric) {
  const auto it = std::find(group.metrics.begin(), group.metrics.end(), metric);
  if (it == group.metrics.end()) return std::nullopt;
  return static_cast<size_t>(it - group.metrics.begin());
}

std::vector<Condition> conditions_of(const std::vector<MetricGroupPlan>& plan) {
  std::vector<Condition> conditions;
  for (uint32_t needed = 0; needed < plan.size(); ++needed)
    for (const NeededIf& need : plan[needed].needed_if)
      for (uint32_t g = 0; g < plan.size(); ++g) {
        const auto metric = column_of(plan[g], need.metric);
        if (metric && plan[g].needed_if.empty())
          conditions.push_back({g, *metric, column_of(plan[g], need.included), needed});
      }
  return conditions;
}

}  // namespace

struct MeasurementScheduler::State {
  struct Plan {
    uint32_t first_bit = 0, groups = 0;
    std::vector<uint32_t> empty_failures;  // per group: windows in a row that failed with no rows
    std::vector<Condition> conditions;
  };
  State(SchedulerConfig c, SignatureTable& t) : config(c), table(t) {}

  const SchedulerConfig config;
  SignatureTable& table;
  mutable std::mutex mutex;
  std::unordered_map<DeviceId, Plan> plans;
  std::unordered_map<ProgressKey, Progress, ProgressKeyHash> progress;
  uint32_t used_bits = 0;
  uint64_t opened = 0, discarded = 0;
  // Bits of groups without conditions, of all plans that are not disabled.
  std::atomic<uint64_t> wanted{0};
  // By device (index: device id) bits of all groups, and the first: for a look without the lock.
  std::array<std::atomic<uint64_t>, kMaxPlannedDevices + 1> device_bits{};
  std::array<std::atomic<uint32_t>, kMaxPlannedDevices + 1> first_bit{};

  // The bit of a group of a device's plan; nothing for one that does not exist.
  std::optional<uint32_t> bit_of(DeviceId device, uint32_t group) const {
    const auto it = plans.find(device);
    if (it == plans.end() || group >= it->second.groups) return std::nullopt;
    return it->second.first_bit + group;
  }
  Progress progress_of(const Signature& signature, uint32_t bit) const {
    const auto it = progress.find({signature.id, bit});
    return it == progress.end() ? Progress{} : it->second;
  }
  // A sample has shown that `signature` needs the group.
  void need(const Signature& signature, DeviceId device, uint32_t bit) {
    if ((device_bits[device.value].load(std::memory_order_relaxed) & mask(bit)) == 0) return;
    const Progress known = progress_of(signature, bit);
    if (known.samples < config.samples_per_group && known.failures < config.max_failures)
      signature.wanted_groups.fetch_or(mask(bit), std::memory_order_relaxed);
  }
  void drop_bits(DeviceId device, uint64_t bits) {
    wanted.fetch_and(~bits, std::memory_order_relaxed);
    device_bits[device.value].fetch_and(~bits, std::memory_order_relaxed);
    table.want_nowhere(bits);
  }
};

MeasurementScheduler::MeasurementScheduler(SchedulerConfig config, SignatureTable& table)
    : state_(std::make_unique<State>(config, table)) {}
MeasurementScheduler::~MeasurementScheduler() = default;

static std::vector<GroupId> ids_from(uint32_t first_bit, uint32_t groups) {
  std::vector<GroupId> ids;
  for (uint32_t g = 0; g < groups; ++g) ids.push_back(GroupId{first_bit + g + 1});
  return ids;
}

std::vector<GroupId> MeasurementScheduler::add_plan(DeviceId device,
                                                    const std::vector<MetricGroupPlan>& plan) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (const auto it = state.plans.find(device); it != state.plans.end())
    return ids_from(it->second.first_bit, it->second.groups);
  const auto groups = static_cast<uint32_t>(std::min<size_t>(plan.size(), kMaxGroups + 1));
  if (groups == 0 || state.used_bits + groups > kMaxGroups || !device ||
      device.value > kMaxPlannedDevices)
    return {};
  const uint32_t first = state.used_bits;
  std::vector<GroupId> ids = ids_from(first, groups);
  State::Plan added{first, groups, std::vector<uint32_t>(groups, 0), conditions_of(plan)};
  uint64_t all = 0;
  for (uint32_t g = 0; g < groups; ++g) all |= mask(first + g);
  uint64_t always = all;  // a group whose conditions nothing reads is measured for every kernel
  for (const Condition& condition : added.conditions) always &= ~mask(first + condition.needed);
  state.plans[device] = std::move(added);
  state.used_bits += groups;
  state.first_bit[device.value].store(first, std::memory_order_relaxed);
  state.device_bits[device.value].store(all, std::memory_order_release);
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

std::optional<uint32_t> MeasurementScheduler::group_to_open(
    DeviceId device, const Signature& signature) const noexcept {
  const State& state = *state_;
  if (device.value > kMaxPlannedDevices || !may_be_measured(signature)) return std::nullopt;
  const uint64_t wanted = state.device_bits[device.value].load(std::memory_order_acquire) &
                          signature.wanted_groups.load(std::memory_order_relaxed);
  if (wanted == 0) return std::nullopt;
  return static_cast<uint32_t>(std::countr_zero(wanted)) -
         state.first_bit[device.value].load(std::memory_order_relaxed);
}

bool MeasurementScheduler::close_before(const Signature* next) const noexcept {
  return next == nullptr || !may_be_measured(*next);
}

bool MeasurementScheduler::close_after(DeviceId device, uint32_t group,
                                       std::span<const WindowRow> rows, uint64_t opened_ns,
                                       uint64_t now_ns) const noexcept {
  const State& state = *state_;
  const SchedulerConfig& config = state.config;
  if (rows.size() >= config.max_ranges) return true;
  if (now_ns > opened_ns && now_ns - opened_ns >= config.max_open_ns) return true;
  if (rows.empty()) return false;

  const std::lock_guard lock(state.mutex);
  const auto bit = state.bit_of(device, group);
  if (!bit || !((state.device_bits[device.value] >> *bit) & 1)) return true;
  if (state.progress_of(*rows.back().signature, *bit).failures != 0) return true;

  // A row wanted the group if its signature does and the rows before it were not enough.
  const auto wanted = [&](size_t i) {
    const Signature* signature = rows[i].signature;
    if (!((signature->wanted_groups.load(std::memory_order_relaxed) >> *bit) & 1)) return false;
    uint32_t samples = state.progress_of(*signature, *bit).samples;
    for (size_t j = 0; j < i && samples < config.samples_per_group; ++j)
      samples += rows[j].signature == signature;
    return samples < config.samples_per_group;
  };
  if (rows.size() < config.idle_launches) return false;
  for (size_t i = rows.size(); i > rows.size() - config.idle_launches; --i)
    if (wanted(i - 1)) return false;
  return true;
}

void MeasurementScheduler::window_succeeded(DeviceId device, uint32_t group,
                                            std::span<const WindowRow> rows,
                                            std::span<const double> values) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  ++state.opened;
  const auto bit = state.bit_of(device, group);
  if (!bit) return;
  State::Plan& plan = state.plans.find(device)->second;
  plan.empty_failures[group] = 0;
  const size_t width = rows.empty() ? 0 : values.size() / rows.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Signature& signature = *rows[i].signature;
    if (!may_be_measured(signature)) continue;
    for (const Condition& condition : plan.conditions)
      if (condition.group == group && condition.holds(values.subspan(i * width, width)))
        state.need(signature, device, plan.first_bit + condition.needed);
    try {
      Progress& progress = state.progress[{signature.id, *bit}];
      progress.failures = 0;
      if (++progress.samples >= state.config.samples_per_group) stop_wanting(signature, *bit);
    } catch (const std::exception&) {
      stop_wanting(signature, *bit);
    }
  }
}

void MeasurementScheduler::window_failed(DeviceId device, uint32_t group,
                                         std::span<const WindowRow> rows) noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  ++state.opened;
  ++state.discarded;
  const auto bit = state.bit_of(device, group);
  if (!bit) return;
  if (rows.empty()) {
    if (++state.plans[device].empty_failures[group] >= state.config.max_failures)
      state.drop_bits(device, mask(*bit));
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const Signature& signature = *rows[i].signature;
    const auto same = [&](const WindowRow& r) { return r.signature == &signature; };
    if (std::any_of(rows.begin(), rows.begin() + static_cast<ptrdiff_t>(i), same)) continue;
    try {
      Progress& progress = state.progress[{signature.id, *bit}];
      if (++progress.failures >= state.config.max_failures) stop_wanting(signature, *bit);
    } catch (const std::exception&) {
      stop_wanting(signature, *bit);
    }
  }
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
