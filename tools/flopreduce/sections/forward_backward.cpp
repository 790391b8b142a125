// Forward and backward side by side: by layer, and by forward operator.
#include "sections/launch_tables.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

using Pair = ForwardBackward;

// A node's work that no number leads to its operator is missing from that operator's row.
Mark backward_mark(const Pair& row, const Report& report) {
  if (row.backward_at_least) return Mark::kAtLeast;
  if (report.operators.differentiated_again == 0 || row.backward.launches == 0) return Mark::kNone;
  return row.forward.launches == 0 ? Mark::kAtMost : Mark::kAtLeast;
}
Mark forward_mark(const Pair& row) { return mark_if(row.forward_at_least, Mark::kAtLeast); }

Figure flop_where_any(const Work& work) { return work.launches > 0 ? flop_of(work) : Figure(); }
Figure time_where_any(const Work& work) { return work.launches > 0 ? gpu_time_of(work) : Figure(); }

// An upper bound where it is a range.
Figure expected_figure(const std::optional<ExpectedRatio>& expected) {
  if (!expected) return {};
  return {expected->most, mark_if(!expected->certain(), Mark::kAtMost) |
                              mark_if(expected->assumed(), Mark::kEstimate)};
}

Columns<Pair> pair_columns(const char* name, const char* of_name) {
  Columns<Pair> c;
  c.text(name, name, &Pair::name, of_name);
  c.figure(
       "forward_flop", "forward", Kind::kFlop,
       [](const Pair& r) { return flop_where_any(r.forward).with(forward_mark(r)); },
       "executed FLOP of forward; a lower bound too where it is not clear whether launches are "
       "of forward or of backward")
      .main();
  c.figure(
      "forward_share", "of fwd", Kind::kShare,
      [](const Pair& r) { return Figure::exact(r.forward_share); },
      "share of the executed FLOP of the whole forward pass; null where a launch of the pass "
      "is unmeasured, or none is here");
  c.figure(
       "backward_flop", "backward", Kind::kFlop,
       [](const Pair& r, const Report& report) {
         return flop_where_any(r.backward).with(backward_mark(r, report));
       },
       "executed FLOP of backward")
      .main();
  c.figure(
      "ratio", "ratio", Kind::kRatio,
      [](const Pair& r, const Report& report) {
        return flop_where_any(r.backward).with(backward_mark(r, report)) /
               flop_where_any(r.forward).with(forward_mark(r));
      },
      "backward / forward, of all executed FLOP");
  c.figure(
       "matrix_ratio", "matrix", Kind::kRatio,
       [](const Pair& r, const Report& report) {
         const bool about = r.forward.varying + r.backward.varying > 0;
         return Figure::exact(r.ratio).with(backward_mark(r, report) | inverse(forward_mark(r)) |
                                            mark_if(about, Mark::kEstimate));
       },
       "backward / forward of matrix work (fused multiply-adds and tensor cores); null where a "
       "part is unmeasured or missing")
      .main();
  c.figure(
      "expected_ratio", "expected", Kind::kRatio,
      [](const Pair& r) { return expected_figure(r.expected); },
      "backward / forward of matrix work, by theory and by evidence of which gradients were "
      "computed, never by the ratio that it is to judge: 2 for products and convolutions, 1 "
      "without "
      "input gradient, 2.5 for fused attention with keys as wide as values, 0 where nothing is "
      "computed backward, and their mean by forward matrix FLOP");
  c.figure(
       "forward_formula_flop", "formula fwd", Kind::kFlop,
       [](const Pair& r) { return r.forward_model.flop_where_any(); },
       "FLOP of forward by formula, as they count for MFU; a lower bound where matrix work has no "
       "formula, or is of complex numbers")
      .detail();
  c.figure(
       "backward_formula_flop", "formula bwd", Kind::kFlop,
       [](const Pair& r) { return r.backward_model.flop_where_any(); },
       "the same of backward; an upper bound where of some gradients it is not known whether they "
       "were computed")
      .detail();
  c.figure(
      "forward_gpu_time_ns", "time fwd", Kind::kNanoseconds,
      [](const Pair& r) { return time_where_any(r.forward); }, "GPU time of forward");
  c.figure(
      "backward_gpu_time_ns", "time bwd", Kind::kNanoseconds,
      [](const Pair& r) { return time_where_any(r.backward); }, "GPU time of backward");
  c.for_programs();
  c.exact(
      "expected_ratio_low", "expected, low", Kind::kRatio,
      [](const Pair& r) { return r.expected ? std::optional(r.expected->least) : std::nullopt; },
      "lower end of expected_ratio: below it where it is not known whether a gradient was "
      "computed, else the same");
  c.flag(
      "expected_ratio_assumed", "assumed",
      [](const Pair& r) { return r.expected && r.expected->assumed(); },
      "nothing shows which gradients of some products were computed, and both are assumed, or it "
      "is "
      "of a part of the matrix work; the basis says so");
  c.text(
      "expected_ratio_basis", "basis",
      [](const Pair& r) {
        return r.expected && !r.expected->basis.empty() ? std::optional(r.expected->basis)
                                                        : std::nullopt;
      },
      "what expected_ratio is taken from, where it is not two gradients for each product; what is "
      "assumed is named so");
  return c;
}
Columns<Pair> layer_columns() {
  return pair_columns("layer",
                      "the ranges below the one that gives the phase, operators left out; those "
                      "with most FLOP first. Backward launches belong to the layer of the forward "
                      "operator with their sequence number, else to that of the ranges around "
                      "them");
}
Columns<Pair> operator_work_columns() {
  return pair_columns("operator",
                      "the function that forward called (phases forward and loss, and what "
                      "backward was joined to). Backward launches belong to the forward operator "
                      "with their sequence number; those that found none have the name of their "
                      "autograd node");
}

template <std::vector<Pair> OperatorsReport::*kPairs>
const std::vector<Pair>& pairs_of(const Report& report) {
  return report.operators.*kPairs;
}
const TableSource kLayerTable = TableSource("layers", "backward / forward by layer", layer_columns,
                                            pairs_of<&OperatorsReport::layers>)
                                    .long_list()
                                    .titled("Layers: forward and backward");
const TableSource kOperatorWorkTable =
    TableSource("operator_work", "backward / forward by operator", operator_work_columns,
                pairs_of<&OperatorsReport::by_forward>)
        .long_list()
        .titled("Operators: forward and backward");
Section operator_work_section(const Report& report) {
  const auto& rows = report.operators.by_forward;
  Section out = kOperatorWorkTable.section(report);
  for (const Pair& r : rows)
    if (r.name.ends_with("Backward") && r.forward.launches == 0) {
      out.below.push_back(
          {"A name that ends in Backward stands for work whose forward operator is not known.",
           Tone::kDim});
      break;
    }
  return out;
}

}  // namespace

const Subject kLayers = {{&kLayerTable, &launch_table("layer_passes")}};
const Subject kOperatorWork = {{&kOperatorWorkTable, &launch_table("operator_passes")},
                               operator_work_section};

}  // namespace flopinj::reduce
