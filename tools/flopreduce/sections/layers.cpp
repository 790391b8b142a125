// Layers: forward and backward side by side.
#include "sections/cells.h"
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section layers_section(const Report& report) {
  if (report.operators.layers.empty()) return {};
  Table table{"layers",
              {{"layer", "layer"},
               {"forward_flop", "forward", Kind::kFlop},
               {"backward_flop", "backward", Kind::kFlop},
               {"ratio", "ratio", Kind::kRatio},
               {"expected_ratio", "expected", Kind::kRatio},
               {"forward_formula_flop", "formula fwd", Kind::kFlop},
               {"backward_formula_flop", "formula bwd", Kind::kFlop},
               {"forward_gpu_time_ns", "time fwd", Kind::kNanoseconds},
               {"backward_gpu_time_ns", "time bwd", Kind::kNanoseconds}}};
  table.long_list = true;
  const auto formula = [](u128 flop) { return flop > 0 ? Cell(flop) : Cell::none(); };
  const auto of = [](const Work& work) {
    return work.launches > 0 ? flop_cell(work) : Cell::none();
  };
  const auto time = [](const Work& work) {
    return work.launches > 0 ? time_cell(work) : Cell::none();
  };
  for (const auto& l : report.operators.layers) {
    const auto ratio = [](const std::optional<double>& r) { return r ? Cell(*r) : Cell::none(); };
    table.rows.push_back({l.layer, of(l.forward), of(l.backward), ratio(l.ratio), ratio(l.expected),
                          formula(l.forward_formula), formula(l.backward_formula), time(l.forward),
                          time(l.backward)});
  }
  return {"Layers: backward / forward of matrix work", {}, std::move(table), {}};
}

void layers_json(Json& to, const Report& report) {
  to["layer_work"] = list_json(report.operators.layers, [](const LayerWork& l) {
    return Json{{"layer", l.layer},
                {"forward", work_json(l.forward)},
                {"backward", work_json(l.backward)},
                {"recompute", work_json(l.recompute)},
                {"forward_formula_flop", decimal(l.forward_formula)},
                {"backward_formula_flop", decimal(l.backward_formula)},
                {"backward_forward_matrix_ratio", optional_json(l.ratio)},
                {"backward_forward_expected", optional_json(l.expected)}};
  });
}

}  // namespace

const Subject kLayers = {layers_section, layers_json};

}  // namespace flopinj::reduce
