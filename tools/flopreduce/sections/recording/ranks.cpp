// The processes of a job side by side.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {

namespace {

double ratio_of(const StragglerReport& s) {
  return static_cast<double>(s.slowest_ns) / static_cast<double>(s.median_ns);
}

bool time_known(const TraceReport& t, const GpuTime& time) {
  return t.launches == 0 || time.unknown < t.launches;
}

Cell gpu_time_cell(const TraceReport& t, const GpuTime& time) {
  if (!time_known(t, time)) return Cell::none("unknown");
  Mark mark = time.estimated > 0 ? Mark::kEstimate : Mark::kNone;
  if (time.unknown > 0) mark = mark | Mark::kAtLeast;
  if (time.windowed > 0) mark = mark | Mark::kAtMost;
  return {time.ns, mark};
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
    table.rows.push_back(
        {t.name, t.launches,
         t.unmeasured == t.launches && t.launches > 0
             ? Cell::none("not measured")
             : Cell(t.flop, (t.unmeasured > 0 ? Mark::kAtLeast : Mark::kNone) |
                                (t.doubtful > t.flop / 2000 ? Mark::kAtMost : Mark::kNone)),
         gpu_time_cell(t, r.gpu_time), time(r.wall_ns), time(r.own_ns),
         r.clock_khz != 0 ? Cell(uint64_t{r.clock_khz}) : Cell(), time(r.start_skew_ns)});
  }
  Section s{"By process", {}, std::move(table), {}};
  for (const auto& straggler : report.ranks.stragglers)
    if (straggler.median_ns > 0 && ratio_of(straggler) >= kWorthSaying)
      s.below.emplace_back("  " + straggler.phase + ": slowest " +
                           report.traces[straggler.trace].name + ", " +
                           fixed(ratio_of(straggler), 2) + " times the median");
  return s;
}

void ranks_json(Json& to, const Report& report) {
  Json j;
  j["world_size"] = report.ranks.world_size ? Json(*report.ranks.world_size) : Json();
  j["missing"] = report.ranks.missing;
  j["repeated"] = report.ranks.repeated;
  j["processes"] = Json::array();
  for (size_t i = 0; i < report.ranks.ranks.size(); ++i) {
    const RankReport& r = report.ranks.ranks[i];
    const auto time = [](const std::optional<uint64_t>& ns) { return ns ? Json(*ns) : Json(); };
    Json phases = Json::object();
    for (const auto& p : r.phases)
      phases[p.name] = p.time.ns == 0 && p.time.unknown > 0 ? Json() : time_json(p.time.ns);
    j["processes"].push_back(
        {{"trace", i},
         {"rank", r.rank ? Json(*r.rank) : Json()},
         {"launches", report.traces[i].launches},
         {"gpu_time_ns",
          time_known(report.traces[i], r.gpu_time) ? time_json(r.gpu_time.ns) : Json()},
         {"gpu_time_estimated", r.gpu_time.estimated > 0},
         {"gpu_time_windowed", r.gpu_time.windowed > 0},
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
