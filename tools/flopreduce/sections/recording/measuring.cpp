// How counters were read: what the user asked of each process, and how much of its work had
// complete counts, as the recorder saw it grow.
#include <algorithm>

#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// Traces of recorders before minor version 2 say nothing of it.
bool says(const TraceReport& t) { return t.has_header && !t.header.mode().empty(); }

// Was to read counters, whether it could or not.
bool was_asked(const TraceReport& t) { return t.header.counters() && t.header.measures(); }

Figure budget_of(const TraceReport& t) {
  if (!was_asked(t) || t.header.mode() == "full") return {};
  if (t.header.budget_percent() <= 0) return Figure::unknown("no limit");
  return Figure::exact(t.header.budget_percent() / 100);
}

bool covers(const CoveragePoint& at, double share) {
  return static_cast<double>(at.covered_launches) >= share * static_cast<double>(at.launches);
}

// Where shares of the launches were first covered; the ledgers looked at are powers of two apart.
std::string growth_text(const std::vector<CoveragePoint>& growth) {
  struct Step {
    double share;
    const char* name;
  };
  std::string text;
  for (const Step& step : {Step{0.5, "half"}, Step{0.9, "90 %"}, Step{0.99, "99 %"}}) {
    const auto at = std::find_if(growth.begin(), growth.end(),
                                 [&](const CoveragePoint& p) { return covers(p, step.share); });
    if (at == growth.end()) break;
    text += (text.empty() ? "" : ", ") + std::string(step.name) + " by launch " +
            to_grouped(at->launches);
  }
  return text;
}

auto traces_that_say(const Report& report) { return only(report.traces, says); }

// Of the recorder's last ledger.
auto covered(uint64_t CoveragePoint::*get) {
  return [get](const TraceReport& t) { return coverage_at(t.ledger).*get; };
}
auto covered_share(uint64_t CoveragePoint::*part, uint64_t CoveragePoint::*whole) {
  return [part, whole](const TraceReport& t) {
    const CoveragePoint at = coverage_at(t.ledger);
    return was_asked(t) ? share_figure(at.*part, at.*whole) : Figure();
  };
}

constexpr Column kCoveredLaunches{"covered_launches", "covered", Kind::kCount, Worth::kUsual,
                                  "launches of signatures with all their counts"};
constexpr Column kTimedGpuTime{"timed_gpu_time_ns", "timed GPU time", Kind::kNanoseconds,
                               Worth::kUsual, "GPU time while no counters were read"};
constexpr Column kCoveredGpuTime{"covered_gpu_time_ns", "covered", Kind::kNanoseconds,
                                 Worth::kUsual, "of it: of signatures with all their counts"};

Columns<TraceReport> measuring_columns() {
  using At = CoveragePoint;
  const auto reading = through(&TraceReport::counters, &CounterReport::reading);
  Columns<TraceReport> c;
  c.text(said::kProcess, &TraceReport::name);
  c.text("mode", "mode", through(&TraceReport::header, &trace::Header::mode),
         "multiplex, full, timing or count: what the user asked for")
      .main();
  c.text("counters", "counters", [=](const TraceReport& t) { return reading_word(reading(t)); });
  c.figure("budget_share", "budget", Kind::kShare, budget_of,
           "what reading counters may cost, as a share of wall time (--budget); null without limit")
      .detail();
  c.figure("covered_launches_share", "launches covered", Kind::kShare,
           covered_share(&At::covered_launches, &At::launches),
           "share of launches whose kernel has complete counts")
      .detail();
  c.figure("covered_gpu_time_share", "GPU time covered", Kind::kShare,
           covered_share(&At::covered_gpu_time_ns, &At::timed_gpu_time_ns),
           "share of GPU time of kernels that have complete counts")
      .main();
  c.for_programs();
  c.count(said::kProcessNumber, number_of);
  c.text(
      "counters_state", "state", [=](const TraceReport& t) { return reading_code(reading(t)); },
      "read: the trace has samples; refused: no permission; busy: another profiler holds the "
      "counters; failed: for another reason; none_read: asked for, and no reason is in the trace; "
      "not_asked: by the mode; other_ranks: by --measure-ranks; unknown");
  c.text("counters_problem", "problem",
         or_null(through(&TraceReport::counters, &CounterReport::problem)),
         "the recorder's words on refused, busy or failed, with what to do");
  c.count("launches", "launches", covered(&At::launches), "recorded, by the recorder's ledger");
  c.count(kCoveredLaunches, covered(&At::covered_launches));
  c.exact(kTimedGpuTime, covered(&At::timed_gpu_time_ns));
  c.exact(kCoveredGpuTime, covered(&At::covered_gpu_time_ns));
  c.text("stopped", "stopped",
         or_null(through(&TraceReport::ledger, &trace::Ledger::measuring_stopped)),
         "why no more counters were read");
  return c;
}

const TableSource kMeasuringTable = TableSource("measuring", "how counters were read, by process",
                                                measuring_columns, traces_that_say)
                                        .long_list()
                                        .titled("Measuring");

Section measuring_section(const Report& report) {
  Section s = kMeasuringTable.section(report);
  if (s.empty()) return {};
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < report.traces.size() && s.below.size() < kShown; ++i) {
    const TraceReport& t = report.traces[i];
    if (!says(t) || !was_asked(t)) continue;
    const std::string grown = growth_text(t.coverage_growth.points());
    if (!grown.empty()) s.below.emplace_back("  " + t.name + ": covered " + grown, Tone::kDim);
    if (!t.ledger.measuring_stopped().empty())
      s.below.emplace_back("  " + t.name + ": measuring stopped: " + t.ledger.measuring_stopped());
  }
  return s;
}

using GrowthRow = Of<TraceReport, CoveragePoint>;
Columns<GrowthRow> growth_columns() {
  Columns<GrowthRow> c;
  c.count(said::kNumberOf,
          [](const GrowthRow& row, const Report& report) { return number_of(row.of, report); });
  c.count("launches", "launches", of_one(&CoveragePoint::launches),
          "when the recorder looked: first after each power of two; none at level tally");
  c.count(kCoveredLaunches, of_one(&CoveragePoint::covered_launches));
  c.figure(kTimedGpuTime, exactly(of_one(&CoveragePoint::timed_gpu_time_ns)));
  c.figure(kCoveredGpuTime, exactly(of_one(&CoveragePoint::covered_gpu_time_ns)));
  return c;
}

const TableSource kGrowthTable("coverage_growth", "how the share with a count grew", growth_columns,
                               each_of(
                                   &Report::traces, [](const TraceReport& t) -> const auto& {
                                     return t.coverage_growth.points();
                                   }));

}  // namespace

const Subject kMeasuring = {{&kMeasuringTable, &kGrowthTable}, measuring_section};

}  // namespace flopinj::reduce
