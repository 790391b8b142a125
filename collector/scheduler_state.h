// What the scheduler knows. Private to it; all under its mutex but where it says otherwise.
#pragma once
#include <collector/measured_graph.h>
#include <collector/sampling.h>
#include <collector/scheduler.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <deque>
#include <mutex>
#include <unordered_map>

namespace flopinj {

inline constexpr uint32_t kMaxPlannedDevices = 64;
constexpr uint64_t group_mask(uint32_t group) { return uint64_t{1} << group; }

// Two columns of a group's values that make another group necessary: NeededIf, looked up.
struct GroupCondition {
  uint32_t group = 0;              // whose values they are
  size_t metric = 0;               // column
  std::optional<size_t> included;  // column
  uint32_t needed = 0;             // the other group

  bool holds(std::span<const double> row) const;
};

struct FamilyKey {
  const KernelFunction* function;
  LaunchShape shape;
  bool operator==(const FamilyKey&) const = default;
};
struct FamilyKeyHash {
  size_t operator()(const FamilyKey& key) const noexcept {
    return stable_signature_hash({}, key.shape, key.function->id.value);
  }
};

struct MeasurementScheduler::State {
  // Of one chip: its devices share the bits, and what is known of a signature. The same kernel is the
  // same machine code on all of them.
  struct Plan {
    std::vector<DeviceId> devices;
    uint32_t first_bit = 0, groups = 0;
    uint64_t always = 0, instrumented = 0;  // groups, by index
    uint64_t tells_work = 0;                // groups whose values depend on the kernel's work alone
    std::vector<GroupCondition> conditions;
    std::unordered_map<SignatureId, SampledSignature> signatures;
    std::unordered_map<FamilyKey, SignatureFamily, FamilyKeyHash> families;
  };
  State(SchedulerConfig c, SignatureTable& t)
      : config(c), table(t), budget(c.budget, c.startup_ns), random(c.seed) {}

  const SchedulerConfig config;
  SignatureTable& table;
  mutable std::mutex mutex;
  MeasuringBudget budget;
  Random random;
  struct Device {
    Plan* plan = nullptr;
    std::vector<GroupId> ids;              // by group
    std::vector<uint32_t> empty_failures;  // by group: windows in a row that failed with no rows
  };
  std::unordered_map<std::string, Plan> plans;  // by chip
  std::unordered_map<DeviceId, Device> devices;
  struct Entry {
    Plan* plan;
    SampledSignature* signature;
  };
  // Waiting for the budget: without complete counts, and due for a round. In the order they came.
  std::deque<Entry> incomplete, due;
  std::vector<Entry> armed;
  // Graphs: that wait for the budget, to read a group; and between two rounds.
  struct GraphEntry {
    Plan* plan;
    MeasuredGraph* graph;
    uint32_t group;
    bool lacks_group;
  };
  std::deque<GraphEntry> waiting_graphs;
  std::vector<GraphEntry> resting_graphs;
  uint32_t graph_failures = 0;  // windows in a row
  bool graphs_refused = false;  // for good
  uint32_t used_bits = 0, used_ids = 0;
  uint64_t clock_ns = 0;  // as was told last
  uint64_t opened = 0, discarded = 0;
  Coverage coverage;
  uint64_t covered_since_ns = 0, next_sweep_ns = 0;
  std::string stop_reason;

  std::atomic<bool> stopped{false};
  // Bits of groups without conditions, of all plans that are not disabled.
  std::atomic<uint64_t> wanted{0};
  // By device (index: device id) bits of all groups: for a look without the lock.
  std::array<std::atomic<uint64_t>, kMaxPlannedDevices + 1> device_bits{};

  Plan* plan_of(DeviceId, uint32_t group);
  uint64_t enabled(const Plan&) const;  // on any device. Groups, by index
  uint64_t enabled(const Plan&, DeviceId) const;
  SampledSignature& sampled(Plan&, const Signature&);
  void want(const Plan&, const SampledSignature&, uint64_t groups) const;
  void want_not(const Plan&, const SampledSignature&, uint64_t groups) const;
  void drop_bits(DeviceId, uint64_t bits);
  void stop(std::string reason);

  // scheduler.cpp
  bool too_long_for(const Plan&, const Signature&, const MeasurementWindow& open,
                    uint64_t now_ns) const;
  Plan* plan_for(const std::string& chip, const std::vector<MetricGroupPlan>&);
  LaunchDecision decide_first(Plan&, DeviceId, SampledSignature&, const MeasurementWindow* open,
                              uint64_t now_ns);
  LaunchDecision decide_armed(Plan&, DeviceId, SampledSignature&, const MeasurementWindow* open);
  void account(const Plan&, const MeasurementWindow&);
  void compare(const Plan&, SampledSignature&, uint32_t group,
               std::span<const double> values) const;
  void sample(Plan&, SampledSignature&, uint32_t group, std::span<const double> values);
  void fail(Plan&, SampledSignature&, uint32_t group);
  // scheduler_families.cpp
  void join_family(Plan&, SampledSignature&) const;
  void launched_again(SampledSignature&) const;
  std::optional<LaunchDecision> decide_for_family(Plan&, DeviceId, SampledSignature&,
                                                  const MeasurementWindow* open, uint64_t now_ns);
  void family_sample(Plan&, SampledSignature&, uint32_t group, std::span<const double> values);
  // scheduler_graphs.cpp
  std::optional<uint64_t> graph_cost(Plan&, const MeasuredGraph&, uint32_t group);
  bool affords_graph(Plan&, const MeasuredGraph&, uint32_t group, bool lacks_group,
                     uint64_t now_ns);
  std::optional<uint32_t> decide_graph(Plan&, DeviceId, MeasuredGraph&, uint64_t now_ns);
  void rest_graph(Plan&, MeasuredGraph&);
  void graph_sample(Plan&, SampledSignature&, uint32_t group, std::span<const double> values);
  void graph_window(Plan&, const GraphWindow&, const GraphSamples&);
  void arm_graphs();
  // scheduler_rounds.cpp
  void need(Plan&, SampledSignature&, uint32_t group);
  void advance(Plan&, SampledSignature&);
  void rest(Plan&, SampledSignature&);
  void refuse(Plan&, SampledSignature&);
  void disarm(Plan&, SampledSignature&);
  void set_complete(SampledSignature&, bool complete);
  void set_hopeless(SampledSignature&);
  uint64_t predicted_ns(const Plan&, const SampledSignature&, uint64_t groups) const;
  uint64_t groups_of_round(const Plan&, const SampledSignature&) const;
  bool arm(Plan&, SampledSignature&, uint64_t groups, uint64_t skip_below, bool incomplete);
  void next_stretch(Plan&, SampledSignature&);
  void count(const LaunchProgress&);
  void arm_due();
  void sweep();
  void check_coverage();
};

}  // namespace flopinj
