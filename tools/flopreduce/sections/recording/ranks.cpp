// The processes of a job side by side.
#include <algorithm>
#include <cmath>
#include <functional>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {

namespace {

Columns<TraceReport> rank_columns() {
  Columns<TraceReport> c;
  c.text(said::kProcess, &TraceReport::name);
  c.count(said::kLaunches, through(&TraceReport::work, &Work::launches));
  c.figure("flop", "FLOP", Kind::kFlop, through(&TraceReport::work, flop_of),
           "FLOP executed by this process")
      .main();
  c.figure(
       "gpu_time_ns", "GPU time", Kind::kNanoseconds,
       [](const TraceReport& t) { return gpu_time_of(t.work.time, t.work.launches); },
       "sum of kernels: launches without a time outside of windows have the mean of their "
       "signature's other launches, of all processes; null where not one time is known")
      .main();
  c.figure(said::kWall, exactly(&TraceReport::wall_ns));
  c.figure(said::kOwnCost, exactly(&TraceReport::own_ns)).detail();
  c.count("clock_khz", "kHz", unless_zero(&TraceReport::clock_khz),
          "highest clock of the process's GPUs")
      .detail();
  c.figure(said::kStarted, exactly(&TraceReport::start_skew_ns));
  c.for_programs();
  c.count(said::kProcessNumber, number_of);
  c.count(said::kRank, &TraceReport::rank);
  return c;
}

const TableSource kRankTable =
    TableSource("ranks", "processes of a job side by side", rank_columns, &Report::traces)
        .long_list()
        .titled("By process");

// People see those that are this much above the others.
std::vector<Line> slow_ranks(const Report& report) {
  constexpr double kWorthSaying = 1.05;
  constexpr size_t kShown = 5;
  std::vector<const RankSlowdown*> slow;
  for (const RankSlowdown& one : report.ranks.slowdowns)
    if (one.slowdown().value_or(0) >= kWorthSaying) slow.push_back(&one);
  std::ranges::stable_sort(slow, std::greater<>(),
                           [](const RankSlowdown* one) { return *one->slowdown(); });
  std::vector<Line> lines;
  for (size_t i = 0; i < std::min(kShown, slow.size()); ++i) {
    const TraceReport& trace = report.traces[slow[i]->trace];
    std::string words = "  Slow: " + printable(trace.name);
    if (trace.devices > 1 && slow[i]->device) words += " GPU " + std::to_string(*slow[i]->device);
    lines.emplace_back(words + ", kernels take " + fixed(*slow[i]->slowdown(), 2) +
                       " times as long as the same ones on other GPUs of the job");
  }
  if (slow.size() > kShown)
    lines.emplace_back("  " + to_grouped(slow.size() - kShown) + " more GPUs are slow.");
  return lines;
}

Section ranks_section(const Report& report) {
  if (report.traces.size() < 2 && report.ranks.missing.empty()) return {};
  Section s = kRankTable.section(report);
  s.below = slow_ranks(report);
  return s;
}

using RankPhase = Of<TraceReport, TraceReport::Phase>;
Columns<RankPhase> rank_phase_columns() {
  Columns<RankPhase> c;
  c.count(said::kProcessNumber,
          [](const RankPhase& row, const Report& report) { return number_of(row.of, report); });
  c.text(said::kProcess, of_outer(&TraceReport::name));
  c.text("phase", "phase", of_one(&TraceReport::Phase::name));
  c.figure("gpu_time_ns", "GPU time", Kind::kNanoseconds, [](const RankPhase& row) {
    const GpuTime& time = row.one.time;  // without a number of launches
    return time.ns == 0 && time.unknown > 0 ? Figure() : gpu_time_of(time, 0);
  });
  return c;
}

Columns<RankSlowdown> slowdown_columns() {
  const auto known = [](auto get) {
    return [get](const RankSlowdown& row) {
      return row.usual_ns > 0 ? std::optional(get(row)) : std::nullopt;
    };
  };
  Columns<RankSlowdown> c;
  c.text(said::kSession, of_trace(session_of));
  c.count(said::kRank, of_trace(&TraceReport::rank));
  c.text(said::kHost, of_trace([](const TraceReport& t) { return t.header.hostname(); }));
  c.count("device", "device", &RankSlowdown::device, "CUDA's number of it in the process");
  c.count("timed_ns", "timed GPU time", known([](const RankSlowdown& row) { return row.timed_ns; }),
          "of launches that were timed while no counters were read, of signatures that other "
          "devices of the job have in the same range; without communication, which waits for "
          "others; null where there are none");
  c.count("usual_ns", "usual GPU time", known([](const RankSlowdown& row) {
            return static_cast<uint64_t>(std::llround(row.usual_ns));
          }),
          "what they would take at the median, over these devices, of the mean time of their "
          "signature in that range");
  c.exact("slowdown", "slowdown", Kind::kRatio, &RankSlowdown::slowdown, "timed_ns / usual_ns");
  return c;
}

struct OddRank {
  uint32_t rank;
  const char* problem;
};
std::vector<OddRank> odd_ranks(const Report& report) {
  std::vector<OddRank> rows;
  for (const uint32_t rank : report.ranks.missing) rows.push_back({rank, "missing"});
  for (const uint32_t rank : report.ranks.repeated) rows.push_back({rank, "repeated"});
  return rows;
}

Columns<OddRank> odd_rank_columns() {
  Columns<OddRank> c;
  c.count("rank", "rank", &OddRank::rank);
  c.text("problem", "problem", &OddRank::problem,
         "missing: a rank of the job, or where no launcher said how many it has, one below the "
         "highest seen; repeated: several recordings have it");
  return c;
}

Columns<RunReport> run_columns() {
  const auto header = [](auto get) { return through(&RunReport::header, get); };
  Columns<RunReport> c;
  c.count(
      "run", "run",
      [](const RunReport& run, const Report& report) { return &run - report.runs.data() + 1; },
      "number of the run, from 1: processes.run; where there are several, every figure is of all "
      "of them together");
  c.text("job_id", "job", or_null(header(&trace::Header::job_id)),
         "null where nothing names the job");
  c.count("requeues", "requeues", header(&trace::Header::requeues),
          "how often the scheduler had started the job again");
  c.count("restarts", "restarts", header(&trace::Header::restarts),
          "how often torchrun had started its processes again");
  c.text(
      "run_id", "id",
      [](const RunReport& run) {
        const uint64_t id = run.header.run_id();
        return id != 0 ? std::optional(hash_text(id)) : std::nullopt;
      },
      "the same in all processes that one `flopinj run` started; null: started in another way");
  c.count("begin_ns", "began", &RunReport::begin_ns, "by the host's clock, CLOCK_REALTIME");
  c.count("processes", "processes", [](const RunReport& run) { return run.traces.size(); });
  return c;
}

const TableSource kRankPhases("rank_phases", "GPU time by process and phase", rank_phase_columns,
                              each_of(&Report::traces, &TraceReport::phases));
const TableSource kSlowdowns("rank_slowdown",
                             "how long kernels take beside the same kernels on other ranks",
                             slowdown_columns, through(&Report::ranks, &RanksReport::slowdowns));
const TableSource kOddRanks("odd_ranks", "ranks that no trace has, and ranks that several have",
                            odd_rank_columns, odd_ranks);
const TableSource kRuns("runs", "which processes belong together, in the order of their beginnings",
                        run_columns, &Report::runs);

}  // namespace

const Subject kRanks = {{&kRankTable, &kRankPhases, &kSlowdowns, &kOddRanks, &kRuns},
                        ranks_section};

}  // namespace flopinj::reduce
