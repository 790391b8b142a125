#include "tables/samples.h"

#include <algorithm>
#include <cmath>

namespace flopinj::reduce {
namespace {

// The entry of this name, made where there is none.
template <typename Entry>
Entry& entry(std::vector<Entry>& list, uint32_t Entry::*name_of, uint32_t name) {
  const auto found = std::ranges::find(list, name, name_of);
  if (found != list.end()) return *found;
  list.emplace_back().*name_of = name;
  return list.back();
}

uint64_t rounded(double value) { return static_cast<uint64_t>(std::floor(value + 0.5)); }

}  // namespace

void ClusterList::add(uint32_t window, uint64_t ordinal, std::span<const double> values) {
  if (clusters_.empty())
    for (const double v : values) first_.push_back(rounded(v));
  const size_t width = first_.size();
  if (uniform() && !std::equal(values.begin(), values.end(), first_.begin(),
                               [](double v, uint64_t f) { return rounded(v) == f; })) {
    sums_.reserve((clusters_.size() + 1) * width);
    for (const Cluster& c : clusters_)
      for (const uint64_t f : first_) sums_.push_back(static_cast<u128>(f) * c.samples);
  }
  placed_ = placed_ && ordinal != kNoOrdinal;
  // An ordinal may be late by a few launches; samples are in order all the same.
  const uint64_t next = clusters_.empty() ? 0 : clusters_.back().last + 1;
  ordinal = placed_ ? std::max(ordinal, next) : next;
  if (clusters_.empty() || window != last_window_) {
    clusters_.push_back({ordinal, ordinal, 0});
    if (!sums_.empty()) sums_.resize(sums_.size() + width);
  }
  last_window_ = window;
  clusters_.back().last = ordinal;
  ++clusters_.back().samples;
  ++samples_;
  if (!sums_.empty())
    for (size_t m = 0; m < width; ++m)
      add_saturating(sums_[sums_.size() - width + m], rounded(values[m]));
  if (clusters_.size() > kMax) join_nearest();
}

void ClusterList::join_nearest() {
  size_t best = 0;
  for (size_t i = 1; i + 1 < clusters_.size(); ++i)
    if (clusters_[i + 1].last - clusters_[i].first <
        clusters_[best + 1].last - clusters_[best].first)
      best = i;
  clusters_[best].last = clusters_[best + 1].last;
  clusters_[best].samples += clusters_[best + 1].samples;
  clusters_.erase(clusters_.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  if (sums_.empty()) return;
  const auto second = sums_.begin() + static_cast<std::ptrdiff_t>((best + 1) * width());
  for (auto m = second; m != second + static_cast<std::ptrdiff_t>(width()); ++m)
    add_saturating(*(m - static_cast<std::ptrdiff_t>(width())), *m);
  sums_.erase(second, second + static_cast<std::ptrdiff_t>(width()));
}

u128 ClusterList::sum(size_t cluster, size_t metric) const {
  if (uniform()) return static_cast<u128>(first_[metric]) * clusters_[cluster].samples;
  return sums_[cluster * width() + metric];
}

uint64_t ClusterList::stands_for(uint64_t launches) const {
  if (clusters_.empty()) return launches;
  if (samples_ >= launches) return samples_;
  return std::max(launches, placed_ ? clusters_.back().last + 1 : samples_);
}

std::vector<uint64_t> ClusterList::cells(uint64_t launches) const {
  const uint64_t all = stands_for(launches);
  std::vector<uint64_t> cells;
  uint64_t begin = 0;
  u128 seen = 0;
  for (size_t i = 0; i < clusters_.size(); ++i) {
    const Cluster& c = clusters_[i];
    seen += c.samples;
    uint64_t end = all;
    if (samples_ >= launches) {
      end = begin + c.samples;
    } else if (!placed_) {
      end = static_cast<uint64_t>(seen * all / samples_);
    } else if (i + 1 < clusters_.size()) {
      end = c.last + 1 + (clusters_[i + 1].first - (c.last + 1)) / 2;
      if (i == 0) end = std::min(end, c.last + 1 + c.samples);
    }
    cells.push_back(end - begin);
    begin = end;
  }
  return cells;
}

bool is_counter_value(double value) { return value >= 0 && value < 9.2e18; }  // false for NaN

void MetricStat::add(double value) {
  constexpr double kExactBelow = 9007199254740992.0;  // 2^53
  min = n == 0 ? value : std::min(min, value);
  max = n == 0 ? value : std::max(max, value);
  ++n;
  const double before = value - mean;
  mean += before / static_cast<double>(n);
  squares += before * (value - mean);
  integral = integral && value < kExactBelow && std::floor(value) == value;
  add_saturating(sum, static_cast<u128>(std::floor(value + 0.5)));
}

void MetricStat::merge(const MetricStat& other) {
  if (other.n == 0) return;
  if (n == 0) {
    const uint32_t name = metric;
    *this = other;
    metric = name;
    return;
  }
  const auto a = static_cast<double>(n);
  const auto b = static_cast<double>(other.n);
  const double difference = other.mean - mean;
  mean += difference * b / (a + b);
  squares += other.squares + difference * difference * a * b / (a + b);
  n += other.n;
  min = std::min(min, other.min);
  max = std::max(max, other.max);
  integral = integral && other.integral;
  add_saturating(sum, other.sum);
}

double MetricStat::spread() const {
  return n < 2 ? 0 : std::sqrt(std::max(0.0, squares) / static_cast<double>(n - 1));
}

MetricStat& SampleSet::metric(uint32_t name) { return entry(metrics, &MetricStat::metric, name); }

const MetricStat* SampleSet::find_metric(uint32_t name) const {
  const auto found = std::ranges::find(metrics, name, &MetricStat::metric);
  return found == metrics.end() ? nullptr : &*found;
}

GroupSamples& SampleSet::group(uint32_t name) { return entry(groups, &GroupSamples::group, name); }

uint64_t SampleSet::group_samples(uint32_t name) const {
  const auto found = std::ranges::find(groups, name, &GroupSamples::group);
  return found == groups.end() ? 0 : found->n;
}

uint64_t SampleSet::graph_samples(uint32_t name) const {
  const auto found = std::ranges::find(groups, name, &GroupSamples::group);
  return found == groups.end() ? 0 : found->of_graphs;
}

void SampleSet::merge(const std::vector<MetricStat>& others) {
  for (const auto& m : others) metric(m.metric).merge(m);
}

void SampleSet::merge(const std::vector<GroupSamples>& others) {
  for (const auto& g : others) {
    GroupSamples& joined = group(g.group);
    joined.n += g.n;
    joined.of_graphs += g.of_graphs;
  }
}

void RequiredGroups::add(uint32_t group, bool required, const std::vector<NeededIf>& needed_if,
                         bool lacking) {
  if (lacking && !is_unavailable(group)) unavailable.push_back(group);
  if (!needed_if.empty()) {
    const auto known = std::find_if(conditional.begin(), conditional.end(),
                                    [&](const Conditional& c) { return c.group == group; });
    if (known == conditional.end()) conditional.push_back({group, needed_if});
  } else if (required && std::find(always.begin(), always.end(), group) == always.end()) {
    always.push_back(group);
  }
}

void RequiredGroups::add_substitute(uint32_t group, uint32_t instead_of) {
  if (std::ranges::count(substitutes, Substitute{group, instead_of}) == 0)
    substitutes.push_back({group, instead_of});
}

bool RequiredGroups::bounded(uint32_t group, const SampleSet* samples) const {
  return samples != nullptr && samples->group_samples(group) == 0 &&
         std::ranges::any_of(substitutes, [&](const Substitute& s) {
           return s.instead_of == group && samples->group_samples(s.group) > 0;
         });
}

bool RequiredGroups::is_unavailable(uint32_t group) const {
  return std::find(unavailable.begin(), unavailable.end(), group) != unavailable.end();
}

Need need_of(const RequiredGroups::Conditional& group, const SampleSet& samples) {
  Need need = Need::kNo;
  for (const NeededIf& condition : group.needed_if) {
    const MetricStat* metric = samples.find_metric(condition.metric);
    const MetricStat* included = samples.find_metric(condition.included);
    if (metric == nullptr || metric->n == 0)
      need = Need::kUnknown;
    else if (metric->mean > (included != nullptr ? included->mean : 0.0))
      return Need::kYes;
  }
  return need;
}

SampleSet* SampleTable::at(uint32_t signature, uint32_t where) {
  const uint64_t key = static_cast<uint64_t>(signature) << 32 | where;
  const auto found = sets_.find(key);
  if (found != sets_.end()) return &found->second;
  if (sets_.size() >= kMax) return nullptr;
  return &sets_[key];
}

const SampleSet* SampleTable::find(uint32_t signature, uint32_t where) const {
  const auto found = sets_.find(static_cast<uint64_t>(signature) << 32 | where);
  return found == sets_.end() ? nullptr : &found->second;
}

SampleSet* DeviceSamples::at(uint32_t signature, uint32_t device) {
  const uint64_t key = static_cast<uint64_t>(device) << 32 | signature;
  const auto found = open_.find(key);
  if (found != open_.end()) return &found->second;
  if (open_.size() + packed_.size() >= kMax) return nullptr;
  SampleSet& set = open_[key];
  if (any_of(device)) {  // a trace that comes again
    packed_.put_in_order(signature, newest);
    set.groups = Reader(*this).groups(signature, device);
  }
  return &set;
}

std::vector<GroupSamples> DeviceSamples::Reader::groups(uint32_t signature, uint32_t device) {
  if (signature_ != signature) {
    signature_ = signature;
    rest_ = of_.packed_.rows(signature);
    any_ = rest_->next(set_);
  }
  while (any_ && set_.device < device) any_ = rest_->next(set_);
  return any_ && set_.device == device ? of_.unpacked(set_) : std::vector<GroupSamples>();
}

size_t DeviceSamples::Hash::operator()(const Shared& shared) const {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;
  uint64_t hash = shared.group;
  const auto add = [&](uint64_t value) { hash = ((hash ^ hash >> 32) + value) * kPrime; };
  for (const uint32_t metric : shared.metrics) add(metric);
  for (const uint64_t value : shared.first) add(value);
  for (const uint64_t value : shared.of_graphs_first) add(value);
  return static_cast<size_t>(hash ^ hash >> 32);
}

void DeviceSamples::pack(uint64_t key, SampleSet& set) {
  PackedSet packed;
  packed.device = static_cast<uint32_t>(key >> 32);
  for (GroupSamples& group : set.groups) {
    const auto [number, fresh] =
        numbers_.try_emplace({group.group, std::move(group.metrics), group.clusters.first(),
                              group.graph_clusters.first()},
                             static_cast<uint32_t>(shared_.size()));
    if (fresh) shared_.push_back(&number->first);
    packed.groups.push_back({number->second, group.n, group.of_graphs, std::move(group.clusters),
                             std::move(group.graph_clusters)});
  }
  packed_.add(static_cast<uint32_t>(key), packed);
  if (any_.size() <= packed.device) any_.resize(packed.device + size_t{1});
  any_[packed.device] = true;
}

std::vector<GroupSamples> DeviceSamples::unpacked(const PackedSet& set) const {
  std::vector<GroupSamples> groups;
  for (const PackedGroup& packed : set.groups) {
    const Shared& shared = *shared_[packed.shared];
    GroupSamples& group = groups.emplace_back();
    group.group = shared.group;
    group.n = packed.n;
    group.metrics = shared.metrics;
    group.clusters = packed.clusters;
    group.clusters.set_first(shared.first);
    group.of_graphs = packed.of_graphs;
    group.graph_clusters = packed.graph_clusters;
    group.graph_clusters.set_first(shared.of_graphs_first);
  }
  return groups;
}

}  // namespace flopinj::reduce
