#include "tables/flop_series.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

// Of `flop` spread evenly over `length`, what lies before `at`. Sums of neighbouring pieces are
// those of the piece they make up.
u128 before(uint64_t flop, uint64_t length, uint64_t at) {
  return length == 0 ? flop : static_cast<u128>(flop) * std::min(at, length) / length;
}

}  // namespace

void FlopSeries::flush() {
  if (pending_ == 0) return;
  bins_[static_cast<size_t>((bin_begin_ >> shift_) - first_)] += pending_;
  pending_ = 0;
}

// Neighbours that share a bin of twice the length become one.
void FlopSeries::widen() {
  std::vector<u128> wider(static_cast<size_t>(((first_ + bins_.size() - 1) >> 1) - (first_ >> 1)) +
                          1);
  for (size_t i = 0; i < bins_.size(); ++i)
    wider[static_cast<size_t>(((first_ + i) >> 1) - (first_ >> 1))] += bins_[i];
  bins_ = std::move(wider);
  first_ >>= 1;
  ++shift_;
}

// The bins of [begin, last] ns exist after this.
void FlopSeries::cover(uint64_t begin, uint64_t last) {
  flush();
  bin_begin_ = UINT64_MAX;
  bin_end_ = 0;
  if (bins_.empty()) {
    while ((last >> shift_) - (begin >> shift_) >= most_bins_) ++shift_;
    first_ = begin >> shift_;
    bins_.resize(1);
  }
  while (std::max(last >> shift_, first_ + bins_.size() - 1) - std::min(begin >> shift_, first_) >=
         most_bins_)
    widen();
  const uint64_t from = std::min(begin >> shift_, first_);
  const uint64_t to = std::max(last >> shift_, first_ + bins_.size() - 1);
  bins_.insert(bins_.begin(), static_cast<size_t>(first_ - from), 0);
  first_ = from;
  bins_.resize(static_cast<size_t>(to - from) + 1);
}

void FlopSeries::spread(uint64_t begin, uint64_t end, uint64_t flop) {
  const uint64_t last = end > begin ? end - 1 : begin;
  cover(begin, last);
  const uint64_t length = end - begin;
  for (uint64_t bin = begin >> shift_; bin <= last >> shift_; ++bin) {
    const uint64_t bin_begin = std::max(begin, bin << shift_);
    const uint64_t bin_last = std::min(last, ((bin + 1) << shift_) - 1);
    const u128 from = bin_begin == begin ? 0 : before(flop, length, bin_begin - begin);
    bins_[static_cast<size_t>(bin - first_)] += before(flop, length, bin_last + 1 - begin) - from;
  }
  bin_begin_ = (last >> shift_) << shift_;
  bin_end_ = bin_begin_ + (uint64_t{1} << shift_);
}

void FlopSeries::add(const FlopSeries& other) {
  if (other.bins_.empty()) return;
  cover(other.begin_ns(), ((other.first_ + other.bins_.size()) << other.shift_) - 1);
  while (shift_ < other.shift_) widen();
  for (size_t i = 0; i < other.bins_.size(); ++i)
    bins_[static_cast<size_t>(((other.first_ + i) >> (shift_ - other.shift_)) - first_)] +=
        other.bins_[i];
}

}  // namespace flopinj::reduce
