// Intervals of extrapolated sums. The truth is the sum of the generated sequence itself.
#include "tables/estimate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "catch.h"
#include "reduce_bytes.h"
#include "sequences.h"
#include "support/effort.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

struct Estimated {
  double flop = 0;
  std::optional<Interval> interval;
};

Estimated estimate(const std::vector<double>& work, const std::vector<Window>& windows) {
  ClusterList list;
  for (uint32_t w = 0; w < windows.size(); ++w)
    for (size_t i = windows[w].first; i < windows[w].first + windows[w].count; ++i)
      list.add(w + 1, i, {&work[i], 1});
  const auto cells = list.cells(work.size());
  REQUIRE(std::accumulate(cells.begin(), cells.end(), uint64_t{0}) == work.size());
  std::vector<ClusterUnit> units;
  Estimated out;
  for (size_t i = 0; i < list.size(); ++i) {
    const double mean = static_cast<double>(list.sum(i, 0)) / static_cast<double>(list[i].samples);
    units.push_back({static_cast<double>(cells[i]), static_cast<double>(list[i].samples), mean});
    out.flop += units.back().launches * mean;
  }
  if (const auto error = error_of(units)) {
    Uncertainty uncertainty;
    uncertainty.add_share(*error, 0, work.size(), work.size(), out.flop);
    out.interval = uncertainty.interval(static_cast<u128>(out.flop));
  }
  return out;
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

bool covers(const std::optional<Interval>& interval, double truth) {
  return interval && static_cast<double>(interval->low) <= truth &&
         truth <= static_cast<double>(interval->high);
}

// The 97.5 % point of Student's t by numerical integration of its density, whose substitution
// t = sqrt(f) tan(a) makes it cos(a)^(f - 1).
double upper_tail(double freedom, double t) {
  const auto area = [&](double from, double to) {
    constexpr int kSteps = 20'000;
    double sum = 0;
    for (int i = 0; i < kSteps; ++i)
      sum += std::pow(std::cos(from + (to - from) * (i + 0.5) / kSteps), freedom - 1);
    return sum * (to - from) / kSteps;
  };
  constexpr double kRight = 1.5707963267948966;
  return area(std::atan(t / std::sqrt(freedom)), kRight) / (2 * area(0, kRight));
}

}  // namespace

TEST_CASE(
    "the interval covers the true sum in at least 95 of 100 runs, whatever the work is like") {
  constexpr int kRuns = effort(100, 4);
  constexpr int kCovered = effort(95, 2);
  struct Design {
    const char* name;
    size_t launches;
    std::vector<Window> (*windows)(const std::vector<double>& work, Random&);
  };
  for (const Design design :
       {Design{"gaps grow without end", 3000,
               [](const auto&work, Random&r) { return windows_of(work.size(), 0.05, 1e9, r); }},
        Design{"gaps grow to a largest", 3000,
               [](const auto&work, Random&r) { return windows_of(work.size(), 0.1, 60, r); }},
        Design{"one in each stretch", 30'000, stretches_of}})
    for (const auto& shape : shapes_of_work()) {
      int covered = 0;
      double bias = 0;
      for (int seed = 1; seed <= kRuns; ++seed) {
        Random random(static_cast<uint64_t>(seed));
        const auto work = work_of(shape, design.launches, random);
        const auto windows = design.windows(work, random);
        const Estimated e = estimate(work, windows);
        covered += covers(e.interval, sum_of(work)) ? 1 : 0;
        bias += (e.flop / sum_of(work) - 1) / kRuns;
      }
      INFO(design.name << ", " << shape << ": " << covered << " of " << kRuns << ", bias " << bias);
      CHECK(covered >= kCovered);
      CHECK(std::abs(bias) < 0.08 * std::sqrt(100.0 / kRuns));
    }
}

TEST_CASE(
    "work that differs in few launches: the interval covers it, or so few are said to be unseen") {
  struct Rare {
    double share, factor;
    size_t launches;
  };
  for (const Rare& rare :
       {Rare{0.2, 2, 2000}, Rare{0.1, 2, 4000}, Rare{0.1, 100, 4000}, Rare{0.05, 2, 8000},
        Rare{0.05, 100, 8000}, Rare{0.01, 100, 8000}, Rare{0.005, 100, 8000}}) {
    int told = 0, agree = 0;
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Random random(seed);
      std::vector<double> work(rare.launches, 100);
      for (double& launch : work)
        if (random.uniform() < rare.share) launch *= rare.factor;
      const auto windows = stretches_of(work, random);
      const auto differing = static_cast<double>(work.size()) -
                             static_cast<double>(std::count(work.begin(), work.end(), work[0]));
      bool equal = true;
      for (const Window& w : windows)
        for (size_t i = w.first; i < w.first + w.count; ++i) equal = equal && work[i] == work[0];
      if (equal) {
        ++agree;
        told += differing <= unseen_share(windows.size()) * static_cast<double>(work.size());
      } else {
        told += covers(estimate(work, windows).interval, sum_of(work));
      }
    }
    INFO(100 * rare.share << " % do " << rare.factor << " times the work: " << told
                          << " of 100 told, samples agree in " << agree);
    CHECK(told >= 95);
  }
}

TEST_CASE("more windows make a narrower interval") {
  const auto reach = [](double most) {
    Random random(7);
    const auto work = work_of("uniform", 20'000, random);
    const Estimated e = estimate(work, windows_of(work.size(), 1, most, random));
    return static_cast<double>(e.interval->high - e.interval->low) / sum_of(work);
  };
  CHECK(reach(2000) > 1.5 * reach(300));
  CHECK(reach(300) < 0.3);
}

TEST_CASE("where every launch was measured, the sum is exact") {
  Random random(3);
  const auto work = work_of("lognormal", 200, random);
  std::vector<Window> windows;
  for (size_t i = 0; i < work.size(); i += 10) windows.push_back({i, 10});
  const Estimated e = estimate(work, windows);
  CHECK(e.flop == sum_of(work));
  CHECK(e.interval->low == e.interval->high);
}

TEST_CASE("too few windows give no interval") {
  Random random(3);
  const auto work = work_of("uniform", 1000, random);
  CHECK_FALSE(estimate(work, {{0, 3}}).interval);
  CHECK_FALSE(estimate(work, {{0, 3}, {500, 1}}).interval);
  CHECK(estimate(work, {{0, 3}, {300, 1}, {700, 1}}).interval);
}

TEST_CASE("the list of clusters stays bounded and speaks for all launches") {
  ClusterList list;
  for (uint32_t w = 0; w < 10'000; ++w) {
    const double value = w % 7;
    list.add(w + 1, 10ULL * w, {&value, 1});
  }
  CHECK(list.size() == ClusterList::kMax);
  CHECK(list.samples() == 10'000);
  u128 sum = 0;
  for (size_t i = 0; i < list.size(); ++i) sum += list.sum(i, 0);
  CHECK(sum == 1428 * 21 + 0 + 1 + 2 + 3);
  const auto cells = list.cells(100'000);
  CHECK(std::accumulate(cells.begin(), cells.end(), uint64_t{0}) == 100'000);
}

TEST_CASE("quantiles of Student's t are never too small") {
  for (const double freedom : {1.0, 2.0, 3.0, 7.0, 12.0, 20.0, 30.0, 50.0, 100.0})
    CHECK(upper_tail(freedom, t_quantile(freedom)) == Approx(0.025).epsilon(0.002));
  for (const double freedom : {1.5, 4.9, 24.0, 39.0, 1e6})
    CHECK(upper_tail(freedom, t_quantile(freedom)) <= 0.025);
}

TEST_CASE("errors of shares of one signature add up, those of several signatures cancel") {
  EstimateError error;
  error.deviation = 100;
  error.freedom = 1e9;
  const auto reach = [](const Uncertainty& u) {
    return static_cast<double>(u.interval(1'000'000)->high - 1'000'000);
  };
  Uncertainty whole, halves, two;
  whole.add_share(error, 0, 10, 10, 1e6);
  for (int i = 0; i < 2; ++i) {
    Uncertainty half;
    half.add_share(error, 0, 5, 10, 5e5);
    halves.add(half);
    Uncertainty one;
    one.add_share(error, static_cast<uint32_t>(i), 10, 10, 5e5);
    two.add(one);
  }
  CHECK(reach(whole) == Approx(198.4).margin(1));
  CHECK(reach(halves) == reach(whole));
  CHECK(reach(two) == Approx(198.4 * std::sqrt(2.0)).margin(1));
}

// Through the whole reducer: samples with ordinals, an exact kernel beside a varying one.
namespace {

std::string traced(const std::vector<double>& work, const std::vector<Window>& windows,
                   flopinj::trace::Interned::ParameterClass parameters =
                       flopinj::trace::Interned::PARAMETERS_EXACT) {
  TraceBuilder t = started(1);
  t.kernel(1, "varying", 11, parameters);
  t.kernel(2, "fixed", 12);
  t.path(1, 0, "forward");
  t.path(2, 0, "backward");
  for (uint32_t w = 0; w < windows.size(); ++w)
    for (size_t i = windows[w].first; i < windows[w].first + windows[w].count; ++i)
      t.placed_sample(1, 1, w + 1, i, sass(work[i], 0, 0));
  t.samples(1, 2, {sass(7, 0, 0)});
  t.tally({{1, work.size() / 2, 0, 0, 1},
           {1, work.size() - work.size() / 2, 0, 0, 2},
           {2, 1000, 0, 0, 1}});
  t.ledger(work.size() + 1000, work.size() + 1000, 0);
  t.end();
  return t.bytes();
}

}  // namespace

TEST_CASE("the total carries the interval of its varying part; the exact part stays exact") {
  Random random(11);
  const auto work = work_of("uniform", 4000, random);
  const auto windows = windows_of(work.size(), 0.1, 60, random);
  const Report r = reduce_bytes({traced(work, windows)});
  const Estimated alone = estimate(work, windows);
  CHECK(static_cast<double>(r.total.flop) == Approx(alone.flop + 7000).margin(100));
  REQUIRE(r.total.interval());
  CHECK(covers(r.total.interval(), sum_of(work) + 7000));
  const auto reach = [](const Interval& interval) {
    return static_cast<double>(interval.high - interval.low);
  };
  CHECK(reach(*r.total.interval()) == Approx(reach(*alone.interval)).epsilon(0.05));
  for (const WorkGroup& k : group(r, {by::kKernel})) {
    const std::string& name = r.kernels[k.ids[0]].name;
    CHECK(k.work.interval().has_value() == (name == "varying"));
    if (name == "fixed") CHECK(k.work.flop == 7000);
  }
  u128 sum = 0;
  for (const auto& p : r.phases) {
    sum += p.work.flop;
    REQUIRE(p.work.interval());
    CHECK(covers(p.work.interval(), sum_of(work) / 2 + (p.name == "forward" ? 7000 : 0)));
  }
  CHECK(sum == r.total.flop);
  const auto& s = r.signatures[r.signatures[0].varying ? 0 : 1];
  CHECK(s.windows == windows.size());
  CHECK(*s.flop_mean == Approx(550).epsilon(0.1));
  CHECK(*s.flop_spread == Approx(260).epsilon(0.25));  // 900 / sqrt(12)
}

TEST_CASE("a class of merged parameters is an estimate though its samples agree") {
  const std::vector<double> work(1000, 50);
  std::vector<Window> windows;
  for (size_t i = 0; i < 1000; i += 100) windows.push_back({i, 1});
  const Report exact = reduce_bytes({traced(work, windows)});
  CHECK(exact.total.varying == 0);
  CHECK(exact.total.flop == 57'000);
  const Report merged =
      reduce_bytes({traced(work, windows, flopinj::trace::Interned::PARAMETERS_MERGED)});
  CHECK(merged.total.flop == 57'000);
  CHECK(merged.total.varying == 1000);
  // With a share of 26 % of other launches, ten equal samples had a chance of 5 %: 0.74^10.
  const double unseen = 990 * 50 * (1 - std::pow(0.05, 0.1));
  CHECK(static_cast<double>(merged.total.interval()->high) == Approx(57'000 + unseen).margin(2));
  CHECK(static_cast<double>(merged.total.interval()->low) == Approx(57'000 - unseen).margin(2));
}

TEST_CASE("too few windows of one kernel leave the total without an interval, and say why") {
  Random random(1);
  const auto work = work_of("uniform", 500, random);
  const Report r = reduce_bytes({traced(work, {{0, 3}})});
  CHECK(r.total.varying == 500);
  CHECK_FALSE(r.total.interval());
  CHECK(r.total.uncertainty.unknown_launches() == 500);
  CHECK(text_of(r).find("too few samples") != std::string::npos);
}

TEST_CASE("where every launch was measured the reducer says the very sum, wherever samples lie") {
  Random random(3);
  const auto work = work_of("lognormal", 200, random);
  std::vector<Window> windows;
  for (size_t i = 0; i < work.size(); i += 10) windows.push_back({i, 10});
  const Report whole = reduce_bytes({traced(work, windows)});
  CHECK(whole.total.varying == 0);
  CHECK(whole.total.agreeing == 1000);  // the fixed kernel beside it
  CHECK(static_cast<double>(whole.total.flop) == sum_of(work) + 7000);
  CHECK_FALSE(whole.total.interval());
  // Which of its launches each half got is not known.
  for (const auto& p : whole.phases) {
    CHECK(p.work.varying == 100);
    CHECK(covers(p.work.interval(), static_cast<double>(p.work.flop)));
    CHECK(p.work.interval()->low < p.work.interval()->high);
  }
  // The same where ordinals come late.
  TraceBuilder t = started(1);
  t.kernel(1, "varying", 11);
  for (uint32_t i = 0; i < work.size(); ++i)
    t.placed_sample(1, 1, i / 10 + 1, 200 + i, sass(work[i], 0, 0));
  t.tally({{1, work.size()}});
  t.ledger(work.size(), work.size(), 0);
  t.end();
  const Report late = reduce_bytes({t.bytes()});
  CHECK(late.total.flop_exact());
  CHECK(static_cast<double>(late.total.flop) == sum_of(work));
  CHECK(text_of(late).find("exactly") != std::string::npos);
}

TEST_CASE("samples that agree are not all launches: how many they are is said") {
  TraceBuilder t = started(1);
  t.kernel(1, "often", 11);
  t.kernel(2, "measured", 12);
  for (uint32_t w = 0; w < 10; ++w) t.placed_sample(1, 1, w + 1, 10 * w, sass(5, 0, 0));
  t.placed_sample(1, 2, 11, 0, sass(7, 0, 0));
  t.tally({{1, 1000}, {2, 1}});
  t.ledger(1001, 1001, 0);
  t.end();
  const Report r = reduce_bytes({t.bytes()});
  CHECK(r.total.flop == 5007);
  CHECK_FALSE(r.total.flop_exact());
  CHECK(r.total.agreeing == 1000);
  CHECK(r.total.fewest_windows == 10);
  CHECK_FALSE(r.total.interval());
  const std::string text = text_of(r);
  CHECK(text.find("exactly") == std::string::npos);
  // 0.74113^10 = 0.05.
  CHECK(text.find("1,000 launches are of kernels whose samples all agree, and count with these: "
                  "that the others do the same is assumed. The kernel with fewest was read 10 "
                  "times: up to 25.9 % of its launches could differ unseen (95 % confidence).") !=
        std::string::npos);
  CHECK(text.find("extrapolated from") == std::string::npos);  // some of them were measured
}

TEST_CASE("where all clusters are taken to be alike, one degree of freedom is the mean's") {
  // 11, 9, 11, 9 around a mean of 10. How far each is off, as the larger of two: the outer ones,
  // with a third of the launches each, 1 / (1 - 1/3) off the mean; the inner ones 2 sqrt(2/3) off
  // their two neighbours. The outer ones are off least and weigh most, so the pooled variance is
  // the larger one. Its terms are nearly equal, so that their scatter leaves nearly 3 x 4 - 1
  // degrees of freedom; the sample of four leaves 4 - 1.
  const std::vector<ClusterUnit> units{{200, 1, 11}, {100, 1, 9}, {100, 1, 11}, {200, 1, 9}};
  const auto error = error_of(units);
  REQUIRE(error);
  CHECK(error->freedom == Approx(3));
  const double outer = 1.5 * 1.5, inner = 4 * (2.0 / 3);  // squares
  const double unknown_outer = 1 - 1.0 / 200, unknown_inner = 1 - 1.0 / 100;
  const double weight = 2 * (unknown_outer * 200 * 200 + unknown_inner * 100 * 100);
  CHECK(error->deviation == Approx(std::sqrt((2 * outer + 2 * inner) / 4 * weight)));
}

TEST_CASE("a part of launches that differ errs by which of them it got") {
  // A sum of 25 of 100 launches drawn without replacement: variance 25 (1 - 25 / 100) s^2. The
  // table of t ends with 1.984.
  EstimateError error;
  error.launch_variance = 4;
  error.freedom = 1e9;
  const auto reach = [&](uint64_t launches) {
    Uncertainty uncertainty;
    uncertainty.add_share(error, 0, launches, 100, 1e6);
    const auto interval = uncertainty.interval(1'000'000);
    REQUIRE(interval);
    CHECK(interval->high - 1'000'000 == 1'000'000 - interval->low);
    return static_cast<double>(interval->high - 1'000'000);
  };
  CHECK(reach(25) == std::ceil(1.984 * std::sqrt(25 * 0.75 * 4)));
  CHECK(reach(75) == reach(25));
  CHECK(reach(100) == 0);
}

TEST_CASE("shares of one class err together, with the fewer degrees of freedom") {
  const auto reach = [](double first, double second) {
    Uncertainty uncertainty;
    uncertainty.add_share({3, 0, first, 0, 0}, 5, 10, 10, 1e6);
    uncertainty.add_share({4, 0, second, 0, 0}, 5, 10, 10, 1e6);
    const auto interval = uncertainty.interval(2'000'000);
    REQUIRE(interval);
    return static_cast<double>(interval->high - 2'000'000);
  };
  CHECK(reach(2, 20) == std::ceil(4.303 * (3 + 4)));
  CHECK(reach(20, 2) == std::ceil(4.303 * (3 + 4)));
}

TEST_CASE("where a varying kernel ran and nothing was sampled, there is no interval") {
  Random random(5);
  const auto work = work_of("uniform", 1000, random);
  const auto windows = windows_of(work.size(), 0.1, 60, random);
  const std::string sampled = traced(work, windows);
  REQUIRE(reduce_bytes({sampled}).total.interval());
  // The same kernels in a process that reads no counters.
  TraceBuilder other = started(2);
  other.kernel(1, "varying", 11);
  other.kernel(2, "fixed", 12);
  other.tally({{1, 500}, {2, 500}});
  other.ledger(1000, 1000, 0);
  other.end();
  const Report ranks = reduce_bytes({sampled, other.bytes()});
  CHECK(ranks.total.varying == 1500);
  CHECK_FALSE(ranks.total.interval());
  CHECK(ranks.total.uncertainty.elsewhere_launches() == 1500);
  CHECK(ranks.total.uncertainty.unknown_launches() == 0);
  CHECK(
      text_of(ranks).find("1,500 of them are of kernels that also ran where nothing was sampled") !=
      std::string::npos);
  CHECK(json_of(ranks)["figures"]["not_sampled_everywhere_launches"] == 1500);
  // The mean serves all the same.
  const double mean = static_cast<double>(reduce_bytes({sampled}).total.flop - 7000) / 1000;
  CHECK(static_cast<double>(ranks.total.flop) == Approx(1500 * mean + 1500 * 7).margin(2));
  // In graphs.
  TraceBuilder t = started(3);
  t.kernel(1, "varying", 11);
  for (uint32_t w = 0; w < windows.size(); ++w)
    for (size_t i = windows[w].first; i < windows[w].first + windows[w].count; ++i)
      t.placed_sample(1, 1, w + 1, i, sass(work[i], 0, 0));
  std::vector<TraceBuilder::Launch> launches(work.size() + 100);
  for (size_t i = 0; i < launches.size(); ++i) {
    launches[i].signature = 1;
    launches[i].graph = i >= work.size();
  }
  t.launches(launches);
  t.ledger(launches.size(), launches.size(), 0);
  t.end();
  const Report graphs = reduce_bytes({t.bytes()});
  CHECK_FALSE(graphs.total.interval());
  CHECK(graphs.total.uncertainty.elsewhere_launches() == 1100);
  CHECK(static_cast<double>(graphs.total.flop) == Approx(1100 * mean).margin(2));
}
