#include "report/build/ranks.h"

#include <algorithm>
#include <map>
#include <set>

namespace flopinj::reduce {
namespace {

using PhaseTimes = std::map<std::string, RankReport::Phase>;

// GPU time of each process by phase.
std::vector<PhaseTimes> times_of(const TraceTables& tables, const Totals& totals,
                                 const WorkTable& work, const PhaseRules& rules) {
  std::vector<PhaseTimes> times(tables.traces.size());
  const auto phase_of = [&](uint32_t device, uint32_t rule) -> RankReport::Phase& {
    return times[tables.devices[device].trace][rules.rules()[rule].phase];
  };
  for (const auto& row : totals.device_rules) {
    RankReport::Phase& phase = phase_of(row.device, row.rule);
    add_saturating(phase.own_ns, row.counts.time_ns);
    add_saturating(phase.time.ns, row.counts.time_ns);
  }
  for (const auto& row : totals.untimed_rows) {
    Counts untimed;
    untimed.launches = row.launches;
    bool overflow = false;
    const Counts& all = work.result(row.signature, tables.devices[row.device].chip).counts;
    phase_of(row.device, row.rule).time.add(time_of(untimed, all, overflow));
  }
  return times;
}

uint64_t own_time(const trace::SelfOverhead& o) {
  uint64_t ns = o.launch_callback_ns();
  add_saturating(ns, o.window_ns());
  add_saturating(ns, o.startup_ns());
  return ns;
}

constexpr uint32_t kMostRanks = 1U << 20;  // a damaged header may claim any number

// Of traces of several jobs the largest.
std::optional<uint32_t> world_size_of(const TraceTables& tables) {
  uint32_t size = 0;
  for (const TraceState& trace : tables.traces)
    if (trace.has_header && trace.header.world_size() <= kMostRanks)
      size = std::max(size, trace.header.world_size());
  return size > 0 ? std::optional(size) : std::nullopt;
}

// Ranks of the job that no trace has: up to its size, or else to the highest rank seen. Several
// recordings of one rank are one rank.
std::vector<uint32_t> missing_of(const RanksReport& report) {
  std::set<uint32_t> seen;
  for (const auto& r : report.ranks)
    if (r.rank) seen.insert(static_cast<uint32_t>(*r.rank));
  std::vector<uint32_t> missing;
  if (seen.empty() || *seen.rbegin() > kMostRanks) return missing;
  const uint32_t end = std::max(*seen.rbegin(), report.world_size.value_or(0));
  for (uint32_t rank = 0; rank < end; ++rank)
    if (!seen.contains(rank)) missing.push_back(rank);
  return missing;
}

std::vector<uint32_t> repeated_of(const std::vector<RankReport>& ranks) {
  std::set<int32_t> seen, twice;
  for (const auto& r : ranks)
    if (r.rank && !seen.insert(*r.rank).second) twice.insert(*r.rank);
  return {twice.begin(), twice.end()};
}

// The slowest process of a phase against the median of those that have launches in it.
void add_straggler(const std::vector<RankReport>& ranks, const std::string& phase,
                   std::vector<StragglerReport>& to) {
  std::vector<std::pair<u128, size_t>> times;
  for (size_t i = 0; i < ranks.size(); ++i)
    for (const auto& p : ranks[i].phases)
      if (p.name == phase && p.time.ns > 0 && p.comparable()) times.emplace_back(p.time.ns, i);
  if (times.size() < 2) return;
  std::sort(times.begin(), times.end());
  const size_t half = times.size() / 2;
  const u128 median = times.size() % 2 == 1
                          ? times[half].first
                          : times[half - 1].first + (times[half].first - times[half - 1].first) / 2;
  to.push_back({phase, times.back().second, times.back().first, median});
}

}  // namespace

void build_ranks(const TraceTables& tables, const Totals& totals, const WorkTable& work,
                 const PhaseRules& rules, Report& report) {
  RanksReport& out = report.ranks;
  std::vector<PhaseTimes> times = times_of(tables, totals, work, rules);
  uint64_t first_start = UINT64_MAX;
  for (size_t i = 0; i < tables.traces.size(); ++i) {
    const TraceState& trace = tables.traces[i];
    RankReport& r = out.ranks.emplace_back();
    if (trace.has_header && trace.header.rank() >= 0) r.rank = trace.header.rank();
    if (trace.has_header && trace.header.clock_realtime_ns() != 0)
      r.start_ns = trace.header.clock_realtime_ns();
    if (r.start_ns) first_start = std::min(first_start, *r.start_ns);
    if (trace.has_overhead) {
      r.wall_ns = wall_of(trace);
      r.own_ns = own_time(trace.overhead);
    }
    for (const auto& phase : report.phases) {
      RankReport::Phase& time = times[i][phase.name];
      time.name = phase.name;
      r.gpu_time.add(time.time);
      r.phases.push_back(std::move(time));
    }
  }
  for (const auto& device : tables.devices)
    if (device.facts.clock_khz() != 0)
      out.ranks[device.trace].clock_khz =
          std::max(out.ranks[device.trace].clock_khz, device.facts.clock_khz());
  for (auto& r : out.ranks)
    if (r.start_ns) r.start_skew_ns = *r.start_ns - first_start;
  out.world_size = world_size_of(tables);
  out.missing = missing_of(out);
  out.repeated = repeated_of(out.ranks);
  for (const auto& phase : report.phases) add_straggler(out.ranks, phase.name, out.stragglers);
}

}  // namespace flopinj::reduce
