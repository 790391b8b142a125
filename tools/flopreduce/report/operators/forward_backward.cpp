#include "report/operators/forward_backward.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "analytic/attention_kernels.h"
#include "analytic/operator_flop.h"

namespace flopinj::reduce {
namespace {

// Amounts of work that are about 2 % apart are one size. Kernels compute whole tiles: products that
// are as large, with the sides of their matrices exchanged, may be a third apart.
constexpr int kPerDoubling = 32, kTiles = 13;
int work_size(u128 flop) {
  return static_cast<int>(kPerDoubling * std::log2(static_cast<double>(std::max<u128>(1, flop))));
}

// By kPasses.
constexpr Work ForwardBackward::*kSides[] = {&ForwardBackward::forward, &ForwardBackward::backward,
                                             &ForwardBackward::recompute};
constexpr size_t kBackward = 1;

}  // namespace

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

// Of a backward path that found no forward operator: its autograd node, or whatever operator it
// names.
std::string ForwardBackwardBuilder::node_name(uint32_t path) const {
  for (uint32_t at = path; at > PathTable::kLost; at = tables_.paths[at].parent)
    if (const OperatorName* name = operators_.name_of(at);
        name != nullptr && name->kind == OperatorKind::kAutograd)
      return std::string(name->name);
  return operator_name(path);
}

std::string ForwardBackwardBuilder::row_name(uint32_t path, uint32_t home,
                                             const std::string& phase) const {
  if (phase == "backward" && (home == path || join_.shares_node(home))) return node_name(path);
  const bool counts = phase == "backward" || phase == "recompute" || is_forward(phase);
  return counts ? operator_name(home) : std::string();
}

void ForwardBackwardBuilder::add(uint32_t path, const std::string& phase, uint32_t kernel,
                                 const Work& work) {
  if (!is_forward(phase)) return;
  if (const std::string& layer = layer_name(path); phase == "forward" && !layer.empty()) {
    const auto [first, fresh] = first_path_.try_emplace(layer, path);
    if (!fresh) first->second = std::min(first->second, path);
  }
  const std::string type = operator_name(path);
  if (!type.empty()) add_theory(path, type, work, tables_.names[kernel]);
}

void ForwardBackwardBuilder::add_up(const Report& report) {
  const auto add = [&](Rows& rows, const WorkKey& key, const std::vector<std::string>& names) {
    for (WorkGroup& of : group(report, {key, by::kPass}))
      if (of.ids[0] != kNoIndex && of.ids[1] != kNoIndex)
        rows.at(names[of.ids[0]]).*kSides[of.ids[1]] = std::move(of.work);
  };
  add(layers_, by::kLayerOrRange, report.work.layers_or_ranges);
  add(types_, by::kOperator, report.work.operators);
  for (const WorkGroup& of : group(report, {by::kPhase})) {
    const std::string& phase = report.phases[of.ids[0]].name;
    if (phase == "forward") layers_.pass.add(of.work);
    if (is_forward(phase)) types_.pass.add(of.work);
  }
  add_kernels_of_layers(report);
}

void ForwardBackwardBuilder::add_kernels_of_layers(const Report& report) {
  std::vector<std::optional<Direction>> directions;
  for (const KernelReport& kernel : report.kernels)
    directions.push_back(gradient_direction(kernel.mangled));
  for (const WorkGroup& of : group(report, {by::kLayerOrRange, by::kPass, by::kKernel})) {
    if (of.ids[0] == kNoIndex || of.ids[1] != kBackward) continue;
    LayerKernels& kernels = layer_kernels_[report.work.layers_or_ranges[of.ids[0]]];
    const Work& work = of.work;
    const auto direction = directions[of.ids[2]];
    if (direction == Direction::kInputGradient) add_saturating(kernels.input, work.launches);
    if (direction == Direction::kWeightGradient) add_saturating(kernels.weight, work.launches);
    if (direction) add_saturating(kernels.named, work.matrix_flop);
    add_saturating(kernels.matrix, work.matrix_flop);
    kernels.measured = kernels.measured && work.flop_complete();
  }
}

ExpectedRatio ForwardBackwardBuilder::LayerKernels::expected(bool first) const {
  if (input > 0 && input == weight) return {2, 2, {}};
  // Up to a hundredth may be small change: a bias, a sum of partial results.
  const bool one = measured && matrix - named <= matrix / 100 && (input == 0 || weight == 0);
  if (one && weight > 0)
    return {1, 1, "no input gradient (kernels named for the weights' gradient only)"};
  if (one && input > 0)
    return {1, 1, "no weight gradient (kernels named for the input's gradient only)"};
  const std::string unknown = " (its kernels' names do not say which)";
  if (first) return {1, 2, "with or without input gradient" + unknown};
  return {2, 2, "both gradients assumed" + unknown, lacks_gradients(1)};
}

void ForwardBackwardBuilder::add_theory(uint32_t path, const std::string& type, const Work& work,
                                        std::string_view kernel) {
  const uint32_t its = operators_.operator_of(path);
  Theory& theory = theory_[its];
  theory.type = type;
  theory.layer = layer_name(path);
  const bool sparse = multiplies_sparse(kernel) || operators_.sparse(path);
  const bool product = sparse || is_matrix_work(operators_.name_of(its)->name);
  theory.uncounted = theory.uncounted || (product && !work.flop_complete());
  if (work.matrix_flop == 0) return;
  add_saturating(theory.matrix, work.matrix_flop);
  const auto gradients = sparse ? std::nullopt : gradients_of(path, kernel);
  theory.known = theory.known && gradients.has_value();
  if (!gradients) return;
  theory.gradients += gradients->all * static_cast<double>(work.matrix_flop);
  theory.by_input += gradients->by_input * static_cast<double>(work.matrix_flop);
}

// By the innermost of an operator's functions that shows it: which kernels of attention ran.
std::optional<ProductGradients> ForwardBackwardBuilder::gradients_of(
    uint32_t path, std::string_view kernel) const {
  const uint32_t outermost = operators_.operator_of(path);
  std::optional<ProductGradients> found;
  for (; path > PathTable::kLost; path = tables_.paths[path].parent) {
    if (const OperatorName* name = operators_.name_of(path))
      if (const auto gradients = operator_gradients(*name);
          gradients && (!found || gradients->whole))
        found = gradients;
    if (path == outermost) break;
  }
  if (found || has_operator_formula(*operators_.name_of(outermost))) return found;
  // Of fused attention in an operator that nothing else is known of: five products for two.
  const auto known = attention_kernel(kernel);
  if (!known || known->does != AttentionKernel::Does::kForward || known->varies)
    return std::nullopt;
  return ProductGradients{2.5, 0};
}

void ForwardBackwardBuilder::add_model(uint32_t path, const std::string& phase,
                                       const ModelFlop& model,
                                       const std::vector<uint32_t>& launching) {
  const bool forward = is_forward(phase);
  const auto side = forward ? &ForwardBackward::forward_model : &ForwardBackward::backward_model;
  const auto add_to = [&](uint32_t home, const std::string& type, const ModelFlop& part) {
    if (const std::string& name = layer_name(home); phase != "loss" && !name.empty())
      layers_.at(name).*side += part;
    if (!type.empty()) types_.at(type).*side += part;
  };
  if (forward) return add_to(path, operator_name(path), model);
  if (phase != "backward") return;
  std::vector<OperatorJoin::Share> shares;
  bool alike = true;
  for (const uint32_t p : launching)
    if (const auto* forwards = join_.forwards_of(p)) {
      shares.insert(shares.end(), forwards->begin(), forwards->end());
      alike = alike && join_.alike(p);
    }
  if (shares.empty()) return add_to(path, node_name(path), model);
  OperatorJoin::for_each_share(shares, alike, [&](uint32_t home, const Part& part) {
    const std::string type = join_.shares_node(home) ? node_name(path) : operator_name(home);
    add_to(home, type, part.of(model));
  });
}

void ForwardBackwardBuilder::add_calls(uint32_t path, const OperatorFacts& facts, bool more) {
  const auto theory = theory_.find(path);
  if (!is_forward(facts.phase) || theory == theory_.end()) return;
  theory->second.no_product = facts.formula.flop && !is_matrix_work(facts.name->name);
  if (more && facts.formula_flop() > 0)
    theory->second.more =
        std::max(theory->second.more, quotient(facts.work.matrix_flop, facts.formula_flop()));
  ForwardCalls& calls = theory->second.calls;
  add_saturating(calls.calls, facts.calls);
  add_saturating(calls.multiply_adds, facts.formula.flop
                                          ? facts.algorithm().multiply_adds
                                          : facts.work.matrix_flop / static_cast<u128>(facts.fma));
}

void ForwardBackwardBuilder::add_unclear(uint32_t path) {
  layers_.unclear.insert(layer_name(path));
  types_.unclear.insert(operator_name(path));
}

void ForwardBackwardBuilder::add_outside(uint32_t path, const Work& work) {
  if (operators_.operator_of(path) != kNoIndex) {
    if (work.matrix_flop > 0 || !work.flop_complete()) outside_.insert(path);
  } else if (work.matrix_flop > 0) {
    bare_.insert(work_size(work.matrix_flop / work.launches));
  }
}

bool ForwardBackwardBuilder::may_be_gradient(uint32_t path, const Work& work) const {
  if (operators_.operator_of(path) != kNoIndex)
    return (work.matrix_flop > 0 || !work.flop_complete()) && gradient_paths_.contains(path);
  return work.matrix_flop > 0 &&
         gradient_sizes_.contains(work_size(work.matrix_flop / work.launches));
}

void ForwardBackwardBuilder::Sum::add(const Sum& other) {
  matrix += other.matrix;
  least += other.least;
  most += other.most;
  known = known && other.known;
  assumed += other.assumed;
  again = again || other.again;
  uncounted = uncounted || other.uncounted;
  for (const std::string& text : other.basis)
    if (std::find(basis.begin(), basis.end(), text) == basis.end()) basis.push_back(text);
}

std::optional<ExpectedRatio> ForwardBackwardBuilder::Sum::ratio() const {
  constexpr size_t kMostShown = 3;
  if (!known || matrix <= 0) return std::nullopt;
  ExpectedRatio ratio{least / matrix, most / matrix, {}, lacks_gradients(assumed / matrix)};
  if (uncounted)
    ratio.lacks = std::string("products without a FLOP count") + (ratio.lacks.empty() ? "" : "; ") +
                  ratio.lacks;
  for (size_t i = 0; i < basis.size() && i < kMostShown; ++i)
    ratio.basis += (i == 0 ? "" : "; ") + basis[i];
  if (basis.size() > kMostShown)
    ratio.basis += "; " + std::to_string(basis.size() - kMostShown) + " more";
  return ratio;
}

// In the order of forward, of those whose input may need no gradient.
uint32_t ForwardBackwardBuilder::first_product() const {
  const auto found = std::find_if(theory_.begin(), theory_.end(),
                                  [](const auto& entry) { return entry.second.by_input > 0; });
  return found == theory_.end() ? kNoIndex : found->first;
}

// Of products that have one node with others, by path.
std::unordered_map<uint32_t, ExpectedBackward> ForwardBackwardBuilder::expected_of_functions(
    const GradientFinder& gradients) const {
  struct OneNode {
    std::vector<uint32_t> inside;
    u128 multiply_adds = 0;
    bool known = true;
  };
  std::map<uint32_t, OneNode> functions;
  for (const auto& [path, theory] : theory_) {
    if ((theory.matrix == 0 && !theory.uncounted) ||
        !is_matrix_work(operators_.name_of(path)->name))
      continue;
    const uint32_t around = gradients.function_around(path);
    if (around == kNoIndex) continue;
    OneNode& function = functions[around];
    function.inside.push_back(path);
    // Products without a count are in the node's gradients, and in no sum of forward's.
    function.known =
        function.known && theory.known && !theory.uncounted && theory.calls.multiply_adds > 0;
    add_saturating(function.multiply_adds, theory.calls.multiply_adds);
  }
  std::unordered_map<uint32_t, ExpectedBackward> expected;
  for (const auto& [at, function] : functions)
    if (function.known)
      for (const ExpectedBackward of =
               gradients.of_function(at, function.inside, function.multiply_adds);
           const uint32_t path : function.inside)
        expected[path] = of;
  return expected;
}

// Of a forward operator's products.
ForwardBackwardBuilder::Sum ForwardBackwardBuilder::expected_of(
    uint32_t path, const Theory& theory, const GradientFinder& gradients,
    const ExpectedBackward& backward) const {
  Sum sum;
  sum.matrix = static_cast<double>(theory.matrix);
  sum.known = theory.known;
  sum.least = sum.most = theory.gradients;
  const auto because = [&](const std::string& what) {
    const std::string place = theory.layer.empty() ? theory.type : theory.layer;
    sum.basis.push_back(place + ": " + what + " (" + backward.text + ")");
  };
  sum.again = backward.again;
  if (theory.more > 0) {
    sum.known = false;
    sum.basis.push_back(theory.type + " executes " + std::to_string(std::lround(theory.more)) +
                        " times its formula: several products in a call");
    return sum;
  }
  if (backward.found == ExpectedBackward::Found::kKnown) {
    sum.least = sum.matrix * backward.least;
    sum.most = sum.matrix * backward.most;
    sum.assumed = backward.assumed ? sum.matrix : 0;
    if (!backward.text.empty()) because(backward.what);
  } else if (backward.found == ExpectedBackward::Found::kMixed) {
    sum.known = false;
    because("not known");
  } else if (gradients.first(path) || (!gradients.any() && path == first_product())) {
    sum.least = theory.gradients - theory.by_input;
    sum.assumed = sum.matrix;
    because("with or without input gradient");
  } else {
    sum.assumed = sum.matrix;
    because("both gradients assumed");
  }
  return sum;
}

void ForwardBackwardBuilder::set_expected(const GradientFinder& gradients,
                                          OperatorsReport& report) {
  std::map<std::string, Sum> types, layers;
  Sum all;
  const auto functions = expected_of_functions(gradients);
  for (const auto& [path, theory] : theory_) {
    if (theory.uncounted)
      all.uncounted = types[theory.type].uncounted = layers[theory.layer].uncounted = true;
    if (theory.matrix == 0) continue;
    const auto function = functions.find(path);
    const Sum sum =
        expected_of(path, theory, gradients,
                    function != functions.end()
                        ? function->second
                        : gradients.of(path, theory.calls,
                                       theory.gradients / static_cast<double>(theory.matrix),
                                       theory.by_input > 0));
    types[theory.type].add(sum);
    if (!sum.known) {
      const bool product =
          is_matrix_work(operators_.name_of(path)->name) || operators_.sparse(path);
      if (theory.no_product)
        add_saturating(report.beside_products, theory.matrix);
      else if (!sum.basis.empty())
        report.products_missing = sum.basis.front();
      else if (product)
        report.products_missing = theory.type + ": no theory";
      continue;
    }
    if (const auto sizes = weight_sizes(*operators_.name_of(path));
        sizes && sum.most < theory.gradients * (1 - 1e-9) && !gradients.of_weights(path))
      lacking_[*sizes].push_back(&theory);
    layers[theory.layer].add(sum);
    all.add(sum);
    add_saturating(report.products_matrix_flop, theory.matrix);
  }
  for (ForwardBackward& type : types_.rows)
    if (const auto found = types.find(type.name); found != types.end())
      type.expected = found->second.ratio();
  for (ForwardBackward& layer : layers_.rows) {
    const auto found = layers.find(layer.name);
    if (found == layers.end()) continue;
    const auto matrix = static_cast<double>(layer.forward.matrix_flop);
    if (found->second.matrix >= 0.5 * matrix) layer.expected = found->second.ratio();
  }
  report.unclear_gradients = gradients.has_more_than([&](uint32_t path) {
    const auto found = theory_.find(path);
    return found == theory_.end() ? 0 : found->second.calls.calls;
  });
  if (all.again && all.assumed > 0)
    report.products_missing = "gradients are computed again, and not of all products is it known";
  else
    report.products_expected = all.ratio();
}

// A product as large as weights of which backward lacks a gradient, in no phase of training: zero
// bubble computes weights' gradients so, once there is time. So is a convolution's gradient. A
// launch of no operator, as of an extension's kernel, tells no sizes: it may be such a product
// where it does as much matrix work as a call of the forward product, which is as large. But where
// such launches are as large as products that lack nothing, too, whole steps are without names.
void ForwardBackwardBuilder::find_gradients_outside() {
  const auto lacks_one = [&](const std::vector<const Theory*>& of) {
    for (const Theory* theory : of) {
      types_.lacking.insert(theory->type);
      layers_.lacking.insert(theory->layer);
    }
  };
  for (const uint32_t path : outside_) {
    if (operators_.name_of(operators_.operator_of(path))->function() == "linear") continue;
    for (uint32_t at = path; at != kNoIndex; at = operators_.parent_of(at)) {
      const OperatorName* name = operators_.name_of(at);
      if (name == nullptr || name->kind != OperatorKind::kFunction) break;
      if (is_matrix_work(name->name) && name->function().ends_with("_backward")) {
        gradient_paths_.insert(path);
        break;
      }
      const auto sizes = result_sizes(*name);
      const auto found = sizes ? lacking_.find(*sizes) : lacking_.end();
      if (found == lacking_.end()) continue;
      gradient_paths_.insert(path);
      lacks_one(found->second);
      break;
    }
  }
  struct AsLarge {
    std::vector<const Theory*> lacking;
    bool whole = false;  // a product that lacks nothing
  };
  std::unordered_set<const Theory*> lacks;
  for (const auto& [sizes, theories] : lacking_) lacks.insert(theories.begin(), theories.end());
  std::map<int, AsLarge> as_large;  // by bare_
  for (const auto& [path, theory] : theory_) {
    if (theory.matrix == 0) continue;
    const int size = work_size(theory.matrix / std::max<uint64_t>(1, theory.calls.calls));
    const auto end = bare_.upper_bound(size + kTiles);
    for (auto bare = bare_.lower_bound(size - kTiles); bare != end; ++bare)
      if (lacks.contains(&theory))
        as_large[*bare].lacking.push_back(&theory);
      else
        as_large[*bare].whole = true;
  }
  const bool steps = std::ranges::any_of(
      as_large, [](const auto& one) { return one.second.whole && one.second.lacking.empty(); });
  if (steps) return;
  for (const auto& [size, its] : as_large) {
    if (its.lacking.empty()) continue;
    gradient_sizes_.insert(size);
    lacks_one(its.lacking);
  }
}

// Of layers in the order of forward whose ranges name no operators.
void ForwardBackwardBuilder::set_expected_of_layers() {
  std::unordered_set<std::string> named;
  for (const auto& [path, theory] : theory_) named.insert(theory.layer);
  const auto has_backward = [](const ForwardBackward& layer) {
    return layer.forward.matrix_flop > 0 && layer.backward.launches > 0;
  };
  const bool any = std::any_of(layers_.rows.begin(), layers_.rows.end(), has_backward);
  bool first = true;
  for (ForwardBackward& layer : layers_.rows) {
    if (layer.forward.matrix_flop == 0) continue;
    if (named.contains(layer.name)) {  // its operators have told, or have no theory
      first = first && layer.backward.launches == 0;
      continue;
    }
    if (any && layer.backward.launches == 0) {
      layer.expected = ExpectedRatio{0, 0, "no gradient: no backward work names it"};
      continue;
    }
    layer.expected = layer_kernels_[layer.name].expected(first);
    first = false;
  }
}

void ForwardBackwardBuilder::Rows::finish() {
  for (ForwardBackward& row : rows) {
    const Work &forward = row.forward, &backward = row.backward;
    if (forward.matrix_flop > 0 && forward.flop_complete() && backward.flop_complete() &&
        backward.launches > 0)
      row.ratio = quotient(backward.matrix_flop, forward.matrix_flop);
    if (forward.launches > 0 && pass.flop > 0 && pass.flop_complete())
      row.forward_share = quotient(forward.flop, pass.flop);
    row.forward_at_least = unclear.contains(row.name);
    row.backward_at_least = lacking.contains(row.name);
  }
}

void ForwardBackwardBuilder::finish(const GradientFinder& gradients, OperatorsReport& report) {
  if (report.differentiated_again == 0) {
    set_expected(gradients, report);
    find_gradients_outside();
  }
  layers_.finish();
  types_.finish();
  const auto first_path = [&](const ForwardBackward& layer) {
    const auto found = first_path_.find(layer.name);
    return found == first_path_.end() ? kNoIndex : found->second;
  };
  std::stable_sort(layers_.rows.begin(), layers_.rows.end(),
                   [&](const auto& a, const auto& b) { return first_path(a) < first_path(b); });
  if (report.differentiated_again == 0) set_expected_of_layers();
  const auto flop = [](const ForwardBackward& row) {
    u128 sum = row.forward.flop;
    add_saturating(sum, row.backward.flop);
    return sum;
  };
  std::stable_sort(layers_.rows.begin(), layers_.rows.end(),
                   [&](const auto& a, const auto& b) { return flop(a) > flop(b); });
  std::stable_sort(types_.rows.begin(), types_.rows.end(), [&](const auto& a, const auto& b) {
    return flop(a) != flop(b) ? flop(a) > flop(b) : a.name < b.name;
  });
  // Ranges around nothing but recomputation are on neither side.
  std::erase_if(layers_.rows, [](const ForwardBackward& layer) {
    return layer.forward.launches == 0 && layer.backward.launches == 0;
  });
  report.layers = std::move(layers_.rows);
  report.by_forward = std::move(types_.rows);
}

}  // namespace flopinj::reduce
