// Forward and backward side by side: by layer, and by forward operator.
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Cell pair_formula_cell(u128 flop, bool partial, bool at_most) {
  if (flop == 0) return Cell::none();
  if (partial && at_most) return {flop, Mark::kEstimate};
  return {flop, partial ? Mark::kAtLeast : at_most ? Mark::kAtMost : Mark::kNone};
}
Cell forward_formula_cell(const ForwardBackward& r) {
  return pair_formula_cell(r.forward_formula, r.forward_formula_partial, false);
}
Cell backward_formula_cell(const ForwardBackward& r) {
  return pair_formula_cell(r.backward_formula, r.backward_formula_partial,
                           r.backward_formula_at_most);
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
                          expected_cell(r.expected), forward_formula_cell(r),
                          backward_formula_cell(r), time(r.forward), time(r.backward)});
  }
  return table;
}

void pair_fields(Fields& f, const ForwardBackward& r) {
  work_object(f, "forward", r.forward);
  work_object(f, "backward", r.backward);
  work_object(f, "recompute", r.recompute);
  f.flop("forward_formula_flop", forward_formula_cell(r), "of the operators that have a formula");
  f("forward_formula_partial", r.forward_formula_partial,
    "some operators have no formula, or are of complex numbers");
  f.flop("backward_formula_flop", backward_formula_cell(r));
  f("backward_formula_partial", r.backward_formula_partial);
  f("backward_formula_at_most", r.backward_formula_at_most,
    "it holds gradients that were not computed, or of which nothing is known");
  f("forward_at_least", r.forward_at_least,
    "launches of phase_unclear are of this operator or layer");
  f.share("forward_share", r.forward_share,
          "executed forward FLOP / those of the whole pass: for layers of phase forward, for "
          "operators of all that counts as forward there. null where a launch of the pass is "
          "unmeasured, or none is here");
  f("matrix_ratio", r.ratio,
    "backward / forward of fused multiply-adds and tensor work; null where a part is unmeasured or "
    "missing");
  expected_fields(f, r.expected);
}

void pair_list(Fields& f, const char* key, const char* name,
               const std::vector<ForwardBackward>& rows, const char* about) {
  f.list(key, rows, about, [&](Fields& row, const ForwardBackward& r) {
    row(name, r.name);
    row.part("forward_backward", [&](Fields& part) { pair_fields(part, r); });
  });
}

Section layers_section(const Report& report) {
  if (report.operators.layers.empty()) return {};
  return {"Layers: backward / forward of matrix work",
          {},
          pair_table("layers", {"layer", "layer"}, report.operators, report.operators.layers),
          {}};
}

void layers_fields(Fields& f, const Report& report) {
  pair_list(f, "layer_work", "layer", report.operators.layers,
            "by layer, in the order of forward: the ranges below the one that says the phase, "
            "operators left out. Backward launches belong to the layer of the forward operator "
            "with their sequence number, else to that of the ranges around them");
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

void operator_work_fields(Fields& f, const Report& report) {
  pair_list(f, "operator_work", "operator", report.operators.by_forward,
            "by the function that forward called, most FLOP first. Forward: phases forward and "
            "loss, and what backward was joined to. Backward launches belong to the forward "
            "operator with their sequence number; those that found none have the name of their "
            "autograd node");
}

}  // namespace

const Subject kLayers = {layers_section, layers_fields};
const Subject kOperatorWork = {operator_work_section, operator_work_fields};

}  // namespace flopinj::reduce
