// Backward over forward, and what it should be.
#include <cmath>

#include "sections/cells.h"
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// Where the expected ratio is that of a network whose first layer computes no input gradient.
std::string first_layer_note(const RatioReport& r) {
  if (!r.first_layer_share || std::abs(2 - *r.first_layer_share - r.expected->most) > 1e-9)
    return {};
  return " (2 - f1, first layer " + fixed(*r.first_layer_share * 100, 2) + " %)";
}

Section ratio_section(const Report& report) {
  const RatioReport& r = report.ratio;
  std::string text = "  ";
  if (r.ratio)
    text += fixed(*r.ratio, 4);
  else if (r.ratio_partial)
    text += "about " + fixed(*r.ratio_partial, 4) + ", of the measured part alone";
  else
    text += "not known: no forward or no backward launches";
  if (r.matrix_ratio) text += "   matrix work alone " + fixed(*r.matrix_ratio, 4);
  if (r.expected && r.expected->certain())
    text += "   expected " + fixed(r.expected->most, 4) + first_layer_note(r);
  else if (r.expected)
    text += "   expected " + fixed(r.expected->least, 4) + " to " + fixed(r.expected->most, 4);
  Section out{"Backward / forward", {std::move(text)}, {}, {}};
  if (r.expected && !r.expected->basis.empty())
    out.below.push_back({"  expected: " + r.expected->basis, Tone::kDim});
  return out;
}

void ratio_json(Json& j, const Report& report) {
  const RatioReport& r = report.ratio;
  j["backward_forward_ratio"] = optional_json(r.ratio);
  if (r.ratio_partial) j["backward_forward_ratio_partial"] = *r.ratio_partial;
  j["backward_forward_matrix_ratio"] = optional_json(r.matrix_ratio);
  add_expected(j, r.expected);
  j["first_layer_share"] = optional_json(r.first_layer_share);
  j["layers"] = list_json(r.layers, [](const LayerReport& l) -> Json {
    return {{"path", l.path},
            {"forward_matrix_flop", decimal(l.forward_matrix_flop)},
            {"first", l.first}};
  });
}

std::vector<Table> ratio_tables(const Report& report) {
  Table table{"first_layers",
              {{"layer", "layer"},
               {"forward_matrix_flop", "forward matrix FLOP", Kind::kFlop},
               {"first", "first", Kind::kCount}}};
  for (const auto& l : report.ratio.layers)
    table.rows.push_back({l.path, l.forward_matrix_flop, uint64_t{l.first}});
  return {std::move(table)};
}

}  // namespace

const Subject kRatio = {ratio_section, ratio_json, ratio_tables};

}  // namespace flopinj::reduce
