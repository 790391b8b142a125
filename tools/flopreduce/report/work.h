// What a set of launches did: FLOP, GPU time, and the least time that peaks allow.
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "report/by_formula.h"
#include "report/figure.h"
#include "report/model_flop.h"
#include "support/members.h"
#include "support/wide.h"
#include "tables/estimate.h"

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
  template <typename Self>
  static auto packed(Self& of) {
    return sums(of);
  }
  void add(const GpuTime& o) { add_each(sums(*this), sums(o)); }
};

// What a set of launches could do at best: the least time that the peaks of their devices allow.
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

// A set of launches. `flop` holds the measured and extrapolated ones: with unmeasured or unscreened
// launches it is a lower bound.
struct Work {
  uint64_t launches = 0;
  uint64_t unmeasured = 0;
  uint64_t varying = 0;         // measured, but not exactly: their FLOP are an estimate
  uint64_t rounded = 0;         // of those: samples agree, on a count that the counter has rounded
  uint64_t agreeing = 0;        // have the count of samples that agree, not each its own
  uint64_t fewest_windows = 0;  // of those: windows with samples, of the kernel that has fewest
  uint64_t unscreened = 0;      // measured, but nothing says whether there is tensor work too
  uint64_t bounded = 0;         // measured, but instructions have only an upper bound
  u128 flop = 0;
  u128 matrix_flop = 0;  // fused multiply-adds and tensor work
  // Of flop: at most so much may be of instructions without arithmetic (docs/metrics.md), or is the
  // bound of instructions that were not counted.
  u128 doubtful = 0;
  u128 left_out = 0;  // not in flop: instructions that were counted, and are known to be without
  GpuTime time;
  Roof roof;                // the least time that its devices' peaks allow
  Uncertainty uncertainty;  // of `flop`, where launches vary
  ByFormula by_formula;     // of launches that lack a count, or a part of it
  bool overflow = false;

  // What is added up and shared out, number by number. All members are named here, so that one that
  // is new does not compile before it is either in the list or among the rest.
  template <typename Self>
  static auto sums(Self& of) {
    auto& [launches, unmeasured, varying, rounded, agreeing, fewest_windows, unscreened, bounded,
           flop, matrix_flop, doubtful, left_out, time, roof, uncertainty, by_formula, overflow] =
        of;
    return std::tie(launches, unmeasured, varying, rounded, agreeing, unscreened, bounded, flop,
                    matrix_flop, doubtful, left_out);
  }
  // The 95 % interval of `flop`; nothing where it is exact, or where too few samples say nothing.
  std::optional<Interval> interval() const;
  // What may be no arithmetic reaches the fourth digit: the figure is an upper bound.
  bool flop_at_most() const { return doubtful > flop / 2000; }
  void add(const Work& o);
  uint64_t incomplete() const { return unmeasured + unscreened; }  // launches
  bool flop_complete() const { return incomplete() == 0; }
  // Every launch was measured.
  bool flop_exact() const {
    return flop_complete() && varying == 0 && agreeing == 0 && doubtful == 0;
  }
  bool flop_known() const { return launches == 0 || unmeasured < launches; }
  bool time_known() const { return launches == 0 || time.unknown < launches; }
};

Mark missing_mark(const Work& work);  // where launches are missing, or a part of their work
Mark flop_mark(const Work& work);
Figure flop_of(const Work& work);  // of its launches with a count; marked where some have none
Figure matrix_flop_of(const Work& work);  // likewise, of fused multiply-adds and tensor work
// The same where all launches have a count; else about so much, with the formulas' FLOP for those
// that have none, and at least so much where some have no formula either.
Figure flop_or_formula(const Work& work);
// Ns, of `launches`: about so, where some are in it with a mean; of 0, whatever there is.
Figure gpu_time_of(const GpuTime& time, uint64_t launches);
Figure gpu_time_of(const Work& work);

// [from, to) of `all`: parts that follow each other add up to the whole.
struct Part {
  uint64_t from = 0, to = 1, all = 1;
  bool alike = true;  // launches of all parts do the same: else a part is an estimate
  bool whole() const { return from == 0 && to == all; }
  u128 of(u128 whole) const;
  Work of(const Work& work) const;
  ModelFlop of(const ModelFlop& model) const;
};

}  // namespace flopinj::reduce
