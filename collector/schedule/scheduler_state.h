// What the scheduler knows. Private to it.
#pragma once
#include <collector/base/mutex.h>
#include <collector/schedule/sampled_signature.h>
#include <collector/schedule/scheduler.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <unordered_map>

namespace flopinj {

inline constexpr uint32_t kMaxPlannedDevices = 64;

// Two columns of a group's values that make another group necessary: NeededIf, looked up.
struct GroupCondition {
  uint32_t group = 0;              // whose values they are
  size_t metric = 0;               // column
  std::optional<size_t> included;  // column
  // The other group. None: it cannot be measured here.
  std::optional<uint32_t> needed;

  bool holds(std::span<const double> row) const;
};

struct MeasurementScheduler::State {
  // Of one chip's devices with the same metrics: they share the bits, and what is known of a
  // signature. The same kernel is the same machine code on all of them.
  struct Plan {
    std::vector<DeviceId> devices;
    uint32_t first_bit = 0, groups = 0;
    GroupSet always, instrumented;
    GroupSet tells_work;               // their values depend only on the kernel's work
    std::vector<size_t> work_columns;  // by group: so many of its first metrics count work
    std::vector<GroupCondition> conditions;
    GroupSet answering;  // groups whose values conditions look at
    bool lacks = false;  // nothing says which kernels need a group that cannot be measured here
    std::vector<std::optional<uint32_t>> substitute;  // by group: MetricGroupPlan::instead_of
    std::unordered_map<SignatureId, SampledSignature> signatures;
    std::unordered_map<FunctionShape, SignatureFamily, FunctionShape::Hash> families;
  };
  State(SchedulerConfig c, SignatureTable& t)
      : config(c), table(t), budget(c.budget, c.startup_ns), random(c.seed) {}

  const SchedulerConfig config;
  SignatureTable& table;
  mutable Mutex mutex;
  MeasuringBudget budget FLOPINJ_GUARDED_BY(mutex);
  Random random FLOPINJ_GUARDED_BY(mutex);
  struct Device {
    Plan* plan = nullptr;
    std::vector<GroupId> ids;              // of all groups that are wanted
    std::vector<uint32_t> empty_failures;  // by group: windows in a row that failed with no rows
  };
  std::unordered_map<std::string, Plan> plans FLOPINJ_GUARDED_BY(mutex);  // by chip and metrics
  std::unordered_map<DeviceId, Device> devices FLOPINJ_GUARDED_BY(mutex);
  struct Entry {
    Plan* plan;
    SampledSignature* signature;
  };
  // Waiting for the budget: without complete counts, and due for a round. In the order they came.
  std::deque<Entry> incomplete FLOPINJ_GUARDED_BY(mutex);
  std::deque<Entry> due FLOPINJ_GUARDED_BY(mutex);
  std::vector<Entry> armed FLOPINJ_GUARDED_BY(mutex);
  uint32_t used_bits FLOPINJ_GUARDED_BY(mutex) = 0;
  uint32_t used_ids FLOPINJ_GUARDED_BY(mutex) = 0;
  uint64_t clock_ns FLOPINJ_GUARDED_BY(mutex) = 0;  // as of the last call that says it
  uint64_t opened FLOPINJ_GUARDED_BY(mutex) = 0;
  uint64_t discarded FLOPINJ_GUARDED_BY(mutex) = 0;
  Coverage coverage FLOPINJ_GUARDED_BY(mutex);
  // Of devices that have no plan yet, or will have none: as many as there are signatures.
  std::unordered_map<DeviceId, std::unordered_map<SignatureId, LaunchProgress>> before_plan
      FLOPINJ_GUARDED_BY(mutex);
  uint64_t covered_since_ns FLOPINJ_GUARDED_BY(mutex) = 0;
  uint64_t next_sweep_ns FLOPINJ_GUARDED_BY(mutex) = 0;
  std::string stop_reason FLOPINJ_GUARDED_BY(mutex);

  std::atomic<bool> stopped{false};
  // Bits of groups without conditions, of all plans that are not disabled.
  std::atomic<uint64_t> wanted{0};
  // By device (index: device id) bits of all groups: for a look without the lock.
  std::array<std::atomic<uint64_t>, kMaxPlannedDevices + 1> device_bits{};
  // The same of groups that are paused.
  std::array<std::atomic<uint64_t>, kMaxPlannedDevices + 1> paused_bits{};

  Plan* plan_of(DeviceId, uint32_t group) FLOPINJ_REQUIRES(mutex);
  GroupSet enabled(const Plan&) const FLOPINJ_REQUIRES(mutex);  // on any device. Groups, by index
  GroupSet enabled(const Plan&, DeviceId) const FLOPINJ_REQUIRES(mutex);
  GroupSet paused(const Plan&, DeviceId) const FLOPINJ_REQUIRES(mutex);
  void set_paused(DeviceId, uint32_t group, bool paused);
  // `group` as the edge knows it: in mode full all groups are one.
  GroupSet read_as(const Plan&, uint32_t group) const FLOPINJ_REQUIRES(mutex);
  void lose(Plan&, DeviceId, uint32_t group) FLOPINJ_REQUIRES(mutex);
  SampledSignature& sampled(Plan&, const Signature&) FLOPINJ_REQUIRES(mutex);
  void want(const Plan&, const SampledSignature&, GroupSet groups) const FLOPINJ_REQUIRES(mutex);
  void want_not(const Plan&, const SampledSignature&, GroupSet groups) const
      FLOPINJ_REQUIRES(mutex);
  void drop_bits(DeviceId, uint64_t bits) FLOPINJ_REQUIRES(mutex);
  void stop(std::string reason) FLOPINJ_REQUIRES(mutex);

  // scheduler.cpp
  bool too_long_for(const Plan&, const Signature&, const MeasurementWindow& open,
                    uint64_t now_ns) const FLOPINJ_REQUIRES(mutex);
  Plan* plan_for(const std::string& chip, const std::vector<MetricGroupPlan>&)
      FLOPINJ_REQUIRES(mutex);
  LaunchDecision decide_first(Plan&, DeviceId, SampledSignature&, const MeasurementWindow* open,
                              uint64_t now_ns) FLOPINJ_REQUIRES(mutex);
  LaunchDecision decide_armed(Plan&, DeviceId, SampledSignature&, const MeasurementWindow* open)
      FLOPINJ_REQUIRES(mutex);
  // scheduler_outcomes.cpp
  void account(const Plan&, const MeasurementWindow&) FLOPINJ_REQUIRES(mutex);
  void compare(const Plan&, SampledSignature&, uint32_t group, std::span<const double> values) const
      FLOPINJ_REQUIRES(mutex);
  void sample(Plan&, SampledSignature&, uint32_t group, std::span<const double> values)
      FLOPINJ_REQUIRES(mutex);
  void fail(Plan&, SampledSignature&, uint32_t group) FLOPINJ_REQUIRES(mutex);
  void give_up(Plan&, SampledSignature&, uint32_t group) FLOPINJ_REQUIRES(mutex);
  void without_row(DeviceId, const Signature&, uint32_t group,
                   void (State::*happened)(Plan&, SampledSignature&, uint32_t)) noexcept;
  // Counts a window that gave nothing. Its plan, null where the device has none.
  Plan* discard(const MeasurementWindow&) FLOPINJ_REQUIRES(mutex);
  static uint64_t work_of(const Plan&, uint32_t group, std::span<const double> values);
  // scheduler_families.cpp
  void join_family(Plan&, SampledSignature&) const FLOPINJ_REQUIRES(mutex);
  void launched_again(SampledSignature&) const FLOPINJ_REQUIRES(mutex);
  std::optional<LaunchDecision> decide_for_family(Plan&, DeviceId, SampledSignature&,
                                                  const MeasurementWindow* open, uint64_t now_ns)
      FLOPINJ_REQUIRES(mutex);
  void family_sample(Plan&, SampledSignature&, uint32_t group, std::span<const double> values)
      FLOPINJ_REQUIRES(mutex);
  // scheduler_rounds.cpp
  void need(Plan&, SampledSignature&, std::optional<uint32_t> group) FLOPINJ_REQUIRES(mutex);
  void need_group(Plan&, SampledSignature&, uint32_t group) FLOPINJ_REQUIRES(mutex);
  bool need_substitute(Plan&, SampledSignature&, uint32_t of) FLOPINJ_REQUIRES(mutex);
  bool is_silent(const Plan&, const SampledSignature&, uint32_t group) const
      FLOPINJ_REQUIRES(mutex);
  void assume(Plan&, SampledSignature&) FLOPINJ_REQUIRES(mutex);
  void need_no_more(SampledSignature&, uint32_t group) FLOPINJ_REQUIRES(mutex);
  void advance(Plan&, SampledSignature&) FLOPINJ_REQUIRES(mutex);
  void rest(Plan&, SampledSignature&) FLOPINJ_REQUIRES(mutex);
  void refuse(Plan&, SampledSignature&) FLOPINJ_REQUIRES(mutex);
  void disarm(Plan&, SampledSignature&) FLOPINJ_REQUIRES(mutex);
  void set_complete(SampledSignature&, bool complete) FLOPINJ_REQUIRES(mutex);
  void set_hopeless(SampledSignature&) FLOPINJ_REQUIRES(mutex);
  void count_launches(SampledSignature&, uint64_t launches) FLOPINJ_REQUIRES(mutex);
  uint64_t predicted_ns(const Plan&, const SampledSignature&, GroupSet groups) const
      FLOPINJ_REQUIRES(mutex);
  GroupSet groups_of_round(const Plan&, const SampledSignature&) const FLOPINJ_REQUIRES(mutex);
  bool arm(Plan&, SampledSignature&, GroupSet groups, uint64_t skip_below, bool incomplete)
      FLOPINJ_REQUIRES(mutex);
  void next_stretch(Plan&, SampledSignature&) FLOPINJ_REQUIRES(mutex);
  void count(const LaunchProgress&) FLOPINJ_REQUIRES(mutex);
  void count_before_plan(DeviceId, Plan&) FLOPINJ_REQUIRES(mutex);
  void count_for(Plan&, const LaunchProgress&) FLOPINJ_REQUIRES(mutex);
  void arm_due() FLOPINJ_REQUIRES(mutex);
  void sweep() FLOPINJ_REQUIRES(mutex);
  void check_coverage() FLOPINJ_REQUIRES(mutex);
};

}  // namespace flopinj
