#include "tables/clusters.h"

#include <algorithm>
#include <cmath>

namespace flopinj::reduce {
namespace {

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

}  // namespace flopinj::reduce
