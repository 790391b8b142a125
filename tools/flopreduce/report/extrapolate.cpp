#include "report/extrapolate.h"

#include <algorithm>
#include <cmath>

namespace flopinj::reduce {
namespace {

// One metric of a group: the part of the signature's FLOP that it counts.
struct Column {
  size_t index = 0;
  SignatureFlop::Part* part = nullptr;

  double flop(u128 value) const {
    if (part->meaning.role != MetricRole::kFlop) return 0;
    return static_cast<double>(value) * part->meaning.numerator / part->meaning.denominator;
  }
};

// One metric group's share in a signature's FLOP.
class Group {
 public:
  Group(uint32_t name, std::span<const DeviceSamples> devices, std::vector<Column> columns)
      : columns_(std::move(columns)), sums_(columns_.size(), 0) {
    for (const auto& device : devices)
      for (const auto& group : device.samples->groups)
        if (group.group == name) {
          if (group.clusters.size() > 0) add(group.clusters, device.launches);
          if (group.graph_clusters.size() > 0) add(group.graph_clusters, device.in_graphs);
        }
  }
  bool uniform() const { return uniform_; }
  size_t clusters() const { return units_.size(); }
  uint64_t sampled_from() const { return sampled_from_; }  // launches where there are samples
  bool every_launch() const { return every_launch_; }      // of those

  // Over `launches` of all devices.
  void set_extrapolated(uint64_t launches) const {
    bool overflow = false;
    for (size_t c = 0; c < columns_.size(); ++c)
      if (launches_ > 0)
        columns_[c].part->extrapolated = mul_div_round(sums_[c], launches, launches_, overflow);
  }
  std::optional<EstimateError> error(uint64_t launches) {
    const double scale = static_cast<double>(launches) / static_cast<double>(launches_);
    for (ClusterUnit& unit : units_) unit.launches *= std::max(scale, 1.0);
    if (!uniform_) return error_of(units_);
    EstimateError error;
    double unmeasured = 0;
    for (const ClusterUnit& unit : units_)
      unmeasured += std::max(0.0, unit.launches - unit.samples) * unit.mean;
    error.bound = unmeasured * unseen_share(units_.size());
    return error;
  }
  // Variance of one launch's FLOP, as far as windows differ.
  double scatter() const {
    double mean = 0;
    double squares = 0;
    for (const ClusterUnit& unit : units_) mean += unit.launches * unit.mean;
    mean /= static_cast<double>(launches_);
    for (const ClusterUnit& unit : units_)
      squares += unit.launches * (unit.mean - mean) * (unit.mean - mean);
    return squares / static_cast<double>(launches_);
  }

 private:
  void add(const ClusterList& list, uint64_t launches) {
    const std::vector<uint64_t> cells = list.cells(launches);
    add_saturating(launches_, list.stands_for(launches));
    add_saturating(sampled_from_, launches);
    every_launch_ = every_launch_ && list.samples() >= launches;
    for (size_t i = 0; i < list.size(); ++i) {
      bool overflow = false;
      double flop = 0;
      for (size_t c = 0; c < columns_.size(); ++c) {
        const u128 sum = list.sum(i, columns_[c].index);
        add_saturating(sums_[c], mul_div_round(sum, cells[i], list[i].samples, overflow));
        flop += columns_[c].flop(sum);
      }
      const auto samples = static_cast<double>(list[i].samples);
      units_.push_back({static_cast<double>(cells[i]), samples, flop / samples});
    }
    uniform_ = uniform_ && list.uniform() && units_.back().mean == units_.front().mean;
  }

  std::vector<Column> columns_;
  std::vector<u128> sums_;  // per column, over launches_
  std::vector<ClusterUnit> units_;
  uint64_t launches_ = 0;  // that the sums are of: of the sampled devices
  uint64_t sampled_from_ = 0;
  bool every_launch_ = true;
  bool uniform_ = true;  // all samples agree, of all devices
};

// The groups that hold a part of the FLOP, each part in one of them.
std::vector<Group> groups_of(SignatureResult& result, std::span<const DeviceSamples> devices) {
  std::vector<Group> groups;
  std::vector<uint32_t> taken;
  for (const auto& device : devices)
    for (const auto& group : device.samples->groups) {
      std::vector<Column> columns;
      for (auto& part : result.flop.parts) {
        const auto metric = std::find(group.metrics.begin(), group.metrics.end(), part.stat.metric);
        if (metric == group.metrics.end()) continue;
        if (std::find(taken.begin(), taken.end(), part.stat.metric) != taken.end()) continue;
        taken.push_back(part.stat.metric);
        columns.push_back({static_cast<size_t>(metric - group.metrics.begin()), &part});
      }
      if (!columns.empty()) groups.emplace_back(group.group, devices, std::move(columns));
    }
  return groups;
}

// Variance of one launch's FLOP where all were sampled: at most, were all counters to rise
// together.
double variance_of(const SignatureFlop& flop) {
  double deviation = 0;
  for (const auto& part : flop.parts)
    if (part.meaning.role == MetricRole::kFlop)
      deviation += part.stat.spread() * part.meaning.numerator / part.meaning.denominator;
  return deviation * deviation;
}

}  // namespace

void extrapolate(SignatureResult& result, std::span<const DeviceSamples> devices, bool merged) {
  const uint64_t launches = result.counts.launches;
  std::vector<Group> groups = groups_of(result, devices);
  std::erase_if(groups, [](const Group& group) { return group.clusters() == 0; });
  if (groups.empty()) return;
  uint64_t sampled_from = launches;
  bool every_launch = true;
  bool disagree = false;
  for (const Group& group : groups) {
    result.windows = result.windows == 0 ? group.clusters()
                                         : std::min<uint64_t>(result.windows, group.clusters());
    sampled_from = std::min(sampled_from, group.sampled_from());
    every_launch = every_launch && group.every_launch();
    disagree = disagree || !group.uniform();
  }
  result.every_launch = every_launch && sampled_from == launches;
  if (disagree && result.estimated()) result.elsewhere = launches - sampled_from;
  if (!result.estimated()) return;

  EstimateError error;
  bool known = result.elsewhere == 0;
  double scatter = 0;
  for (Group& group : groups) {
    group.set_extrapolated(launches);
    scatter += group.scatter();
    if (group.uniform() && !merged) continue;
    const auto part = group.error(launches);
    known = known && part.has_value();
    if (part) error.add(*part);
  }
  if (result.every_launch) error.launch_variance = variance_of(result.flop);
  // Counters that are no whole numbers below 2^53 were rounded.
  if (result.flop.inexact) {
    constexpr double kRounding = 0x1p-52;
    error.bound += static_cast<double>(launches) +
                   kRounding * static_cast<double>(result.flop.of(0, launches, launches).total);
  }
  result.spread = std::sqrt(scatter);
  if (known) result.error = error;
}

}  // namespace flopinj::reduce
