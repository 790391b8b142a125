// The processes of a job side by side.
#include <algorithm>
#include <numeric>

#include "sections/parts/cells.h"
#include "sections/parts/records.h"
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

void process_fields(Fields& f, const TraceReport& t, const RankReport& r) {
  f("rank", r.rank ? std::optional<u128>(*r.rank) : std::nullopt);
  f("launches", t.launches);
  f.ns("gpu_time_ns", gpu_time_cell(t, r.gpu_time),
       "sum of kernels, as total.gpu_time_ns: launches without a time outside of windows have the "
       "mean of their signature's other launches, of all processes; null where not one time is "
       "known");
  f("gpu_time_estimated", r.gpu_time.estimated > 0, "some launches have such a mean");
  f("gpu_time_windowed", r.gpu_time.windowed > 0,
    "some launches have only times taken while counters were read: an upper bound");
  std::vector<std::pair<std::string, std::optional<u128>>> phases;
  for (const auto& p : r.phases)
    phases.emplace_back(p.name, when(p.time.ns > 0 || p.time.unknown == 0, p.time.ns));
  f.ns_by_name("phase_gpu_time_ns", phases, "likewise, by phase");
  f("wall_ns", r.wall_ns);
  f("own_ns", r.own_ns, "the profiler's cost on the program's threads");
  f("clock_khz", when(r.clock_khz > 0, r.clock_khz), "highest clock of its devices");
  f("start_skew_ns", r.start_skew_ns,
    "start of the recording after that of the first process, by the hosts' clocks");
}

void straggler_fields(Fields& f, const StragglerReport& s) {
  f("phase", s.phase);
  f("trace", s.trace, "index into traces");
  f("slowest_ns", s.slowest_ns);
  f("median_ns", s.median_ns);
  f("slowest_to_median", s.median_ns > 0 ? std::optional(ratio_of(s)) : std::nullopt);
}

void ranks_fields(Fields& f, const Report& report) {
  const RanksReport& all = report.ranks;
  f.list("runs", report.runs,
         "which traces belong together, in the order in which the runs began; where there are "
         "several, every figure is of all of them together",
         [](Fields& run, const RunReport& r) {
           run("job_id", r.job_id.empty() ? std::nullopt : std::optional(r.job_id),
               "null where nobody named the job");
           run("begin_ns", r.begin_ns ? std::optional<u128>(*r.begin_ns) : std::nullopt,
               "by the host's clock");
           run("traces", std::vector<uint64_t>(r.traces.begin(), r.traces.end()),
               "indices into traces");
         });
  f.object("ranks", "the processes of a job side by side", [&](Fields& ranks) {
    ranks("world_size", all.world_size,
          "ranks of the job, as its launcher said; null where none did");
    ranks("missing", all.missing,
          "ranks of the job that no trace has; without world_size those below the highest seen");
    ranks("repeated", all.repeated, "ranks that several recordings have");
    std::vector<size_t> indices(all.ranks.size());
    std::iota(indices.begin(), indices.end(), size_t{0});
    ranks.list("processes", indices, "", [&](Fields& process, size_t i) {
      process("trace", i, "index into traces");
      process_fields(process, report.traces[i], all.ranks[i]);
    });
    ranks.list("stragglers", all.stragglers,
               "of each phase that several processes have times of, the one with most GPU time. "
               "Only processes take part that timed at least half of their GPU time themselves, "
               "outside of windows",
               straggler_fields);
  });
}

}  // namespace

const Subject kRanks = {ranks_section, ranks_fields};

}  // namespace flopinj::reduce
