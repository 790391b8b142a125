#include "report/work_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

namespace flopinj::reduce {
namespace {

// What samples say of all launches of a kernel: whether they are all of them, and where they
// disagree, the FLOP of all and how far that may be off.

// Samples of one signature on one device of the kind, and its launches there: outside of graphs,
// and in them. Each are of use where there are samples of such.
struct OnDevice {
  std::vector<GroupSamples> samples;
  uint64_t launches = 0, in_graphs = 0;
};

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
  Group(uint32_t name, std::span<const OnDevice> devices, std::vector<Column> columns)
      : columns_(std::move(columns)), sums_(columns_.size(), 0) {
    for (const auto& device : devices)
      for (const auto& group : device.samples)
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
std::vector<Group> groups_of(SignatureResult& result, std::span<const OnDevice> devices) {
  std::vector<Group> groups;
  std::vector<uint32_t> taken;
  for (const auto& device : devices)
    for (const auto& group : device.samples) {
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

// Completes `result`, whose status, parts and counts are known: what its metrics count over all
// launches, and the error of that. Launches elsewhere (on devices, or in graphs, that were not
// sampled) are taken to do what the sampled ones do; where samples disagree, nothing says how far
// that is off.
void extrapolate(SignatureResult& result, std::span<const OnDevice> devices, bool merged) {
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

}  // namespace

WorkTable::WorkTable(const TraceTables& tables, const Totals& totals, Formulas& formulas) {
  for (const auto& row : totals.rows) {
    auto [entry, fresh] = results_.try_emplace(key(row.signature, row.chip));
    if (fresh && row.signature != SignatureTable::kUndefined)
      entry->second.flop =
          formulas.evaluate(tables.samples_by_chip.find(row.signature, row.chip),
                            tables.required[row.chip], tables.names, tables.code_of(row.signature));
    entry->second.counts.add(row.counts);
  }
  std::map<uint32_t, std::vector<OnDevice>> sampled;  // of one signature, by chip
  const auto end_signature = [&](uint32_t signature) {
    const bool merged = tables.signatures[signature].parameter_class == ParameterClass::kMerged;
    for (const auto& [chip, devices] : sampled)
      extrapolate(results_.at(key(signature, chip)), devices, merged);
    sampled.clear();
  };
  uint32_t at_hand = SignatureTable::kUndefined;
  DeviceSamples::Reader reader(tables.samples_by_device);
  totals.device_rows.for_each([&](uint32_t signature, const DeviceRow& row) {
    if (signature != at_hand) end_signature(at_hand);
    at_hand = signature;
    const uint32_t chip = tables.devices[row.device].chip;
    const auto found = results_.find(key(signature, chip));
    if (found == results_.end() || found->second.flop.status != FlopStatus::kMeasured) return;
    SignatureFlop& flop = found->second.flop;
    const auto parameters = tables.signatures[signature].parameter_class;
    flop.varying = flop.varying || parameters == ParameterClass::kMerged;
    const uint64_t in_graphs = std::min(row.graph, row.launches);
    std::vector<GroupSamples> samples = reader.groups(signature, row.device);
    if (!samples.empty())
      sampled[chip].push_back({std::move(samples), row.launches - in_graphs, in_graphs});
  });
  end_signature(at_hand);
  classify();
}

// The signatures that are most unsure get a class of their own.
void WorkTable::classify() {
  std::vector<std::pair<uint64_t, SignatureResult*>> unsure;
  for (auto& [where, result] : results_)
    if (result.error) unsure.emplace_back(where, &result);
  std::sort(unsure.begin(), unsure.end(), [](const auto& a, const auto& b) {
    const double da = a.second->error->deviation;
    const double db = b.second->error->deviation;
    return da != db ? da > db : a.first < b.first;
  });
  for (uint32_t i = 0; i < unsure.size(); ++i)
    unsure[i].second->error_class = i % Uncertainty::kClasses;
}

const SignatureResult& WorkTable::result(uint32_t signature, uint32_t chip) const {
  static const SignatureResult kNone;
  const auto found = results_.find(key(signature, chip));
  return found == results_.end() ? kNone : found->second;
}

WorkTable::RowWork WorkTable::next(const Row& row) {
  const SignatureResult& result = this->result(row.signature, row.chip);
  RowWork out;
  Work& work = out.work;
  work.launches = row.counts.launches;
  work.time = time_of(row.counts, result.counts, work.overflow);
  if (result.flop.status != FlopStatus::kMeasured) {
    work.unmeasured = row.counts.launches;
    return out;
  }
  if (result.flop.unscreened) work.unscreened = row.counts.launches;
  if (result.flop.bounded) work.bounded = row.counts.launches;
  if (result.estimated()) {
    work.varying = row.counts.launches;
    if (!result.flop.varying) work.rounded = row.counts.launches;
  } else if (!result.sum_exact()) {
    work.agreeing = row.counts.launches;
    work.fewest_windows = std::max<uint64_t>(result.windows, 1);
  }
  uint64_t& from = handed_out_[key(row.signature, row.chip)];
  const uint64_t all = result.counts.launches;
  const uint64_t count =
      std::min(row.counts.launches, all - from);  // less only where sums are held
  out.flop = result.flop.of(from, count, all);
  from += count;
  work.flop = out.flop.total;
  if (result.error)
    work.uncertainty.add_share(*result.error, result.error_class, count, all,
                               static_cast<double>(work.flop));
  else if (result.elsewhere > 0)
    work.uncertainty.add_elsewhere(row.counts.launches);
  else if (result.estimated())
    work.uncertainty.add_unknown(row.counts.launches);
  work.matrix_flop = out.flop.matrix;
  work.doubtful = out.flop.all_doubtful();
  work.left_out = out.flop.left_out;
  work.overflow = work.overflow || out.flop.overflow;
  if (count == all) work = in_whole(row, work);
  return out;
}

Work WorkTable::in_whole(const Row& row, const Work& work) const {
  const SignatureResult& result = results_.at(key(row.signature, row.chip));
  if (!result.error || work.varying == 0) return work;
  Work whole = work;
  whole.uncertainty = {};
  if (result.sum_exact()) {
    whole.varying = 0;
    return whole;
  }
  EstimateError error = *result.error;
  error.launch_variance = 0;
  whole.uncertainty.add_share(error, result.error_class, work.launches, result.counts.launches,
                              static_cast<double>(work.flop));
  return whole;
}

GpuTime time_of(const Counts& counts, const Counts& signature, bool& overflow) {
  GpuTime time;
  if (signature.timed > 0) {
    time.ns = counts.time_ns;
    time.estimated = counts.launches > counts.timed ? counts.launches - counts.timed : 0;
    const u128 rest = mul_div_round(signature.time_ns, time.estimated, signature.timed, overflow);
    if (!add_saturating(time.ns, rest)) overflow = true;
  } else if (signature.windowed_timed > 0) {
    const uint64_t missing =
        counts.launches > counts.windowed_timed ? counts.launches - counts.windowed_timed : 0;
    time.ns = counts.windowed_time_ns;
    time.windowed = counts.launches;
    const u128 rest =
        mul_div_round(signature.windowed_time_ns, missing, signature.windowed_timed, overflow);
    if (!add_saturating(time.ns, rest)) overflow = true;
  } else {
    time.unknown = counts.launches;
  }
  return time;
}

}  // namespace flopinj::reduce
