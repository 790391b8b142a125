#include "report/layers.h"

#include <algorithm>

#include "support/text.h"

namespace flopinj::reduce {
namespace {

bool is_forward(const PhaseRules& rules, uint32_t rule) {
  return rule != kNoIndex && rules.rules()[rule].phase == "forward";
}

// The layers of a forward pass are the ranges directly below a range that says forward (the
// outermost one that does), as far as they hold matrix work. Paths are in the order in which they
// were first entered.
void find_layers(const Model& model, const PhaseRules& rules, const PhaseMap& phases,
                 const std::vector<u128>& inclusive, RatioReport& report) {
  u128& first = report.first_layers_flop;
  u128& all = report.layered_flop;
  std::vector<bool> seen_layer(model.paths.size(), false);  // of a forward range
  for (uint32_t i = PathTable::kLost + 1; i < model.paths.size(); ++i) {
    const uint32_t parent = model.paths[i].parent;
    if (parent <= PathTable::kLost || inclusive[i] == 0) continue;
    const uint32_t grandparent = model.paths[parent].parent;
    const bool layer =
        is_forward(rules, phases.own_rule(parent)) &&
        (grandparent <= PathTable::kLost || !is_forward(rules, phases.path_rule(grandparent)));
    if (!layer) continue;
    const bool is_first = !seen_layer[parent];
    seen_layer[parent] = true;
    if (is_first) {
      add_saturating(first, inclusive[i]);
      add_saturating(all, inclusive[parent]);  // forward ranges without layers say nothing
    }
    report.layers.push_back({path_string(model, i), inclusive[i], is_first});
  }
  if (report.layers.empty() || all == 0) return;
  report.first_layer_share = quotient(first, all);
  report.expected = 2 - *report.first_layer_share;
}

}  // namespace

std::string range_label(const Model& model, uint32_t path) {
  constexpr size_t kLimit = 256;
  const auto& range = model.paths[path];
  const std::string domain =
      range.domain == NamePool::kEmpty ? "" : model.names[range.domain] + ":";
  return cut(domain + model.names[range.name], kLimit);
}

std::string path_string(const Model& model, uint32_t path, bool escaped) {
  constexpr size_t kLimit = 1024;
  if (path == PathTable::kRoot) return "(no range)";
  std::vector<uint32_t> levels;
  for (; path > PathTable::kLost; path = model.paths[path].parent) levels.push_back(path);
  std::string text = path == PathTable::kLost ? "(lost range)" : "";
  for (auto level = levels.rbegin(); level != levels.rend() && text.size() <= kLimit; ++level) {
    if (!text.empty()) text += "/";
    for (const char c : range_label(model, *level)) {
      if (escaped && c == '/') text += '\\';
      text += c;
    }
  }
  return cut(text, kLimit);
}

RatioReport backward_forward(const Model& model, const PhaseRules& rules, const PhaseMap& phases,
                             const Work& forward, const Work& backward,
                             std::vector<u128> forward_matrix) {
  RatioReport report;
  if (forward.flop > 0 && backward.launches > 0) {
    const double ratio = quotient(backward.flop, forward.flop);
    const bool complete = forward.flop_complete() && backward.flop_complete();
    (complete ? report.ratio : report.ratio_partial) = ratio;
    if (complete && forward.matrix_flop > 0)
      report.matrix_ratio = quotient(backward.matrix_flop, forward.matrix_flop);
  }
  for (size_t i = forward_matrix.size();
       i-- > PathTable::kLost + 1;)  // children come after their parents
    add_saturating(forward_matrix[model.paths[static_cast<uint32_t>(i)].parent], forward_matrix[i]);
  find_layers(model, rules, phases, forward_matrix, report);
  return report;
}

}  // namespace flopinj::reduce
