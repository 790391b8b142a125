#include "tables/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace flopinj::reduce {
namespace {

// Upper 2.5 % points of Student's t, NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
struct Quantile {
  double freedom, t;
};
constexpr std::array kQuantiles = {
    Quantile{1, 12.706},  Quantile{2, 4.303},  Quantile{3, 3.182},  Quantile{4, 2.776},
    Quantile{5, 2.571},   Quantile{6, 2.447},  Quantile{7, 2.365},  Quantile{8, 2.306},
    Quantile{9, 2.262},   Quantile{10, 2.228}, Quantile{11, 2.201}, Quantile{12, 2.179},
    Quantile{13, 2.160},  Quantile{14, 2.145}, Quantile{15, 2.131}, Quantile{16, 2.120},
    Quantile{17, 2.110},  Quantile{18, 2.101}, Quantile{19, 2.093}, Quantile{20, 2.086},
    Quantile{25, 2.060},  Quantile{30, 2.042}, Quantile{40, 2.021}, Quantile{50, 2.009},
    Quantile{100, 1.984},
};

double square(double x) { return x * x; }
double cube(double x) { return x * x * x; }

// How far unit i's mean is off what the others say, as the larger of two: off the mean of all
// (corrected for the unit's own weight in it), and off its neighbours, corrected for their scatter.
double residual(std::span<const ClusterUnit> units, size_t i, double mean, double all) {
  const double from_mean = (units[i].mean - mean) / std::max(1 - units[i].launches / all, 0.01);
  double neighbours = 0, sum = 0;
  for (const size_t j : {i - 1, i + 1})
    if (j < units.size()) {
      sum += units[j].mean;
      ++neighbours;
    }
  const double from_neighbours =
      (units[i].mean - sum / neighbours) * std::sqrt(neighbours / (neighbours + 1));
  return std::abs(from_mean) >= std::abs(from_neighbours) ? from_mean : from_neighbours;
}

struct Moments {
  double variance = 0, third = 0, fourth = 0;

  void add(double off, double weight) {
    variance += weight * square(off);
    third += weight * cube(off);
    fourth += square(weight * square(off));
  }
  // The variance of a sum of squares is known by the fourth moment, which for a normal distribution
  // is three times the variance squared.
  double freedom() const { return fourth > 0 ? 3 * square(variance) / fourth - 1 : 1e9; }
};

u128 to_flop(double value) {
  constexpr double kMost = 3.4e38;  // below 2^128
  return value <= 0 ? 0 : value >= kMost ? kU128Max : static_cast<u128>(value);
}

}  // namespace

void EstimateError::add(const EstimateError& other) {
  const double variance = square(deviation) + square(other.deviation);
  double unsure = 0;  // Welch-Satterthwaite
  if (freedom > 0) unsure += square(square(deviation)) / freedom;
  if (other.freedom > 0) unsure += square(square(other.deviation)) / other.freedom;
  freedom = unsure > 0 ? square(variance) / unsure : std::max(freedom, other.freedom);
  deviation = std::sqrt(variance);
  skew = std::cbrt(cube(skew) + cube(other.skew));
  launch_variance += other.launch_variance;
  bound += other.bound;
}

std::optional<EstimateError> error_of(std::span<const ClusterUnit> units) {
  const auto measured = [](const ClusterUnit& u) { return u.samples >= u.launches; };
  if (std::all_of(units.begin(), units.end(), measured)) return EstimateError{};
  if (units.size() < kFewestClusters) return std::nullopt;
  double all = 0, total = 0, weights2 = 0, weights4 = 0;
  for (const ClusterUnit& u : units) {
    all += u.launches;
    total += u.launches * u.mean;
    weights2 += square(u.launches);
    weights4 += square(square(u.launches));
  }
  EstimateError error;
  Moments each, pooled;  // of the sum's error, unit by unit, and were all units alike
  double unknown2 = 0, unknown3 = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    const ClusterUnit& u = units[i];
    // Launches that were sampled are known.
    const double unknown = std::max(0.0, 1 - u.samples / u.launches);
    const double off = residual(units, i, total / all, all);
    each.add(u.launches * off, unknown);
    pooled.add(off, 1);
    unknown2 += unknown * square(u.launches);
    unknown3 += unknown * cube(u.launches);
    error.launch_variance += unknown * u.launches * square(off) / all;
  }
  const auto n = static_cast<double>(units.size());
  // Uneven weights leave fewer degrees of freedom, and so do heavy tails.
  error.freedom = std::min(square(weights2) / weights4 - 1, each.freedom());
  double variance = each.variance;
  double third = each.third;
  if (pooled.variance / n * unknown2 > variance) {
    variance = pooled.variance / n * unknown2;
    third = pooled.third / n * unknown3;
    error.freedom = std::min(n - 1, pooled.freedom());
  }
  error.deviation = std::sqrt(variance);
  error.skew = std::cbrt(third);
  error.freedom = std::max(error.freedom, 1.0);
  return error;
}

double unseen_share(size_t n) { return 1 - std::pow(0.05, 1.0 / static_cast<double>(n)); }

double t_quantile(double freedom) {
  double t = kQuantiles.front().t;
  for (const auto& q : kQuantiles)
    if (q.freedom <= freedom) t = q.t;
  return t;
}

void Uncertainty::add_share(const EstimateError& error, uint32_t error_class, uint64_t launches,
                            uint64_t all, double flop) {
  if (all == 0) return;
  const double share = static_cast<double>(launches) / static_cast<double>(all);
  add(Share{error_class, error.deviation * share, error.skew * share, error.freedom});
  // Which of the launches are these? Of a part of them not even the true mean is the mean of all.
  scatter_ += static_cast<double>(launches) * (1 - share) * error.launch_variance;
  bound_ += error.bound * share;
  flop_ += flop;
}

void Uncertainty::add(const Share& share) {
  const auto at = std::lower_bound(
      shares_.begin(), shares_.end(), share.error_class,
      [](const Share& s, uint32_t error_class) { return s.error_class < error_class; });
  if (at == shares_.end() || at->error_class != share.error_class) {
    shares_.insert(at, share);
    return;
  }
  at->deviation += share.deviation;
  at->skew += share.skew;
  at->freedom = std::min(at->freedom, share.freedom);
}

void Uncertainty::add(const Uncertainty& other) {
  for (const Share& share : other.shares_) add(share);
  scatter_ += other.scatter_;
  bound_ += other.bound_;
  flop_ += other.flop_;
  add_saturating(unknown_, other.unknown_);
  add_saturating(elsewhere_, other.elsewhere_);
}

std::optional<Interval> Uncertainty::interval(u128 flop) const {
  if (unknown_ > 0 || elsewhere_ > 0) return std::nullopt;
  double variance = scatter_;
  double third = 0, unsure = 0;
  for (const Share& s : shares_) {
    variance += square(s.deviation);
    third += cube(s.skew);
    if (s.freedom > 0) unsure += square(square(s.deviation)) / s.freedom;
  }
  const double t = t_quantile(unsure > 0 ? square(variance) / unsure : 1e9);
  // Hall's correction for a skewed sum (1 + 2t^2) / 6, on the side where it widens, and four times
  // as much: few samples of a skewed distribution show far less skew than there is.
  const double skewed = variance > 0 ? third / variance * (1 + 2 * t * t) * 4 / 6 : 0;
  const double reach = t * std::sqrt(variance) + bound_;
  const double below = std::min(flop_, reach + std::max(0.0, -skewed));  // work is not negative
  const u128 down = to_flop(std::ceil(below));
  Interval interval{down < flop ? flop - down : 0, flop};
  add_saturating(interval.high, to_flop(std::ceil(reach + std::max(0.0, skewed))));
  return interval;
}

}  // namespace flopinj::reduce
