// FLOP over time, in at most so many bins, which grow with the recording.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/wide.h"

namespace flopinj::reduce {

// A bin is 2^k ns long and begins at a multiple of that on the trace's clock; k is the least that
// needs no more than `most_bins` bins. So the result is the same in whatever order launches come,
// and series of parts add up to that of the whole exactly.
class FlopSeries {
 public:
  static constexpr size_t kMostBins = 1024;
  // Of each of so many devices, which share 2^17 bins: a job has very many ranks.
  static size_t most_bins(size_t devices) {
    constexpr size_t kOfAll = 1U << 17, kFewest = 32;
    size_t most = kMostBins;
    while (most > kFewest && most * devices > kOfAll) most /= 2;
    return most;
  }

  explicit FlopSeries(size_t most_bins = kMostBins) : most_bins_(most_bins) {}

  static constexpr unsigned kLeastShift = 10;  // about 1 us

  // A launch's FLOP are spread evenly over its time.
  void add(uint64_t begin, uint64_t end, uint64_t flop) {
    if (!add_to_last_bin(begin, end, flop)) [[unlikely]]
      spread(begin, end, flop);
  }
  // The same of several launches together, if all of that time lies in the bin of the last one
  // added.
  bool add_to_last_bin(uint64_t begin, uint64_t end, u128 flop) {
    if (begin < bin_begin_ || end > bin_end_) return false;
    pending_ += flop;
    return true;
  }
  void add(const FlopSeries& other);
  void finish() { flush(); }  // before the bins are read

  bool empty() const { return bins_.empty(); }
  uint64_t bin_ns() const { return uint64_t{1} << shift_; }
  uint64_t begin_ns() const { return first_ << shift_; }
  const std::vector<u128>& bins() const { return bins_; }

 private:
  void flush();
  void spread(uint64_t begin, uint64_t end, uint64_t flop);
  void cover(uint64_t first, uint64_t last);  // numbers of bins at the present shift
  void widen();

  size_t most_bins_;
  unsigned shift_ = kLeastShift;
  uint64_t first_ = 0;  // number of bins_[0], counted from the clock's zero
  std::vector<u128> bins_;
  // The bin of the last launch, kept at hand: most launches lie in the same one as the last.
  uint64_t bin_begin_ = UINT64_MAX, bin_end_ = 0;
  u128 pending_ = 0;
};

}  // namespace flopinj::reduce
