#include "report/ranks.h"

#include <algorithm>
#include <map>
#include <set>

namespace flopinj::reduce {
namespace {

// GPU time of a process's launches in one phase: those with a time outside windows, and their mean
// for the others of the same phase.
u128 time_of(const Counts& counts) {
  bool overflow = false;
  if (counts.timed > 0)
    return mul_div_round(counts.time_ns, std::max(counts.launches, counts.timed), counts.timed,
                         overflow);
  return counts.windowed_time_ns;
}

uint64_t own_time(const trace::SelfOverhead& o) {
  uint64_t ns = o.launch_callback_ns();
  add_saturating(ns, o.window_ns());
  add_saturating(ns, o.startup_ns());
  return ns;
}

// Ranks from 0 to the highest seen that no trace has. Several recordings of one rank are one rank.
std::vector<uint32_t> missing_of(const std::vector<RankReport>& ranks) {
  constexpr int32_t kMost = 1 << 20;  // a damaged header may claim any rank
  std::set<int32_t> seen;
  for (const auto& r : ranks)
    if (r.rank) seen.insert(*r.rank);
  std::vector<uint32_t> missing;
  if (seen.empty() || *seen.rbegin() > kMost) return missing;
  for (int32_t rank = 0; rank < *seen.rbegin(); ++rank)
    if (!seen.contains(rank)) missing.push_back(static_cast<uint32_t>(rank));
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
    for (const auto& [name, ns] : ranks[i].phases)
      if (name == phase && ns > 0) times.emplace_back(ns, i);
  if (times.size() < 2) return;
  std::sort(times.begin(), times.end());
  const size_t half = times.size() / 2;
  const u128 median = times.size() % 2 == 1
                          ? times[half].first
                          : times[half - 1].first + (times[half].first - times[half - 1].first) / 2;
  to.push_back({phase, times.back().second, times.back().first, median});
}

}  // namespace

void build_ranks(const Model& model, const Totals& totals, const PhaseRules& rules,
                 Report& report) {
  RanksReport& out = report.ranks;
  std::vector<std::map<std::string, Counts>> phases(model.traces.size());
  for (const auto& row : totals.device_rules)
    phases[model.devices[row.device].trace][rules.rules()[row.rule].phase].add(row.counts);
  uint64_t first_start = UINT64_MAX;
  for (size_t i = 0; i < model.traces.size(); ++i) {
    const TraceState& trace = model.traces[i];
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
      const auto found = phases[i].find(phase.name);
      const u128 ns = found == phases[i].end() ? 0 : time_of(found->second);
      r.estimated =
          r.estimated || (found != phases[i].end() && found->second.timed < found->second.launches);
      r.phases.emplace_back(phase.name, ns);
      add_saturating(r.gpu_time_ns, ns);
    }
  }
  for (const auto& device : model.devices)
    if (device.facts.clock_khz() != 0)
      out.ranks[device.trace].clock_khz =
          std::max(out.ranks[device.trace].clock_khz, device.facts.clock_khz());
  for (auto& r : out.ranks)
    if (r.start_ns) r.start_skew_ns = *r.start_ns - first_start;
  out.missing = missing_of(out.ranks);
  out.repeated = repeated_of(out.ranks);
  for (const auto& phase : report.phases) add_straggler(out.ranks, phase.name, out.stragglers);
}

}  // namespace flopinj::reduce
