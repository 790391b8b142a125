// Samples of one signature in one metric group on one device, by the windows they were taken in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "support/wide.h"

namespace flopinj::reduce {

// Samples of one window: neighbours in time, and neighbours are alike, so that together they say
// about as much as one of them.
struct Cluster {
  uint64_t first = 0, last = 0;  // places among the signature's launches on the device, from 0
  uint64_t samples = 0;
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

 private:
  void join_nearest();

  std::vector<Cluster> clusters_;
  std::vector<uint64_t> first_;  // the first sample's counters, rounded
  std::vector<u128> sums_;       // clusters x metrics; empty while all samples equal the first
  uint32_t last_window_ = 0;
  uint64_t samples_ = 0;
  bool placed_ = true;  // all samples had an ordinal
};

}  // namespace flopinj::reduce
