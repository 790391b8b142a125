// Of a job with many processes, how far apart they are: no table of each says it at a glance.
#include <algorithm>
#include <array>
#include <cmath>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"
#include "support/median.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr size_t kFewEnough = 64;  // to be read one by one

constexpr double kMedian = 0.5;
struct Quantile {
  const char* name;
  double share;  // of the processes that have no more
};
constexpr std::array kQuantiles = {Quantile{"min", 0}, Quantile{"5 %", 0.05},
                                   Quantile{"median", kMedian}, Quantile{"95 %", 0.95},
                                   Quantile{"max", 1}};

bool timed(const TraceReport& t) { return t.work.launches > 0 && t.work.time.unknown == 0; }

// What a process has, where it is known.
using OfProcess = std::optional<u128> (*)(const TraceReport&);
std::optional<u128> gpu_ns(const TraceReport& t) {
  return timed(t) ? std::optional(t.work.time.ns) : std::nullopt;
}
constexpr OfProcess kOfProcess[] = {
    [](const TraceReport& t) { return std::optional<u128>(t.work.launches); },
    [](const TraceReport& t) {
      return t.work.flop_complete() ? std::optional(t.work.flop) : std::nullopt;
    },
    gpu_ns,
    [](const TraceReport& t) { return std::optional<u128>(t.wall_ns()); },
    [](const TraceReport& t) { return std::optional<u128>(t.own_ns()); },
    [](const TraceReport& t) { return std::optional<u128>(t.start_skew_ns); }};

// The value of the process at that place among those that have one; the median, of an even number
// of them, is between two.
std::optional<u128> at(const Report& report, OfProcess figure, double share) {
  std::vector<u128> values;
  for (const TraceReport& t : report.traces)
    if (const auto value = figure(t)) values.push_back(*value);
  if (values.empty()) return std::nullopt;
  if (share == kMedian) return median(values);
  const double place = std::ceil(share * static_cast<double>(values.size())) - 1;
  const auto found = values.begin() + static_cast<ptrdiff_t>(std::max(0.0, place));
  std::ranges::nth_element(values, found);
  return *found;
}

struct SpreadRow {
  const char* quantile;
  std::array<std::optional<u128>, std::size(kOfProcess)> figures;
};
std::vector<SpreadRow> spread_rows(const Report& report) {
  std::vector<SpreadRow> rows;
  if (report.traces.size() <= kFewEnough) return rows;
  for (const auto& [name, share] : kQuantiles) {
    SpreadRow& row = rows.emplace_back(SpreadRow{name, {}});
    for (size_t i = 0; i < row.figures.size(); ++i)
      row.figures[i] = at(report, kOfProcess[i], share);
  }
  return rows;
}

Columns<SpreadRow> spread_columns() {
  const auto of = [](size_t i) { return [i](const SpreadRow& row) { return row.figures[i]; }; };
  Columns<SpreadRow> c;
  c.text("quantile", "of the processes", &SpreadRow::quantile);
  c.count(said::kLaunches, of(0));
  c.figure("flop", "FLOP", Kind::kFlop, exactly(of(1)),
           "of the processes whose launches are all measured")
      .main();
  c.figure("gpu_time_ns", "GPU time", Kind::kNanoseconds, exactly(of(2)),
           "of the processes whose launches all have a time")
      .main();
  c.figure(said::kWall, exactly(of(3)));
  c.figure(said::kOwnCost, exactly(of(4))).detail();
  c.figure(said::kStarted, exactly(of(5)));
  return c;
}

const TableSource kRankSpreadTable("rank_spread", "of more than 64 processes: quantiles",
                                   spread_columns, spread_rows);

Section rank_spread_section(const Report& report) {
  constexpr size_t kShown = 5;
  const size_t processes = report.traces.size();
  if (processes <= kFewEnough) return {};
  Section s{"Across " + to_grouped(processes) + " processes",
            {},
            kRankSpreadTable.for_people(report),
            {}};
  std::vector<size_t> by_time;
  for (size_t i = 0; i < processes; ++i)
    if (timed(report.traces[i])) by_time.push_back(i);
  std::ranges::stable_sort(by_time, std::greater<>(),
                           [&](size_t i) { return report.traces[i].work.time.ns; });
  const u128 usual = at(report, gpu_ns, kMedian).value_or(0);
  for (size_t i = 0; i < std::min(kShown, by_time.size()) && usual > 0; ++i) {
    const u128 ns = report.traces[by_time[i]].work.time.ns;
    s.below.emplace_back("  Most GPU time: " + printable(report.traces[by_time[i]].name) + ", " +
                         to_human_time(ns) + ", " + fixed(quotient(ns, usual), 2) +
                         " times the median");
  }
  return s;
}

}  // namespace

const Subject kRankSpread = {{&kRankSpreadTable}, rank_spread_section};

}  // namespace flopinj::reduce
