// Counter samples, summed per signature, device and metric.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/packed_lists.h"
#include "support/wide.h"

namespace flopinj::reduce {

// Samples of one signature in one metric group on one device, by the windows they were taken in.
// Of one window: neighbours in time, and neighbours are alike, so that together they say
// about as much as one of them.
struct Cluster {
  uint64_t first = 0, last = 0;  // places among the signature's launches on the device, from 0
  uint64_t samples = 0;

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.first, of.last, of.samples);
  }
};

// In the order of the launches. Bounded: past kMax, the two neighbours that are nearest in time
// become one cluster. Kernels whose work is fixed take a few bytes a window.
class ClusterList {
 public:
  static constexpr size_t kMax = 128;
  static constexpr uint64_t kNoOrdinal = UINT64_MAX;

  // `values`: one sample's counters, one for each metric of the group, always as many.
  void add(uint32_t window, uint64_t ordinal, std::span<const double> values);

  size_t size() const { return clusters_.size(); }
  size_t width() const { return first_.size(); }
  uint64_t samples() const { return samples_; }
  const Cluster& operator[](size_t i) const { return clusters_[i]; }
  bool uniform() const { return sums_.empty(); }  // all samples are equal
  // Sum of one metric over a cluster's samples, each rounded to an integer.
  u128 sum(size_t cluster, size_t metric) const;

  // For how many of `launches` each cluster stands: those nearer to it than to its neighbours. Adds
  // up to stands_for(launches). The first window stands for at most twice its samples, for a
  // program warms up. Without ordinals, clusters stand for launches as they have samples. Where
  // every launch was sampled, each cluster stands for its samples, wherever they are.
  std::vector<uint64_t> cells(uint64_t launches) const;
  // `launches`, or more where the samples prove that there were more.
  uint64_t stands_for(uint64_t launches) const;

  // All but the first sample's counters, which are the same on very many ranks.
  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.clusters_, of.sums_, of.last_window_, of.samples_, of.placed_);
  }
  const std::vector<uint64_t>& first() const { return first_; }
  void set_first(std::vector<uint64_t> first) { first_ = std::move(first); }

 private:
  void join_nearest();

  std::vector<Cluster> clusters_;
  std::vector<uint64_t> first_;  // the first sample's counters, rounded
  std::vector<u128> sums_;       // clusters x metrics; empty while all samples equal the first
  uint32_t last_window_ = 0;
  uint64_t samples_ = 0;
  bool placed_ = true;  // all samples had an ordinal
};

// Statistics of one metric over the samples of one signature.
struct MetricStat {
  uint32_t metric = 0;  // NamePool
  uint64_t n = 0;
  u128 sum = 0;  // of the values rounded to integers
  double min = 0;
  double max = 0;
  double mean = 0;  // running mean and sum of squared differences (Welford)
  double squares = 0;
  bool integral = true;  // every value was a whole number below 2^53

  void add(double value);
  void merge(const MetricStat& other);
  bool fixed() const { return integral && min == max; }
  double spread() const;  // standard deviation; 0 for one sample
};

struct GroupSamples {
  uint32_t group = 0;  // NamePool: the group's name
  uint64_t n = 0;
  std::vector<uint32_t> metrics;  // NamePool: what `clusters` hold, in this order
  ClusterList clusters;           // of one device; empty in a joined set
  uint64_t of_graphs = 0;         // of n: read in windows around graph launches,
  ClusterList graph_clusters;     // which have no place among the other launches
};

struct SampleSet {
  std::vector<MetricStat> metrics;
  std::vector<GroupSamples> groups;

  MetricStat& metric(uint32_t name);
  const MetricStat* find_metric(uint32_t name) const;
  GroupSamples& group(uint32_t name);
  uint64_t group_samples(uint32_t name) const;
  uint64_t graph_samples(uint32_t name) const;  // of them
  void merge(const std::vector<MetricStat>& others);
  void merge(const std::vector<GroupSamples>& others);  // without their clusters
};

// Metrics, one part of the other, that say which kernels need a group: those for which `metric`
// counts more than `included`.
struct NeededIf {
  static constexpr uint32_t kNothing = ~0U;
  uint32_t metric = 0;           // NamePool
  uint32_t included = kNothing;  // NamePool
  bool operator==(const NeededIf&) const = default;
};

// Groups without which a launch has no FLOP count.
struct RequiredGroups {
  struct Conditional {
    uint32_t group = 0;  // NamePool: the group's name
    std::vector<NeededIf> needed_if;
  };
  std::vector<uint32_t> always;  // NamePool
  std::vector<Conditional> conditional;
  std::vector<uint32_t> unavailable;  // NamePool: could not be measured in some process
  struct Substitute {
    uint32_t group = 0, instead_of = 0;  // NamePool
    bool operator==(const Substitute&) const = default;
  };
  std::vector<Substitute> substitutes;
  // The devices have tensor cores, and their groups neither look for all tensor work nor count it.
  bool tensor_not_asked = false;

  void add(uint32_t group, bool required, const std::vector<NeededIf>& needed_if,
           bool unavailable = false);
  void add_substitute(uint32_t group, uint32_t instead_of);
  // The group was not sampled, and one that bounds it was.
  bool bounded(uint32_t group, const SampleSet* samples) const;
  bool is_unavailable(uint32_t group) const;
};

// Whether a kernel needs a conditional group.
enum class Need : uint8_t {
  kNo,       // what could make it necessary was sampled, and does not
  kYes,      //
  kUnknown,  // nothing that could make it necessary was sampled
};
Need need_of(const RequiredGroups::Conditional&, const SampleSet&);

// By signature and chip: samples of all processes, joined.
class SampleTable {
 public:
  static constexpr size_t kMax = 1U << 20;
  // nullptr when the table is full.
  SampleSet* at(uint32_t signature, uint32_t where);
  const SampleSet* find(uint32_t signature, uint32_t where) const;
  // Calls visit(signature, where, set).
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [key, set] : sets_)
      visit(static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), set);
  }

 private:
  std::unordered_map<uint64_t, SampleSet> sets_;
};

// By signature and device. A job has very many ranks, whose samples count the same of the same
// kernels: what a trace came to is packed, once the next one is read.
class DeviceSamples {
  struct PackedSet;

 public:
  static constexpr size_t kMax = 1U << 24;
  // Of the trace at hand; valid until it is packed. nullptr when the table is full.
  SampleSet* at(uint32_t signature, uint32_t device);
  // Ends the trace at hand. Calls visit(signature, device, const SampleSet&) for each of its sets,
  // in the order of devices, then signatures: no metrics are kept of them.
  template <typename Visit>
  void pack(Visit&& visit) {
    for (auto& [key, set] : open_) {
      visit(static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
            static_cast<const SampleSet&>(set));
      pack(key, set);
    }
    open_.clear();
  }
  // After the last trace, before what follows.
  void end() { packed_.put_in_order(newest); }
  // Calls visit(signature, device, const std::vector<GroupSamples>&) for each, in that order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    packed_.for_each([&](uint32_t signature, const PackedSet& set) {
      visit(signature, set.device, unpacked(set));
    });
  }
  bool any_of(uint32_t device) const { return device < any_.size() && any_[device]; }

  class Reader;

 private:
  // What very many ranks have in common.
  struct Shared {
    uint32_t group = 0;
    std::vector<uint32_t> metrics;
    std::vector<uint64_t> first, of_graphs_first;  // ClusterList::first()
    bool operator==(const Shared&) const = default;
  };
  struct Hash {
    size_t operator()(const Shared& shared) const;
  };
  struct PackedGroup {
    uint32_t shared = 0;  // shared_
    uint64_t n = 0, of_graphs = 0;
    ClusterList clusters, graph_clusters;

    template <typename Self>
    static auto packed(Self& of) {
      return std::tie(of.shared, of.n, of.of_graphs, of.clusters, of.graph_clusters);
    }
  };
  struct PackedSet {
    uint32_t device = 0;
    std::vector<PackedGroup> groups;

    template <typename Self>
    static auto packed(Self& of) {
      return std::tie(of.device, of.groups);
    }
  };
  using Lists = PackedLists<uint32_t, PackedSet>;  // by signature

  // Of a trace that comes again.
  static void newest(PackedSet& set, const PackedSet& next) { set = next; }
  void pack(uint64_t key, SampleSet& set);
  std::vector<GroupSamples> unpacked(const PackedSet& set) const;

  std::map<uint64_t, SampleSet> open_;  // by device, then signature
  Lists packed_;
  std::vector<bool> any_;  // by device
  std::unordered_map<Shared, uint32_t, Hash> numbers_;
  std::vector<const Shared*> shared_;
};

// Reads sets that are asked for in the order of signatures, then devices.
class DeviceSamples::Reader {
 public:
  explicit Reader(const DeviceSamples& of) : of_(of) {}
  // The groups of a set; none where there is no such set.
  std::vector<GroupSamples> groups(uint32_t signature, uint32_t device);

 private:
  const DeviceSamples& of_;
  std::optional<uint32_t> signature_;
  std::optional<Lists::Cursor> rest_;  // of its sets
  bool any_ = false;                   // set_ is one of them
  PackedSet set_;
};

// A counter value that can be one: finite, not negative, below 2^63.
bool is_counter_value(double value);

}  // namespace flopinj::reduce
