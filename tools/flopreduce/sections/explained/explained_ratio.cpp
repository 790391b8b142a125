// Backward / forward explained: what makes each side, and where the expectation comes from.
#include "sections/explained/explanation.h"
#include "sections/notices.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

Figure matrix_flop_of(const Work& work) {
  if (!work.flop_known() || work.launches == 0) return {};
  return {work.matrix_flop, flop_mark(work)};
}

// "a / b = c".
std::string quotient_text(u128 backward, u128 forward, const std::optional<double>& ratio) {
  return to_grouped(backward) + " / " + to_grouped(forward) + " = " +
         (ratio ? fixed(*ratio, 4) : "not known");
}

Section quotient_section(const Report& report) {
  const RatioReport& r = report.ratio;
  const Work backward = phase_work(report, "backward");
  const Work forward = phase_work(report, "forward");
  Table table{"ratio_sides",
              {{"side", "side"},
               {"launches", "launches", Kind::kCount},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_exact", "exact", Kind::kExactFlop},
               {"matrix_flop", "matrix work", Kind::kFlop, Worth::kMain},
               {"matrix_flop_exact", "exact", Kind::kExactFlop}}};
  for (const auto& [name, work] : {std::pair{"backward", backward}, std::pair{"forward", forward}})
    table.rows.push_back({name, Figure::exact(work.launches), flop_cell(work), exact_cell(work),
                          matrix_flop_of(work), matrix_flop_of(work)});
  Section s{"Sides", {}, std::move(table), {}};
  s.below.emplace_back("  all FLOP: " +
                       quotient_text(backward.flop, forward.flop,
                                     r.ratio.known() ? r.ratio.number() : r.ratio_partial) +
                       (r.ratio_partial ? ", of the measured launches only" : ""));
  s.below.emplace_back(
      "  matrix work (fused multiply-adds and tensor work): " +
      quotient_text(backward.matrix_flop, forward.matrix_flop, r.matrix_ratio.number()));
  std::string others;
  for (const auto& p : report.phases)
    if (p.name != "backward" && p.name != "forward")
      others += (others.empty() ? "" : ", ") + p.name;
  if (!others.empty()) s.below.emplace_back("  On neither side: " + others, Tone::kDim);
  for (const auto& rule : report.rules)
    if (rule.work.launches > 0 && (rule.phase == "backward" || rule.phase == "forward"))
      s.below.emplace_back("  " + rule.phase + ": " + to_grouped(rule.work.launches) +
                               " launches by the rule: " + rule.rule,
                           Tone::kDim);
  return s;
}

Section parts_section(const char* title, const char* key, Column name,
                      const std::vector<SidePart>& parts) {
  if (parts.empty()) return {};
  Table table{key,
              {name,
               {"side", "side", Kind::kText, Worth::kMain},
               {"launches", "launches", Kind::kCount},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_exact", "exact", Kind::kExactFlop},
               {"matrix_flop", "matrix work", Kind::kFlop}}};
  table.long_list = true;
  for (const auto& part : parts)
    table.rows.push_back({part.name, std::string(part.side), Figure::exact(part.work.launches),
                          flop_cell(part.work), exact_cell(part.work), matrix_flop_of(part.work)});
  return {title, {}, std::move(table), {}};
}

Section expectation_section(const Report& report) {
  const RatioReport& r = report.ratio;
  Section s{"Expectation", {}, std::nullopt, {}};
  if (!r.expected) {
    s.above.emplace_back(
        "  none: no range below one that says forward holds matrix work, so there are no layers");
    return s;
  }
  s.above.emplace_back(
      "  A product's backward pass costs twice its forward pass; once where its input needs no "
      "gradient: 2 - f1 where that is the first layer.");
  Table table{"ratio_layers",
              {{"layer", "layer"},
               {"forward_matrix_flop", "forward matrix work", Kind::kFlop, Worth::kMain},
               {"forward_matrix_flop_exact", "exact", Kind::kExactFlop},
               {"first", "first"}}};
  table.long_list = true;
  for (const auto& l : r.layers)
    table.rows.push_back({l.path, Figure::exact(l.forward_matrix_flop),
                          Figure::exact(l.forward_matrix_flop), l.first ? "first" : ""});
  if (!table.rows.empty()) s.table = std::move(table);
  if (r.first_layer_share)
    s.below.emplace_back("  f1 = " + to_grouped(r.first_layers_flop) + " / " +
                         to_grouped(r.layered_flop) + " = " + fixed(*r.first_layer_share, 4) +
                         ": first layers, of the forward ranges that have layers");
  std::string least = r.expected->certain() ? "" : fixed(r.expected->least, 4) + " to ";
  if (r.expected->certain() && r.first_layer_share &&
      fixed(2 - *r.first_layer_share, 6) == fixed(r.expected->most, 6))
    least = "2 - f1 = ";
  s.below.emplace_back("  expected: " + least + fixed(r.expected->most, 4) + " of matrix work" +
                       verdict_text(r));
  if (!r.expected->basis.empty()) s.below.emplace_back("  " + r.expected->basis);
  return s;
}

}  // namespace

std::vector<Section> explained_ratio(const Report& report) {
  std::vector<Section> sections{quotient_section(report),
                                parts_section("Kernels of each side", "ratio_kernels",
                                              {"kernel", "kernel"}, sides_by_kernel(report)),
                                parts_section("Operators of each side", "ratio_operators",
                                              {"operator", "operator"}, sides_by_operator(report)),
                                expectation_section(report)};
  std::erase_if(sections, [](const Section& s) { return s.empty(); });
  return sections;
}

}  // namespace flopinj::reduce
