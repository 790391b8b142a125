// The processes of a job side by side.
#include <algorithm>

#include "sections/cells.h"
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {

std::string process_name(const Report& report, size_t i) {
  const auto& header = report.traces[i].header;
  const auto& rank = report.ranks.ranks[i].rank;
  const std::string process = report.traces[i].has_header
                                  ? header.hostname() + " pid " + std::to_string(header.pid())
                                  : "header lost";
  return rank ? "rank " + std::to_string(*rank) + ", " + process : process;
}

namespace {

double ratio_of(const StragglerReport& s) {
  return static_cast<double>(s.slowest_ns) / static_cast<double>(s.median_ns);
}

std::string ranks_text(const std::vector<uint32_t>& ranks) {
  constexpr size_t kShown = 16;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, ranks.size()); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  if (ranks.size() > kShown) text += " and " + std::to_string(ranks.size() - kShown) + " more";
  return text;
}

// A process this much above the median of a phase is pointed out to people.
constexpr double kWorthSaying = 1.05;

Section ranks_section(const Report& report) {
  if (report.traces.size() < 2 && report.ranks.missing.empty()) return {};
  Table table{"ranks",
              {{"process", "process"},
               {"launches", "launches", Kind::kCount},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds, Worth::kMain},
               {"wall_ns", "wall", Kind::kNanoseconds},
               {"own_ns", "own cost", Kind::kNanoseconds, Worth::kDetail},
               {"clock_khz", "kHz", Kind::kCount, Worth::kDetail},
               {"start_skew_ns", "started", Kind::kNanoseconds}}};
  table.long_list = true;
  for (size_t i = 0; i < report.traces.size(); ++i) {
    const TraceReport& t = report.traces[i];
    const RankReport& r = report.ranks.ranks[i];
    const auto time = [](const std::optional<uint64_t>& ns) { return ns ? Cell(*ns) : Cell(); };
    table.rows.push_back({process_name(report, i), t.launches,
                          t.unmeasured == t.launches && t.launches > 0
                              ? Cell::none("not measured")
                              : Cell(t.flop, t.unmeasured > 0 ? Mark::kAtLeast : Mark::kNone),
                          Cell(r.gpu_time_ns, r.estimated ? Mark::kEstimate : Mark::kNone),
                          time(r.wall_ns), time(r.own_ns),
                          r.clock_khz != 0 ? Cell(uint64_t{r.clock_khz}) : Cell(),
                          time(r.start_skew_ns)});
  }
  Section s{"By process", {}, std::move(table), {}};
  if (!report.ranks.missing.empty())
    s.below.emplace_back("  No trace of rank " + ranks_text(report.ranks.missing) + ".",
                         Tone::kWarn);
  if (!report.ranks.repeated.empty())
    s.below.emplace_back("  Several recordings of rank " + ranks_text(report.ranks.repeated) +
                             ": traces of several runs?",
                         Tone::kWarn);
  for (const auto& straggler : report.ranks.stragglers)
    if (straggler.median_ns > 0 && ratio_of(straggler) >= kWorthSaying)
      s.below.emplace_back("  " + straggler.phase + ": slowest " +
                           process_name(report, straggler.trace) + ", " +
                           fixed(ratio_of(straggler), 2) + " times the median");
  return s;
}

void ranks_json(Json& to, const Report& report) {
  Json j;
  j["missing"] = report.ranks.missing;
  j["repeated"] = report.ranks.repeated;
  j["processes"] = Json::array();
  for (size_t i = 0; i < report.ranks.ranks.size(); ++i) {
    const RankReport& r = report.ranks.ranks[i];
    const auto time = [](const std::optional<uint64_t>& ns) { return ns ? Json(*ns) : Json(); };
    Json phases = Json::object();
    for (const auto& [name, ns] : r.phases) phases[name] = time_json(ns);
    j["processes"].push_back({{"trace", i},
                              {"rank", r.rank ? Json(*r.rank) : Json()},
                              {"launches", report.traces[i].launches},
                              {"gpu_time_ns", time_json(r.gpu_time_ns)},
                              {"gpu_time_estimated", r.estimated},
                              {"phase_gpu_time_ns", std::move(phases)},
                              {"wall_ns", time(r.wall_ns)},
                              {"own_ns", time(r.own_ns)},
                              {"clock_khz", r.clock_khz},
                              {"start_skew_ns", time(r.start_skew_ns)}});
  }
  j["stragglers"] = list_json(report.ranks.stragglers, [](const StragglerReport& s) {
    return Json{{"phase", s.phase},
                {"trace", s.trace},
                {"slowest_ns", time_json(s.slowest_ns)},
                {"median_ns", time_json(s.median_ns)},
                {"slowest_to_median", s.median_ns > 0 ? Json(ratio_of(s)) : Json()}};
  });
  to["ranks"] = std::move(j);
}

}  // namespace

const Subject kRanks = {ranks_section, ranks_json};

}  // namespace flopinj::reduce
