#pragma once
#include <cstdint>
#include <tuple>

#include "support/members.h"
#include "support/wide.h"

namespace flopinj::reduce {

// GPU time of a set of launches.
struct GpuTime {
  u128 ns = 0;
  // Launches that are in it with the mean of their signature's other launches.
  uint64_t estimated = 0;
  // Launches that are in it with times taken while counters were read: upper bounds.
  uint64_t windowed = 0;
  uint64_t unknown = 0;  // launches that are not in it

  template <typename Self>
  static auto sums(Self& of) {
    auto& [ns, estimated, windowed, unknown] = of;
    return std::tie(ns, estimated, windowed, unknown);
  }
  void add(const GpuTime& o) { add_each(sums(*this), sums(o)); }
};

}  // namespace flopinj::reduce
