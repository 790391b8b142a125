// Backward over forward, and what it should be.
#include <cmath>

#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kForwardMayHaveMore =
    "at most: forward may have more launches, see By phase; a range named forward around the model "
    "tells, in PyTorch: with torch.cuda.nvtx.range(\"forward\")";

constexpr const char* kBackwardMayHaveMore =
    "at least: products outside of autograd may be gradients, see By phase";

constexpr const char* kBackwardMayHaveLess =
    "at most: launches of backward may be of recompute, see By phase";

std::string ratio_note(const Report& report) {
  if (has(report.ratio.ratio.marks(), Mark::kAtLeast)) return kBackwardMayHaveMore;
  if (!has(report.ratio.ratio.marks(), Mark::kAtMost)) return ratio_missing(report);
  return report.operators.recompute_unclear() ? kBackwardMayHaveLess : kForwardMayHaveMore;
}

// Of the ratio against its expectation; empty without a verdict.
std::string verdict_text(const RatioReport& r) {
  switch (r.verdict) {
    case RatioVerdict::kInside:
      return r.expected->certain() ? "as expected" : "inside the expected range";
    case RatioVerdict::kOutside: {
      const ExpectedRatio& expected = *r.expected;
      const double found = *r.matrix_ratio.number();
      const bool below = found < expected.least;
      const double bound = below ? expected.least : expected.most;
      const std::string off =
          bound > 0 ? " by " + fixed(std::abs(found / bound - 1) * 100, 1) + " %" : "";
      return std::string(expected.certain() ? "NOT as expected, "
                                            : "OUTSIDE the expected range, ") +
             (below ? "below" : "above") + off;
    }
    case RatioVerdict::kUndecided:
      return "undecided: " + r.undecided;
    case RatioVerdict::kNone:
      break;
  }
  return {};
}

std::string uncounted(const Work& work, const char* phase) {
  return to_grouped(work.incomplete()) + " of " + to_grouped(work.launches) + " " + phase +
         " launches";
}

// Each figure with how it is to be read, and why or what it is taken from.
struct RatioRow {
  const char* figure;
  Figure value;
  std::string note = {};
  std::optional<std::string> verdict = {};
};

std::vector<RatioRow> ratio_rows(const Report& report) {
  const RatioReport& r = report.ratio;
  const auto end = [](const auto& range, auto end_of) {
    return range ? Figure::exact(*range.*end_of) : Figure();
  };
  const auto expected = [&](double ExpectedRatio::*end_of) {
    return end(r.expected, end_of)
        .with(mark_if(r.expected && r.expected->estimated(), Mark::kEstimate));
  };
  const std::string basis = r.expected ? r.expected->basis : r.expected_missing;
  return {{"backward / forward", r.ratio, ratio_note(report)},
          {"backward / forward of the measured launches", Figure::exact(r.ratio_partial),
           r.ratio_partial ? "of launches that are known to be forward's" : ""},
          {"matrix work only", r.matrix_ratio, verdict_text(r), ratio_verdict(r)},
          {"matrix work only, low end of 95 %", end(r.matrix_interval, &Limits::low)},
          {"matrix work only, high end of 95 %", end(r.matrix_interval, &Limits::high)},
          {"expected of matrix work, least", expected(&ExpectedRatio::least), basis},
          {"expected of matrix work, most", expected(&ExpectedRatio::most), basis},
          {"first layer's share of matrix work",
           Figure::exact(r.first_layer_share)
               .with(mark_if(!phase_work(report, "forward").flop_complete(), Mark::kEstimate)),
           r.first_layer_share ? "f1, of the forward ranges that have layers" : ""}};
}

Columns<RatioRow> ratio_columns() {
  Columns<RatioRow> c;
  c.text("figure", "figure", &RatioRow::figure,
         "matrix work is fused multiply-adds and tensor cores; what is expected of it follows from "
         "the layers");
  c.figure("value", "value", Kind::kRatio, &RatioRow::value);
  c.for_programs();
  c.text("note", "note", &RatioRow::note,
         "why there is no value, how it is to be read, or what it is taken from; what is assumed "
         "is named so");
  c.text("verdict", "verdict", &RatioRow::verdict,
         "of matrix work, with all of its interval, against the expected value or range, 1 % left "
         "aside: inside, outside, or undecided where the expectation is assumed or of a part, the "
         "interval reaches beyond it or is not known, damage took launches, or no expectation can "
         "be had; the note says which; null where there is no ratio, or nothing names layers or "
         "operators")
      .names(kVerdictNames);
  return c;
}

Mark marks_of_forward(const Report& report) {
  for (const PhaseReport& phase : report.phases)
    if (phase.name == "forward") return flop_of(phase.work).marks();
  return Mark::kNone;
}

Columns<LayerReport> first_layer_columns() {
  Columns<LayerReport> c;
  c.text("layer", "layer", &LayerReport::path,
         "a range directly below the outermost range that says forward");
  c.figure(
      "forward_matrix_flop", "forward matrix FLOP", Kind::kFlop,
      [](const LayerReport& layer, const Report& report) {
        return Figure(layer.forward_matrix_flop, marks_of_forward(report));
      },
      "executed; what is not known of a part of the forward pass is not known of any layer");
  c.flag("first", "first", &LayerReport::first,
         "the one that was entered first of those that hold matrix work");
  return c;
}

const TableSource kRatioTable("ratio", "backward / forward, and what it should be", ratio_columns,
                              ratio_rows);
const TableSource kFirstLayers("first_layers", "layers of the forward pass", first_layer_columns,
                               through(&Report::ratio, &RatioReport::layers));

// Values above, what is said of them below.
Section ratio_section(const Report& report) {
  Section out{"Backward / forward", {}, kRatioTable.for_people(report), {}};
  std::erase_if(out.table->rows, [](const TableRow& row) { return row[1].empty(); });
  const bool outside = report.ratio.verdict == RatioVerdict::kOutside;
  std::string last;
  for (const RatioRow& row : ratio_rows(report))
    if (!row.note.empty() && row.note != std::exchange(last, row.note))
      out.below.push_back({std::string("  ") + row.figure + ": " + row.note,
                           row.verdict && outside ? Tone::kWarn : Tone::kPlain});
  return out;
}

}  // namespace

std::optional<std::string> ratio_verdict(const RatioReport& ratio) {
  return text_or_null(std::string(kRatioVerdicts[static_cast<size_t>(ratio.verdict)]));
}

std::string ratio_missing(const Report& report) {
  const Work &forward = phase_work(report, "forward"), &backward = phase_work(report, "backward");
  if (report.ratio.ratio.known()) return {};
  if (report.total.launches == 0) return "not known: no launches";
  if (forward.launches == 0 && backward.launches == 0)
    return report.ranges.empty()
               ? "not known: no NVTX range was seen around a launch, and no thread's name says "
                 "a phase"
               : "not known: no range, thread or kernel has a name that says forward or backward";
  if (forward.launches == 0) return "not known: no forward launches";
  if (backward.launches == 0) return "not known: no backward launches";
  if (!forward.flop_known() || !backward.flop_known()) {
    const char* of = backward.flop_known() ? "forward" : "backward";
    if (!forward.flop_known() && !backward.flop_known()) of = "forward and backward";
    return std::string("not measured: no FLOP counts of ") + of + ": " + unmeasured_cause(report);
  }
  if (forward.flop_complete() && backward.flop_complete())
    return "not known: the forward pass executed no FLOP";
  std::string text = "not known: ";
  if (!forward.flop_complete()) text += uncounted(forward, "forward");
  if (!forward.flop_complete() && !backward.flop_complete()) text += " and ";
  if (!backward.flop_complete()) text += uncounted(backward, "backward");
  text += forward.unmeasured + backward.unmeasured > 0 ? " have no FLOP count"
                                                       : " were not screened for tensor work";
  if (report.ratio.ratio_partial)
    text += " (of the measured launches: " + ratio_text(*report.ratio.ratio_partial) + ")";
  return text;
}

const Subject kRatio = {{&kRatioTable, &kFirstLayers}, ratio_section};

}  // namespace flopinj::reduce
