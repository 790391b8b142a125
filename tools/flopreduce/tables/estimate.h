// How far an extrapolated sum may be off: the statistics behind the 95 % intervals.
//
// A kernel's launches are a fixed sequence of work; windows are read at places that do not depend
// on it. Each cluster of samples represents the launches nearest to it (ClusterList::cells), so
// that a drift or a warm-up does not bias the sum. The error of such a sum is judged cluster by
// cluster, from how far it is off the mean and off its neighbours, whichever is more.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "support/wide.h"

namespace flopinj::reduce {

// One cluster of samples in an extrapolated sum.
struct ClusterUnit {
  double launches = 0;  // that it represents, itself included
  double samples = 0;
  double mean = 0;  // FLOP of one launch
};

// The error of one signature's extrapolated FLOP.
struct EstimateError {
  double deviation = 0;        // standard deviation of the sum
  double skew = 0;             // cube root of its third central moment
  double freedom = 0;          // degrees of freedom of `deviation`
  double launch_variance = 0;  // between single launches
  double bound = 0;            // what it may be off besides, not at random

  // Independent errors of two parts of one sum.
  void add(const EstimateError& other);
};

// Fewer clusters than this say nothing of the error.
inline constexpr size_t kFewestClusters = 3;
// Nothing for too few units.
std::optional<EstimateError> error_of(std::span<const ClusterUnit> units);

// Launches that may differ though n independent samples all agree: with a larger share, n equal
// samples had a chance below 5 %.
double unseen_share(size_t n);

// Student's t: 2.5 % lie above. `freedom` of at least 1 is rounded down to the next entry of the
// table, so that the interval is never too narrow.
double t_quantile(double freedom);

struct Interval {
  u128 low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

// The error of a sum of shares of signatures. Shares of one signature err together; signatures err
// independently. To stay bounded, signatures are put into kClasses classes, and members of one
// class are taken to err together too, which only widens the interval.
class Uncertainty {
 public:
  static constexpr uint32_t kClasses = 64;

  // `launches` of the signature's `all`; `unmeasured`: the part of them that was not sampled.
  void add_share(const EstimateError& error, uint32_t error_class, uint64_t launches, uint64_t all,
                 double flop);
  // Launches whose kernel has too few samples for an interval.
  void add_unknown(uint64_t launches) { add_saturating(unknown_, launches); }
  // Launches whose kernel also ran where nothing was sampled.
  void add_elsewhere(uint64_t launches) { add_saturating(elsewhere_, launches); }
  void add(const Uncertainty& other);

  uint64_t unknown_launches() const { return unknown_; }
  uint64_t elsewhere_launches() const { return elsewhere_; }
  // The 95 % interval around `flop`; nothing where some launches have none.
  std::optional<Interval> interval(u128 flop) const;

 private:
  struct Share {
    uint32_t error_class = 0;
    double deviation = 0, skew = 0, freedom = 0;
  };
  void add(const Share& share);

  std::vector<Share> shares_;  // by class
  double scatter_ = 0;         // variance of which launches a share got
  double bound_ = 0;
  double flop_ = 0;  // that are estimates
  uint64_t unknown_ = 0, elsewhere_ = 0;
};

}  // namespace flopinj::reduce
