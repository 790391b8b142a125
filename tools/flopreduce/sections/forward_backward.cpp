// Forward and backward side by side: by layer, and by forward operator.
#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Cell pair_formula_cell(u128 flop, bool partial, bool at_most) {
  if (flop == 0) return Cell::none();
  if (partial && at_most) return {flop, Mark::kEstimate};
  return {flop, partial ? Mark::kAtLeast : at_most ? Mark::kAtMost : Mark::kNone};
}
Cell pair_ratio_cell(const std::optional<double>& ratio, Mark mark = Mark::kNone) {
  return ratio ? Cell(*ratio, mark) : Cell::none();
}

// A node's work that no number leads to its operator is missing from that operator's row.
Mark backward_mark(const ForwardBackward& row, const OperatorsReport& operators) {
  if (operators.differentiated_again == 0 || row.backward.launches == 0) return Mark::kNone;
  return row.forward.launches == 0 ? Mark::kAtMost : Mark::kAtLeast;
}

// An upper bound where it is a range.
Cell expected_cell(const std::optional<ExpectedRatio>& expected) {
  if (!expected) return Cell::none();
  return {expected->most, expected->certain() ? Mark::kNone : Mark::kAtMost};
}

Table pair_table(const char* key, Column name, const OperatorsReport& operators,
                 const std::vector<ForwardBackward>& rows) {
  Table table{key,
              {name,
               {"forward_flop", "forward", Kind::kFlop, Worth::kMain},
               {"forward_share", "of fwd", Kind::kRatio},
               {"backward_flop", "backward", Kind::kFlop, Worth::kMain},
               {"ratio", "ratio", Kind::kRatio, Worth::kMain},
               {"expected_ratio", "expected", Kind::kRatio},
               {"forward_formula_flop", "formula fwd", Kind::kFlop, Worth::kDetail},
               {"backward_formula_flop", "formula bwd", Kind::kFlop, Worth::kDetail},
               {"forward_gpu_time_ns", "time fwd", Kind::kNanoseconds},
               {"backward_gpu_time_ns", "time bwd", Kind::kNanoseconds}}};
  table.long_list = true;
  const auto flop = [](const Work& work, Mark mark) {
    Cell cell = work.launches > 0 ? flop_cell(work) : Cell::none();
    cell.marks = cell.marks | mark;
    return cell;
  };
  const auto time = [](const Work& work) {
    return work.launches > 0 ? time_cell(work) : Cell::none();
  };
  for (const ForwardBackward& r : rows) {
    const Mark forward = r.forward_at_least ? Mark::kAtLeast : Mark::kNone;
    const Mark backward = backward_mark(r, operators);
    const Mark ratio = backward | (r.forward_at_least ? Mark::kAtMost : Mark::kNone);
    table.rows.push_back({r.name, flop(r.forward, forward), pair_ratio_cell(r.forward_share),
                          flop(r.backward, backward), pair_ratio_cell(r.ratio, ratio),
                          expected_cell(r.expected),
                          pair_formula_cell(r.forward_formula, r.forward_formula_partial, false),
                          pair_formula_cell(r.backward_formula, r.backward_formula_partial,
                                            r.backward_formula_at_most),
                          time(r.forward), time(r.backward)});
  }
  return table;
}

Json pair_json(const char* key, const ForwardBackward& r) {
  Json j = {{key, r.name},
            {"forward", work_json(r.forward)},
            {"backward", work_json(r.backward)},
            {"recompute", work_json(r.recompute)},
            {"forward_formula_flop", decimal(r.forward_formula)},
            {"backward_formula_flop", decimal(r.backward_formula)},
            {"forward_share", optional_json(r.forward_share)},
            {"backward_forward_matrix_ratio", optional_json(r.ratio)}};
  add_expected(j, r.expected);
  if (r.forward_formula_partial) j["forward_formula_partial"] = true;
  if (r.backward_formula_partial) j["backward_formula_partial"] = true;
  if (r.backward_formula_at_most) j["backward_formula_at_most"] = true;
  if (r.forward_at_least) j["forward_at_least"] = true;
  return j;
}

Section layers_section(const Report& report) {
  if (report.operators.layers.empty()) return {};
  return {"Layers: backward / forward of matrix work",
          {},
          pair_table("layers", {"layer", "layer"}, report.operators, report.operators.layers),
          {}};
}

void layers_json(Json& to, const Report& report) {
  to["layer_work"] = list_json(report.operators.layers,
                               [](const ForwardBackward& r) { return pair_json("layer", r); });
}

Section operator_work_section(const Report& report) {
  const auto& rows = report.operators.by_forward;
  if (rows.empty()) return {};
  Section out{"Operators: backward / forward of matrix work",
              {},
              pair_table("operator_work", {"operator", "operator"}, report.operators, rows),
              {}};
  for (const ForwardBackward& r : rows)
    if (r.name.ends_with("Backward") && r.forward.launches == 0) {
      out.below.push_back(
          {"A name that ends in Backward stands for work whose forward operator is not known.",
           Tone::kDim});
      break;
    }
  return out;
}

void operator_work_json(Json& to, const Report& report) {
  to["operator_work"] = list_json(report.operators.by_forward, [](const ForwardBackward& r) {
    return pair_json("operator", r);
  });
}

}  // namespace

const Subject kLayers = {layers_section, layers_json};
const Subject kOperatorWork = {operator_work_section, operator_work_json};

}  // namespace flopinj::reduce
