#include "report/forward_backward.h"

#include <algorithm>

#include "analytic/operator_flop.h"

namespace flopinj::reduce {
namespace {

Work* part_of(ForwardBackward& row, const std::string& phase) {
  if (phase == "backward") return &row.backward;
  if (phase == "recompute") return &row.recompute;
  return &row.forward;
}

void add_known(ForwardBackward& row, bool forward, std::optional<u128> formula) {
  add_saturating(forward ? row.forward_formula : row.backward_formula, formula.value_or(0));
  bool& partial = forward ? row.forward_formula_partial : row.backward_formula_partial;
  partial = partial || !formula;
}

}  // namespace

ForwardBackwardBuilder::ForwardBackwardBuilder(const Model& model, const OperatorMap& operators,
                                               const OperatorJoin& join)
    : model_(model), operators_(operators), join_(join) {
  join.for_each_forward([&](uint32_t path) { joined_.insert(operators.operator_of(path)); });
}

ForwardBackward& ForwardBackwardBuilder::Rows::at(const std::string& name) {
  const auto [entry, fresh] = index.try_emplace(name, rows.size());
  if (fresh) rows.emplace_back().name = name;
  return rows[entry->second];
}

const std::string& ForwardBackwardBuilder::layer_name(uint32_t path) {
  const uint32_t at = operators_.layer_of(path);
  const auto [entry, fresh] = layer_names_.try_emplace(at);
  if (fresh) entry->second = operators_.layer_name(at);
  return entry->second;
}

std::string ForwardBackwardBuilder::operator_name(uint32_t path) const {
  const uint32_t at = operators_.operator_of(path);
  return at == kNoIndex ? std::string() : std::string(operators_.name_of(at)->name);
}

// Of a backward path that found no forward operator: its autograd node, or whatever operator it names.
std::string ForwardBackwardBuilder::node_name(uint32_t path) const {
  for (uint32_t at = path; at > PathTable::kLost; at = model_.paths[at].parent)
    if (const OperatorName* name = operators_.name_of(at);
        name != nullptr && name->kind == OperatorKind::kAutograd)
      return std::string(name->name);
  return operator_name(path);
}

// An operator whose number a backward one has ran forward, whatever the ranges around it say.
bool ForwardBackwardBuilder::is_forward(uint32_t path, const std::string& phase) const {
  return phase == "forward" || phase == "loss" ||
         (phase == "other" && joined_.contains(operators_.operator_of(path)));
}

std::string ForwardBackwardBuilder::row_name(uint32_t path, uint32_t home,
                                             const std::string& phase) const {
  if (phase == "backward" && home == path) return node_name(path);
  const bool counts = phase == "backward" || phase == "recompute" || is_forward(home, phase);
  return counts ? operator_name(home) : std::string();
}

void ForwardBackwardBuilder::add(uint32_t path, const std::string& phase, const Work& work) {
  join_.for_each_home(path, phase, [&](uint32_t home, const Part& part) {
    const Work share = part.of(work);
    add_to_layer(home, phase, share);
    if (is_forward(home, phase)) types_pass_.add(share);
    const std::string type = row_name(path, home, phase);
    if (type.empty()) return;
    part_of(types_.at(type), phase)->add(share);
    if (is_forward(home, phase) && share.matrix_flop > 0) add_theory(home, type, share);
  });
}

void ForwardBackwardBuilder::add_to_layer(uint32_t path, const std::string& phase,
                                          const Work& work) {
  if (phase != "forward" && phase != "backward" && phase != "recompute") return;
  if (phase == "forward") layers_pass_.add(work);
  const std::string& name = layer_name(path);
  if (name.empty()) return;
  part_of(layers_.at(name), phase)->add(work);
  if (phase != "forward") return;
  const auto [first, fresh] = first_path_.try_emplace(name, path);
  if (!fresh) first->second = std::min(first->second, path);
}

void ForwardBackwardBuilder::add_theory(uint32_t path, const std::string& type, const Work& work) {
  Theory& theory = theory_[type][operators_.operator_of(path)];
  const auto gradients = gradients_of(path);
  const auto matrix = static_cast<double>(work.matrix_flop);
  theory.known = theory.known && gradients.has_value();
  if (!gradients) return;
  theory.matrix += matrix;
  theory.gradients += gradients->all * matrix;
  theory.by_input += gradients->by_input * matrix;
}

// By the innermost of an operator's functions that tells: which kernels of attention ran.
std::optional<ProductGradients> ForwardBackwardBuilder::gradients_of(uint32_t path) const {
  const uint32_t outermost = operators_.operator_of(path);
  for (; path > PathTable::kLost; path = model_.paths[path].parent) {
    if (const OperatorName* name = operators_.name_of(path))
      if (const auto gradients = operator_gradients(*name)) return gradients;
    if (path == outermost) break;
  }
  return std::nullopt;
}

void ForwardBackwardBuilder::add_formula(uint32_t path, const std::string& phase,
                                         std::optional<u128> formula,
                                         const std::vector<uint32_t>& launching) {
  const bool forward = is_forward(path, phase);
  const auto add_to = [&](uint32_t home, const std::string& type, std::optional<u128> part) {
    const bool in_layers = phase == "forward" || phase == "backward";
    if (const std::string& name = layer_name(home); in_layers && !name.empty())
      add_known(layers_.at(name), forward, part);
    if (!type.empty()) add_known(types_.at(type), forward, part);
  };
  if (forward) return add_to(path, operator_name(path), formula);
  if (phase != "backward") return;
  std::vector<OperatorJoin::Share> shares;
  for (const uint32_t p : launching)
    if (const auto* forwards = join_.forwards_of(p))
      shares.insert(shares.end(), forwards->begin(), forwards->end());
  if (shares.empty()) return add_to(path, node_name(path), formula);
  OperatorJoin::for_each_share(shares, [&](uint32_t home, const Part& part) {
    add_to(home, operator_name(home), formula ? std::optional(part.of(*formula)) : std::nullopt);
  });
}

// The one entered first that does matrix work.
void ForwardBackwardBuilder::find_first_layer() {
  first_layer_.emplace();
  uint32_t first = kNoIndex;
  for (const ForwardBackward& layer : layers_.rows) {
    const auto path = first_path_.find(layer.name);
    if (layer.forward.matrix_flop == 0 || path == first_path_.end() || path->second >= first)
      continue;
    first = path->second;
    first_layer_ = layer.name;
  }
}

bool ForwardBackwardBuilder::in_first_layer(uint32_t path) {
  if (!first_layer_) find_first_layer();
  if (first_layer_->empty()) return false;
  const auto* forwards = join_.forwards_of(path);
  if (forwards == nullptr) return layer_name(path) == *first_layer_;
  return std::all_of(forwards->begin(), forwards->end(), [&](const OperatorJoin::Share& s) {
    return layer_name(s.first) == *first_layer_;
  });
}

// Of products alone. The first layer needs no gradient by its input.
std::optional<double> ForwardBackwardBuilder::expected_of(const std::string& type) {
  const auto found = theory_.find(type);
  if (found == theory_.end()) return std::nullopt;
  double matrix = 0, gradients = 0;
  for (const auto& [path, theory] : found->second) {
    if (!theory.known) return std::nullopt;
    matrix += theory.matrix;
    gradients += theory.gradients - (in_first_layer(path) ? theory.by_input : 0);
  }
  return gradients / matrix;
}

void ForwardBackwardBuilder::set_ratio(ForwardBackward& row) {
  const Work &forward = row.forward, &backward = row.backward;
  if (forward.matrix_flop > 0 && forward.flop_complete() && backward.flop_complete() &&
      backward.launches > 0)
    row.ratio = quotient(backward.matrix_flop, forward.matrix_flop);
}

void ForwardBackwardBuilder::set_share(ForwardBackward& row, const Work& pass) {
  if (row.forward.launches > 0 && pass.flop > 0 && pass.flop_complete())
    row.forward_share = quotient(row.forward.flop, pass.flop);
}

void ForwardBackwardBuilder::finish(OperatorsReport& report) {
  if (!first_layer_) find_first_layer();
  for (ForwardBackward& layer : layers_.rows) {
    set_ratio(layer);
    set_share(layer, layers_pass_);
    if (layer.forward.matrix_flop > 0) layer.expected = layer.name == *first_layer_ ? 1 : 2;
  }
  const auto first_path = [&](const ForwardBackward& layer) {
    const auto found = first_path_.find(layer.name);
    return found == first_path_.end() ? kNoIndex : found->second;
  };
  std::stable_sort(layers_.rows.begin(), layers_.rows.end(),
                   [&](const auto& a, const auto& b) { return first_path(a) < first_path(b); });
  for (ForwardBackward& type : types_.rows) {
    set_ratio(type);
    set_share(type, types_pass_);
    type.expected = expected_of(type.name);
  }
  const auto flop = [](const ForwardBackward& row) {
    u128 sum = row.forward.flop;
    add_saturating(sum, row.backward.flop);
    return sum;
  };
  std::stable_sort(types_.rows.begin(), types_.rows.end(), [&](const auto& a, const auto& b) {
    return flop(a) != flop(b) ? flop(a) > flop(b) : a.name < b.name;
  });
  report.layers = std::move(layers_.rows);
  report.by_forward = std::move(types_.rows);
}

}  // namespace flopinj::reduce
