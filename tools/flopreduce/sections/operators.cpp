// Operators by function: executed, formula, ratio and why; and where backward found its forward.
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

Cell formula_cell(const OperatorReport& o) {
  if (!o.formula_flop) return Cell::none();
  const Mark mark = o.calls_counted ? Mark::kNone : Mark::kEstimate;
  if (o.formula_partial && o.formula_at_most) return {*o.formula_flop, Mark::kEstimate};
  if (o.formula_at_most) return {*o.formula_flop, mark | Mark::kAtMost};
  return {*o.formula_flop, mark | (o.formula_partial ? Mark::kAtLeast : Mark::kNone)};
}

constexpr Column kCalls = {"calls", "calls", Kind::kCount, Worth::kDetail};
constexpr Column kFlop = {"flop", "executed", Kind::kFlop, Worth::kMain};
constexpr Column kFormula = {"formula_flop", "formula", Kind::kFlop};
constexpr Column kExecuted = {"executed_formula_ratio", "ratio", Kind::kRatio, Worth::kMain};

Cell calls_cell(const OperatorReport& o) {
  return {o.calls, o.calls_counted ? Mark::kNone : Mark::kEstimate};
}
Cell ratio_cell(const OperatorReport& o) { return o.ratio ? Cell(*o.ratio) : Cell::none(); }

Section operators_section(const Report& report) {
  constexpr size_t kMostEvidence = 12;
  const OperatorsReport& operators = report.operators;
  if (operators.types.empty()) return {};
  Table table{"operators",
              {{"operator", "operator"},
               {"phase", "phase", Kind::kText, Worth::kMain},
               kCalls,
               {"launches", "launches", Kind::kCount},
               kFlop,
               kFormula,
               kExecuted,
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"cause", "cause"}}};
  table.long_list = true;
  Section out{"Operators: executed against formula", {}, std::nullopt, {}};
  const auto add_evidence = [&](const OperatorReport& o) {
    if (!o.cause.empty() && !o.evidence.empty() && out.below.size() < kMostEvidence)
      out.below.push_back(
          {o.name + ", " + o.phase + ": " + o.cause + ": " + o.evidence, Tone::kDim});
  };
  const auto is_bound = [](const OperatorReport& o) {
    return o.formula_flop && (o.formula_partial || o.formula_at_most);
  };
  for (const auto& o : operators.types)
    if (is_bound(o)) add_evidence(o);
  for (const auto& o : operators.types) {
    table.rows.push_back({o.name, o.phase, calls_cell(o), o.work.launches, flop_cell(o.work),
                          formula_cell(o), ratio_cell(o), time_cell(o.work), o.cause});
    if (!is_bound(o)) add_evidence(o);
  }
  out.table = std::move(table);
  const uint64_t lost = operators.without_forward + operators.other_operator + operators.ambiguous +
                        operators.out_of_window;
  if (lost > 0)
    out.below.push_back({to_grouped(lost) + " of " + to_grouped(lost + operators.joined) +
                             " backward launches with a sequence number found no forward operator.",
                         Tone::kWarn});
  if (operators.differentiated_again > 0)
    out.below.push_back({to_grouped(operators.differentiated_again) +
                             " backward launches are of gradients that are differentiated again: "
                             "they are listed under their nodes, since no number leads to their "
                             "forward operators.",
                         Tone::kWarn});
  return out;
}

// Every place of its own, with the evidence.
std::vector<Table> operators_tables(const Report& report) {
  Table table{"operator_places",
              {{"range", "range"},
               {"layer", "layer"},
               {"phase", "phase"},
               kCalls,
               {"launches", "launches", Kind::kCount},
               kFlop,
               kFormula,
               kExecuted,
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"cause", "cause"},
               {"evidence", "evidence"}}};
  for (const auto& o : report.operators.places)
    table.rows.push_back({o.range, o.layer, o.phase, calls_cell(o), o.work.launches,
                          flop_cell(o.work), formula_cell(o), ratio_cell(o), time_cell(o.work),
                          o.cause, o.evidence});
  return {std::move(table)};
}

void operator_fields(Fields& f, const OperatorReport& o) {
  f("operator", o.name);
  f("range", text_or_null(o.range), "the range that names it, with sizes; null of all its places");
  f("layer", text_or_null(o.layer));
  f("phase", o.phase);
  f("calls", o.calls);
  f("calls_counted", o.calls_counted,
    "by sequence numbers; else the launches of the kernel that does most are taken for calls");
  work_part(f, o.work);
  f.flop("formula_flop", o.formula_flop,
         "of all calls, without what is computed again, as fused attention's backward does with "
         "the scores; null where there is no formula, or sizes are missing");
  f("formula_partial", o.formula_flop && o.formula_partial,
    "some places of the function have no formula: formula_flop is of the others; or numbers are "
    "complex, and the formula counts real ones");
  f("formula_at_most", o.formula_flop && o.formula_at_most,
    "formula_flop is of both gradients of some calls, and nothing says which were computed");
  f.flop(
      "model_flop", o.model_flop ? o.model_flop : o.formula_flop,
      "of formula_flop, the FLOP that count for MFU: without gradients that were not computed and "
      "without what a causal mask leaves out");
  f.flop("formula_uncounted", o.formula_uncounted,
         "comparisons, exponentials and the like, which no FLOP counter counts and formula_flop "
         "leaves out");
  f("executed_formula_ratio", o.ratio);
  f("cause", o.cause, "why the two differ; empty where they do not; several are separated by ', '");
  f("evidence", o.evidence, "what the cause is taken from");
}

void operators_fields(Fields& f, const Report& report) {
  const OperatorsReport& all = report.operators;
  const auto one = [](Fields& row, const OperatorReport& o) {
    row.part("operator", [&](Fields& part) { operator_fields(part, o); });
  };
  f.object("operators", "", [&](Fields& operators) {
    operators.flop("formula_flop", all.formula_flop,
                   "what counts for MFU: of all operators with a formula, without recomputation, "
                   "gradients that were not computed and what a causal mask leaves out");
    operators.flop("recompute_flop", all.recompute_flop,
                   "executed by operators in phase recompute");
    operators.object("sequence",
                     "backward launches with an autograd sequence number, by what became of it",
                     [&](Fields& sequence) {
                       sequence("joined_launches", all.joined);
                       sequence("without_forward", all.without_forward);
                       sequence("other_operator", all.other_operator);
                       sequence("ambiguous", all.ambiguous);
                       sequence("out_of_window", all.out_of_window);
                       sequence("differentiated_again", all.differentiated_again,
                                "of gradients that are differentiated again");
                     });
    operators.list("types", all.types,
                   "by function and phase, most FLOP first; cause and evidence are those of the "
                   "place that differs most",
                   one);
    operators.list("places", all.places, "by range path and phase, most FLOP first", one);
  });
}

}  // namespace

const Subject kOperators = {operators_section, operators_fields, operators_tables};

}  // namespace flopinj::reduce
