// Of a job with many processes, how far apart they are: no table of each says it at a glance.
#include <algorithm>
#include <array>
#include <cmath>

#include "sections/parts/cells.h"
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

// The value of the process at that place among those that have one.
Cell at(const std::vector<u128>& sorted, double share) {
  if (sorted.empty()) return Cell::none();
  const double place = std::ceil(share * static_cast<double>(sorted.size())) - 1;
  return sorted[static_cast<size_t>(std::max(0.0, place))];
}

bool measured(const TraceReport& t) { return t.unmeasured == 0; }
bool timed(const TraceReport& t, const RankReport& r) {
  return t.launches > 0 && r.gpu_time.unknown == 0;
}

Section rank_spread_section(const Report& report) {
  const size_t processes = report.traces.size();
  if (processes <= kFewEnough) return {};
  std::vector<u128> launches, flop, gpu_ns, wall_ns, own_ns, skew_ns;
  std::vector<size_t> by_time;
  for (size_t i = 0; i < processes; ++i) {
    const TraceReport& t = report.traces[i];
    const RankReport& r = report.ranks.ranks[i];
    launches.push_back(t.launches);
    if (measured(t)) flop.push_back(t.flop);
    if (timed(t, r)) gpu_ns.push_back(r.gpu_time.ns);
    if (timed(t, r)) by_time.push_back(i);
    if (r.wall_ns) wall_ns.push_back(*r.wall_ns);
    if (r.own_ns) own_ns.push_back(*r.own_ns);
    if (r.start_skew_ns) skew_ns.push_back(*r.start_skew_ns);
  }
  for (auto* values : {&launches, &flop, &gpu_ns, &wall_ns, &own_ns, &skew_ns})
    std::ranges::sort(*values);
  Table table{"rank_spread",
              {{"quantile", "of the processes"},
               {"launches", "launches", Kind::kCount},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds, Worth::kMain},
               {"wall_ns", "wall", Kind::kNanoseconds},
               {"own_ns", "own cost", Kind::kNanoseconds, Worth::kDetail},
               {"start_skew_ns", "started", Kind::kNanoseconds}}};
  for (const auto& [name, share] : kQuantiles)
    table.rows.push_back({name, at(launches, share), at(flop, share), at(gpu_ns, share),
                          at(wall_ns, share), at(own_ns, share), at(skew_ns, share)});
  Section s{"Across " + to_grouped(processes) + " processes", {}, std::move(table), {}};
  std::ranges::stable_sort(by_time, [&](size_t a, size_t b) {
    return report.ranks.ranks[a].gpu_time.ns > report.ranks.ranks[b].gpu_time.ns;
  });
  const u128 median = gpu_ns.empty() ? 0 : std::get<u128>(at(gpu_ns, 0.5).value);
  for (size_t i = 0; i < std::min(kSlowest, by_time.size()) && median > 0; ++i) {
    const u128 ns = report.ranks.ranks[by_time[i]].gpu_time.ns;
    s.below.emplace_back("  Slowest: " + printable(report.traces[by_time[i]].name) + ", " +
                         to_human_time(ns) + " of GPU time, " + fixed(quotient(ns, median), 2) +
                         " times the median");
  }
  return s;
}

}  // namespace

const Subject kRankSpread = {rank_spread_section, nullptr};

}  // namespace flopinj::reduce
