// Operators by function: executed, formula, ratio and why; and where backward found its forward.
#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
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

Json operator_json(const OperatorReport& o) {
  Json j;
  j["operator"] = o.name;
  if (!o.range.empty()) j["range"] = o.range;
  if (!o.layer.empty()) j["layer"] = o.layer;
  j["phase"] = o.phase;
  j["calls"] = o.calls;
  j["calls_counted"] = o.calls_counted;
  j.update(work_json(o.work));
  j["formula_flop"] = o.formula_flop ? Json(decimal(*o.formula_flop)) : Json(nullptr);
  if (o.formula_flop && o.formula_partial) j["formula_partial"] = true;
  if (o.formula_flop && o.formula_at_most) j["formula_at_most"] = true;
  if (o.model_flop && o.model_flop != o.formula_flop) j["model_flop"] = decimal(*o.model_flop);
  if (o.formula_uncounted > 0) j["formula_uncounted"] = decimal(o.formula_uncounted);
  j["executed_formula_ratio"] = optional_json(o.ratio);
  j["cause"] = o.cause;
  j["evidence"] = o.evidence;
  return j;
}

void operators_json(Json& to, const Report& report) {
  const OperatorsReport& operators = report.operators;
  to["operators"] = {
      {"formula_flop", decimal(operators.formula_flop)},
      {"recompute_flop", decimal(operators.recompute_flop)},
      {"sequence",
       {{"joined_launches", operators.joined},
        {"without_forward", operators.without_forward},
        {"other_operator", operators.other_operator},
        {"ambiguous", operators.ambiguous},
        {"out_of_window", operators.out_of_window}}},
      {"types", list_json(operators.types, operator_json)},
      {"places", list_json(operators.places, operator_json)},
  };
  if (operators.differentiated_again > 0)
    to["operators"]["sequence"]["differentiated_again"] = operators.differentiated_again;
}

}  // namespace

const Subject kOperators = {operators_section, operators_json, operators_tables};

}  // namespace flopinj::reduce
