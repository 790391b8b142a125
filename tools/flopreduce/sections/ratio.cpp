// Backward over forward, and what it should be.
#include <cmath>

#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kForwardMayHaveMore = "at most: forward may have more launches, see By phase";

bool at_most(const RatioReport& r) { return has(r.ratio.marks(), Mark::kAtMost); }

// Where the expected ratio is that of a network whose first layer computes no input gradient.
std::string first_layer_note(const RatioReport& r) {
  if (!r.first_layer_share || std::abs(2 - *r.first_layer_share - r.expected->most) > 1e-9)
    return {};
  return " (2 - f1, first layer " + fixed(*r.first_layer_share * 100, 2) + " %)";
}

std::string uncounted(const Work& work, const char* phase) {
  return to_grouped(work.unmeasured) + " of " + to_grouped(work.launches) + " " + phase +
         " launches";
}

Section ratio_section(const Report& report) {
  const RatioReport& r = report.ratio;
  const auto shown = [](const Figure& f) { return marked_text(f.marks(), fixed(*f.number(), 4)); };
  std::string text = "  " + (r.ratio.known() ? shown(r.ratio) : ratio_missing(report));
  if (r.matrix_ratio.known()) text += "   matrix work only " + shown(r.matrix_ratio);
  if (r.expected && r.expected->certain())
    text += std::string("   expected ") + (r.expected->assumed ? "~ " : "") +
            fixed(r.expected->most, 4) + first_layer_note(r);
  else if (r.expected)
    text += "   expected " + fixed(r.expected->least, 4) + " to " + fixed(r.expected->most, 4);
  Line line(std::move(text));
  if (r.verdict != RatioVerdict::kNone)
    line.then(verdict_text(r), r.verdict == RatioVerdict::kOutside ? Tone::kWarn : Tone::kPlain);
  Section out{"Backward / forward", {std::move(line)}, {}, {}};
  if (r.expected && !r.expected->basis.empty())
    out.below.push_back({"  expected: " + r.expected->basis, Tone::kDim});
  if (!r.expected_missing.empty())
    out.below.push_back({"  nothing expected: " + r.expected_missing, Tone::kDim});
  if (at_most(r)) out.below.push_back({std::string("  ") + kForwardMayHaveMore, Tone::kWarn});
  return out;
}

void ratio_fields(Fields& f, const Report& report) {
  const RatioReport& r = report.ratio;
  f("ratio_partial", r.ratio_partial,
    "the same of the launches that are measured and known to be forward's, where not all are and "
    "both sides have some");
  f("ratio_missing", text_or_null(at_most(r) ? kForwardMayHaveMore : ratio_missing(report)),
    "why ratio is null");
  f.object_if(r.matrix_interval.has_value(), "matrix_ratio_interval_95",
              "where launches of a side are estimates that have an interval",
              [&](Fields& interval) {
                const Limits limits = r.matrix_interval.value_or(Limits{});
                interval("low", limits.low);
                interval("high", limits.high);
              });
  verdict_field(f, r.verdict);
  expected_fields(f, r.expected);
  f("expected_ratio_missing", text_or_null(r.expected_missing),
    "why nothing is expected, where more than evidence is missing");
  f.share("first_layer_share", r.first_layer_share,
          "matrix FLOP of the first layer / matrix FLOP of the forward ranges that have layers. "
          "Layers are the ranges directly below the outermost range that says forward; the first "
          "is the one entered first that holds matrix work");
  f.list("layers", r.layers, "", first_layer_fields);
}

// Each figure with how it is to be read, and why or what it is taken from.
Table figures_table(const Report& report) {
  const RatioReport& r = report.ratio;
  Table table{"ratio", {{"figure", "figure"}, {"value", "value", Kind::kRatio}, {"note", "note"}}};
  const auto add = [&](const char* figure, const Figure& value, std::string note) {
    table.rows.push_back({figure, value, std::move(note)});
  };
  add("backward / forward", r.ratio, at_most(r) ? kForwardMayHaveMore : ratio_missing(report));
  add("matrix work only", r.matrix_ratio,
      r.verdict == RatioVerdict::kNone ? "" : verdict_text(r).substr(2));
  const auto bound = [&](double ExpectedRatio::*end) {
    if (!r.expected) return Figure();
    return Figure(*r.expected.*end, mark_if(r.expected->assumed, Mark::kEstimate));
  };
  const std::string basis = r.expected ? r.expected->basis : r.expected_missing;
  add("expected of matrix work, least", bound(&ExpectedRatio::least), basis);
  add("expected of matrix work, most", bound(&ExpectedRatio::most), basis);
  return table;
}

std::vector<Table> ratio_tables(const Report& report) {
  Table table{"first_layers",
              {{"layer", "layer"},
               {"forward_matrix_flop", "forward matrix FLOP", Kind::kFlop},
               {"first", "first", Kind::kCount}}};
  for (const auto& l : report.ratio.layers)
    table.rows.push_back({l.path, l.forward_matrix_flop, uint64_t{l.first}});
  return {figures_table(report), std::move(table)};
}

}  // namespace

std::string verdict_text(const RatioReport& r) {
  const ExpectedRatio& expected = *r.expected;
  switch (r.verdict) {
    case RatioVerdict::kInside:
      return expected.certain() ? ": as expected" : ": inside the expected range";
    case RatioVerdict::kOutside: {
      const double found = *r.matrix_ratio.number();
      const bool below = found < expected.least;
      const double bound = below ? expected.least : expected.most;
      const std::string off =
          bound > 0 ? " by " + fixed(std::abs(found / bound - 1) * 100, 1) + " %" : "";
      return std::string(expected.certain() ? ": NOT as expected, "
                                            : ": OUTSIDE the expected range, ") +
             (below ? "below" : "above") + off;
    }
    case RatioVerdict::kUndecided:
      if (!has(r.matrix_ratio.marks(), Mark::kEstimate))
        return ": not decided, parts of the traces are lost";
      return r.matrix_interval ? ": not decided, the 95 % interval of the ratio reaches beyond it"
                               : ": not decided, the estimates have no interval";
    case RatioVerdict::kNone:
      break;
  }
  return {};
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
  if (forward.flop_complete() && backward.flop_complete() && report.ratio.ratio_partial)
    return "not known, at most " + fixed(*report.ratio.ratio_partial, 4) +
           ": matrix work of other may have run forward, see By phase";
  if (forward.flop_complete() && backward.flop_complete())
    return "not known: the forward pass executed no FLOP";
  std::string text = "not known: ";
  if (!forward.flop_complete()) text += uncounted(forward, "forward");
  if (!forward.flop_complete() && !backward.flop_complete()) text += " and ";
  if (!backward.flop_complete()) text += uncounted(backward, "backward");
  text += " have no FLOP count";
  if (report.ratio.ratio_partial)
    text += " (of the measured launches: " + fixed(*report.ratio.ratio_partial, 4) + ")";
  return text;
}

const Subject kRatio = {ratio_section, ratio_fields, ratio_tables};

}  // namespace flopinj::reduce
