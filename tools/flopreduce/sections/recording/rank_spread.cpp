// Of a job with many processes, how far apart they are: no table of each says it at a glance.
#include <algorithm>
#include <array>
#include <cmath>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kFewEnough = 64;  // to be read one by one
constexpr size_t kSlowest = 5;

struct Quantile {
  const char* name;
  double share;  // of the processes that have no more
};
constexpr std::array kQuantiles = {Quantile{"min", 0}, Quantile{"5 %", 0.05},
                                   Quantile{"median", 0.5}, Quantile{"95 %", 0.95},
                                   Quantile{"max", 1}};

bool timed(const TraceReport& t) { return t.work.launches > 0 && t.work.time.unknown == 0; }

// What the processes have of one figure, sorted.
struct Spreads {
  std::vector<u128> launches, flop, gpu_ns, wall_ns, own_ns, skew_ns;
};
Spreads spreads_of(const Report& report) {
  Spreads s;
  for (const TraceReport& t : report.traces) {
    s.launches.push_back(t.work.launches);
    if (t.work.flop_complete()) s.flop.push_back(t.work.flop);
    if (timed(t)) s.gpu_ns.push_back(t.work.time.ns);
    if (const auto wall = t.wall_ns()) s.wall_ns.push_back(*wall);
    if (const auto own = t.own_ns()) s.own_ns.push_back(*own);
    if (t.start_skew_ns) s.skew_ns.push_back(*t.start_skew_ns);
  }
  for (auto* values : {&s.launches, &s.flop, &s.gpu_ns, &s.wall_ns, &s.own_ns, &s.skew_ns})
    std::ranges::sort(*values);
  return s;
}

// The value of the process at that place among those that have one.
std::optional<u128> at(const std::vector<u128>& sorted, double share) {
  if (sorted.empty()) return std::nullopt;
  const double place = std::ceil(share * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<size_t>(std::max(0.0, place))];
}

struct SpreadRow {
  const char* quantile;
  std::optional<u128> launches, flop, gpu_ns, wall_ns, own_ns, skew_ns;
};
std::vector<SpreadRow> spread_rows(const Report& report) {
  std::vector<SpreadRow> rows;
  if (report.traces.size() <= kFewEnough) return rows;
  const Spreads s = spreads_of(report);
  for (const auto& [name, share] : kQuantiles)
    rows.push_back({name, at(s.launches, share), at(s.flop, share), at(s.gpu_ns, share),
                    at(s.wall_ns, share), at(s.own_ns, share), at(s.skew_ns, share)});
  return rows;
}

Columns<SpreadRow> spread_columns() {
  Columns<SpreadRow> c;
  c.text("quantile", "of the processes", &SpreadRow::quantile);
  c.count(said::kLaunches, &SpreadRow::launches);
  c.figure("flop", "FLOP", Kind::kFlop, exactly(&SpreadRow::flop),
           "of the processes whose launches are all measured")
      .main();
  c.figure("gpu_time_ns", "GPU time", Kind::kNanoseconds, exactly(&SpreadRow::gpu_ns),
           "of the processes whose launches all have a time")
      .main();
  c.figure(said::kWall, exactly(&SpreadRow::wall_ns));
  c.figure(said::kOwnCost, exactly(&SpreadRow::own_ns)).detail();
  c.figure(said::kStarted, exactly(&SpreadRow::skew_ns));
  return c;
}

const TableSource kRankSpreadTable("rank_spread", "of more than 64 processes: quantiles",
                                   spread_columns, spread_rows);

Section rank_spread_section(const Report& report) {
  const size_t processes = report.traces.size();
  if (processes <= kFewEnough) return {};
  Section s{"Across " + to_grouped(processes) + " processes",
            {},
            kRankSpreadTable.for_people(report),
            {}};
  std::vector<size_t> by_time;
  for (size_t i = 0; i < processes; ++i)
    if (timed(report.traces[i])) by_time.push_back(i);
  std::ranges::stable_sort(by_time, [&](size_t a, size_t b) {
    return report.traces[a].work.time.ns > report.traces[b].work.time.ns;
  });
  const u128 median = at(spreads_of(report).gpu_ns, 0.5).value_or(0);
  for (size_t i = 0; i < std::min(kSlowest, by_time.size()) && median > 0; ++i) {
    const u128 ns = report.traces[by_time[i]].work.time.ns;
    s.below.emplace_back("  Slowest: " + printable(report.traces[by_time[i]].name) + ", " +
                         to_human_time(ns) + " of GPU time, " + fixed(quotient(ns, median), 2) +
                         " times the median");
  }
  return s;
}

}  // namespace

const Subject kRankSpread = {rank_spread_section, {&kRankSpreadTable}};

}  // namespace flopinj::reduce
