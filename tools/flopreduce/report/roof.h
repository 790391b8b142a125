// What a set of launches could do at best: the least time that the peaks of their devices allow.
#pragma once
#include <cstdint>
#include <tuple>

#include "support/members.h"
#include "support/wide.h"

namespace flopinj::reduce {

struct Roof {
  // Sum over precisions of FLOP / peak, in ns: no order of a kernel's operations is faster, were
  // its units to take turns. One peak for all FLOP would need one precision for all.
  double compute_ns = 0;
  double integer_ns = 0;  // the same of integer tensor work, which is no FLOP
  double memory_ns = 0;   // DRAM bytes / bandwidth
  double ns = 0;          // the larger of arithmetic, both kinds, and memory, launch by launch
  u128 dram_bytes = 0;    // read and written, as measured when no other kernel ran

  // Launches that are not in the sums above.
  uint64_t no_peak = 0;          // FLOP of a precision for which no peak is known
  uint64_t no_integer_peak = 0;  // integer tensor work of a format for which none is known
  uint64_t no_bytes = 0;         // nobody read their DRAM bytes
  uint64_t no_bandwidth = 0;     // bytes, but no bandwidth is known

  template <typename Self>
  static auto times(Self& of) {
    auto& [compute_ns, integer_ns, memory_ns, ns, dram_bytes, no_peak, no_integer_peak, no_bytes,
           no_bandwidth] = of;
    return std::tie(compute_ns, integer_ns, memory_ns, ns);
  }
  template <typename Self>
  static auto sums(Self& of) {
    auto& [compute_ns, integer_ns, memory_ns, ns, dram_bytes, no_peak, no_integer_peak, no_bytes,
           no_bandwidth] = of;
    return std::tie(dram_bytes, no_peak, no_integer_peak, no_bytes, no_bandwidth);
  }
  void add(const Roof& o) {
    for_each_pair(times(*this), times(o), [](double& a, double b) { a += b; });
    add_each(sums(*this), sums(o));
  }
};

}  // namespace flopinj::reduce
