// How counters were read: what the user asked of each process, and how much of its work had
// complete counts, as the recorder saw it grow.
#include <algorithm>

#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Traces of recorders before minor version 2 say nothing of it.
bool says(const TraceReport& t) { return t.has_header && !t.header.mode().empty(); }

// Was to read counters, whether it could or not.
bool was_asked(const TraceReport& t) { return t.header.counters() && t.header.measures(); }

Cell budget_cell(const TraceReport& t) {
  if (!was_asked(t) || t.header.mode() == "full") return Cell::none();
  if (t.header.budget_percent() <= 0) return Cell::none("no limit");
  return t.header.budget_percent() / 100;
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

Table process_measuring_table(const Report& report) {
  Table table{"measuring",
              {{"process", "process"},
               {"mode", "mode", Kind::kText, Worth::kMain},
               {"counters", "counters"},
               {"budget_share", "budget", Kind::kShare, Worth::kDetail},
               {"covered_launches_share", "launches covered", Kind::kShare, Worth::kDetail},
               {"covered_gpu_time_share", "GPU time covered", Kind::kShare, Worth::kMain}}};
  table.long_list = true;
  for (size_t i = 0; i < report.traces.size(); ++i) {
    const TraceReport& t = report.traces[i];
    if (!says(t)) continue;
    const CoveragePoint at = coverage_at(t.ledger);
    const bool reads = was_asked(t);
    table.rows.push_back(
        {t.name, t.header.mode(), reading_word(t.counters.reading), budget_cell(t),
         reads ? share_cell(at.covered_launches, at.launches) : Cell::none(),
         reads ? share_cell(at.covered_gpu_time_ns, at.timed_gpu_time_ns) : Cell::none()});
  }
  return table;
}

Section measuring_section(const Report& report) {
  Section s{"Measuring", {}, process_measuring_table(report), {}};
  if (s.table->rows.empty()) return {};
  constexpr size_t kShown = 8;
  for (size_t i = 0; i < report.traces.size() && s.below.size() < kShown; ++i) {
    const TraceReport& t = report.traces[i];
    if (!says(t) || !was_asked(t)) continue;
    const std::string grown = growth_text(t.coverage_growth);
    if (!grown.empty()) s.below.emplace_back("  " + t.name + ": covered " + grown, Tone::kDim);
    if (!t.ledger.measuring_stopped().empty())
      s.below.emplace_back("  " + t.name + ": measuring stopped: " + t.ledger.measuring_stopped());
  }
  return s;
}

void point_fields(Fields& f, const CoveragePoint& at) {
  f("launches", at.launches);
  f("covered_launches", at.covered_launches, "of signatures with all their counts");
  f("timed_gpu_time_ns", at.timed_gpu_time_ns, "outside of windows");
  f("covered_gpu_time_ns", at.covered_gpu_time_ns);
}

void process_measuring_fields(Fields& f, const TraceReport& t) {
  const auto& h = t.header;
  f("mode", h.mode(), "multiplex, full, timing or count: what the user asked for");
  f("counters", t.counters.reading == CounterReading::kRead,
    "this process has read counters: its trace has samples");
  f.word("counters_state", reading_code(t.counters.reading),
         {"read", "refused", "busy", "failed", "none_read", "not_asked", "other_ranks", "unknown"},
         "refused: no permission; busy: another profiler holds them; failed: for another reason; "
         "none_read: asked for, and no reason is in the trace; not_asked: by the mode; "
         "other_ranks: by --measure-ranks");
  f("counters_problem", text_or_null(printable(t.counters.problem)),
    "the recorder's words on refused, busy or failed, with what to do");
  f("budget_percent",
    h.budget_percent() > 0 ? std::optional<double>(h.budget_percent()) : std::nullopt,
    "of wall time; null: without limit");
  f.object("coverage", "by the recorder, at the end",
           [&](Fields& at) { point_fields(at, coverage_at(t.ledger)); });
  f.list("coverage_growth", t.coverage_growth,
         "the first looks at which launches had reached each power of two; none at level tally",
         point_fields);
  f("stopped", text_or_null(t.ledger.measuring_stopped()), "why no more counters were read");
}

void measuring_fields(Fields& f, const Report& report) {
  std::vector<size_t> told;
  for (size_t i = 0; i < report.traces.size(); ++i)
    if (says(report.traces[i])) told.push_back(i);
  f.list("measuring", told, "of each process whose trace says so: how counters were read",
         [&](Fields& process, size_t i) {
           process("trace", i, "index into traces");
           process_measuring_fields(process, report.traces[i]);
         });
}

std::vector<Table> measuring_tables(const Report& report) {
  Table table{"coverage_growth",
              {{"process", "process", Kind::kCount},
               {"launches", "launches", Kind::kCount},
               {"covered_launches", "covered", Kind::kCount},
               {"timed_gpu_time_ns", "timed GPU time", Kind::kNanoseconds},
               {"covered_gpu_time_ns", "covered", Kind::kNanoseconds}}};
  for (size_t i = 0; i < report.traces.size(); ++i)
    for (const CoveragePoint& at : report.traces[i].coverage_growth)
      table.rows.push_back({uint64_t{i}, at.launches, at.covered_launches, at.timed_gpu_time_ns,
                            at.covered_gpu_time_ns});
  return {std::move(table)};
}

}  // namespace

const Subject kMeasuring = {measuring_section, measuring_fields, measuring_tables};

}  // namespace flopinj::reduce
