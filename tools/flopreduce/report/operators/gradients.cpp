#include "report/operators/gradients.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "analytic/operator_flop.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr std::array<std::string_view, 4> kInput = {"dgrad", "input_gradient", "bwd_data",
                                                    "backward_data"};
constexpr std::array<std::string_view, 4> kWeight = {"wgrad", "weight_gradient", "bwd_filter",
                                                     "backward_filter"};

constexpr std::array<std::string_view, 4> kSparseKernels = {"cusparse", "spmm", "csrmm", "csrmv"};

constexpr const char* kNotRecorded = "calls not recorded";

enum class Products : uint8_t { kNeither, kOne, kTwo };

Products products_of(double ratio) {
  if (ratio >= 0.7 && ratio <= 1.4) return Products::kOne;
  if (ratio >= 1.6 && ratio <= 2.8) return Products::kTwo;
  return Products::kNeither;
}

// Of so many calls, each with a kernel for one gradient or for each of both; nothing where kernels
// are too many or too few for that.
std::optional<GradientEvidence> of_calls(uint64_t input, uint64_t weight, uint64_t calls) {
  if (std::max(input, weight) > calls || input + weight < calls) return std::nullopt;
  if (input == calls && weight == calls)
    return GradientEvidence{Gradients::kBoth, "kernels named for both gradients", {}};
  std::string text = "kernels named for one gradient: ";
  if (input < calls) text += "input gradient of " + to_grouped(input);
  if (input < calls && weight < calls) text += ", ";
  if (weight < calls) text += "weights' gradient of " + to_grouped(weight);
  const auto all = static_cast<double>(calls);
  return GradientEvidence{Gradients::kBoth, text + " of " + to_grouped(calls) + " calls",
                          GradientEvidence::Shares{static_cast<double>(input) / all,
                                                   static_cast<double>(weight) / all}};
}

// What the call was asked for; nothing where its name does not say, or neither was.
std::optional<GradientEvidence> gradients_of_call(const OperatorName& name) {
  const auto& asked = name.settings.gradients;
  if (!asked || (!asked->input && !asked->weight)) return std::nullopt;
  const char* const text = asked->input && asked->weight ? "its output_mask has both gradients"
                           : asked->weight ? "its output_mask has the weights' gradient alone"
                                           : "its output_mask has the input's gradient alone";
  const Gradients found = !asked->input    ? Gradients::kNoInput
                          : !asked->weight ? Gradients::kNoWeight
                                           : Gradients::kBoth;
  return GradientEvidence{found, text, {}};
}

}  // namespace

bool computes_both_gradients(const Formula& formula, const OperatorName& name) {
  const std::string_view function = name.function();
  return formula.backward && formula.flop &&
         (function.find("conv") != std::string_view::npos || function == "linear_backward");
}

std::optional<Direction> gradient_direction(std::string_view kernel) {
  const auto has = [&](std::string_view part) { return contains_any_case(kernel, part); };
  if (std::any_of(kInput.begin(), kInput.end(), has)) return Direction::kInputGradient;
  if (std::any_of(kWeight.begin(), kWeight.end(), has)) return Direction::kWeightGradient;
  return std::nullopt;
}

bool multiplies_sparse(std::string_view kernel) {
  return std::ranges::any_of(
      kSparseKernels, [&](std::string_view part) { return contains_any_case(kernel, part); });
}

GradientEvidence gradients_of_kernels(const OperatorFacts& facts, bool first, bool beside) {
  const OperatorKernel *input = nullptr, *weight = nullptr, *other = nullptr;
  uint64_t inputs = 0, weights = 0;
  for (const auto& kernel : facts.kernels) {
    const auto direction = gradient_direction(kernel.name);
    const bool counts =
        !facts.work.flop_complete() || kernel.matrix_flop > facts.work.matrix_flop / 100;
    if (direction == Direction::kInputGradient)
      input = &kernel, inputs += kernel.launches;
    else if (direction == Direction::kWeightGradient)
      weight = &kernel, weights += kernel.launches;
    else if (counts)
      other = &kernel;
  }
  const auto shown = [](const OperatorKernel& kernel) {
    return "kernel " + cut(demangle(kernel.name), 120);
  };
  if (input != nullptr && weight != nullptr) {
    if (facts.calls_counted && other == nullptr)
      if (const auto counted = of_calls(inputs, weights, facts.calls)) return *counted;
    return {Gradients::kBoth, "kernels named for both gradients", {}};
  }
  if (weight != nullptr && other == nullptr)
    return {Gradients::kNoInput, "only the weights' gradient: " + shown(*weight), {}};
  if (input != nullptr && other == nullptr)
    return {Gradients::kNoWeight, "only the input's gradient: " + shown(*input), {}};
  const u128 both = facts.formula_flop();
  if (!facts.work.flop_complete() || both == 0)
    return {Gradients::kUnknown, "no hardware count", {}};
  switch (products_of(2 * quotient(facts.work.matrix_flop, both))) {
    case Products::kTwo:
      // Of some calls the input's may be missing.
      if (beside && facts.work.matrix_flop < both - both / 100) break;
      return {Gradients::kBoth, "the FLOP of two gradients", {}, true};
    case Products::kOne:
      if (first)
        return {Gradients::kNoInput,
                "the FLOP of one gradient, and nothing before it has any",
                {},
                true};
      break;
    case Products::kNeither:
      break;
  }
  return {Gradients::kUnknown, "neither names nor FLOP of its kernels tell", {}};
}

GradientFinder::GradientFinder(const OperatorMap& operators, const OperatorJoin& join,
                               const OperatorCalls& calls,
                               const std::unordered_set<uint32_t>& products,
                               std::unordered_set<uint32_t> attention)
    : operators_(operators), attention_(std::move(attention)), recorded_(calls.recorded) {
  std::unordered_map<uint32_t, u128> joined;  // launches, by backward path
  for (const auto& [key, found] : calls.joined)
    if (const uint32_t path = OperatorCalls::backward_of(key); products.contains(path))
      add_saturating(joined[path], found.launches);
  const auto note_nodes_around = [&](uint32_t path) {
    if (const AutogradNode* node = operators.node_of(path);
        node != nullptr && node->inside != PathTable::kRoot)
      evaluating_.insert(node->inside);
  };
  for (const auto& [key, found] : calls.joined) note_nodes_around(OperatorCalls::backward_of(key));
  for (const auto& [path, launches] : calls.unjoined) note_nodes_around(path);
  // A few launches are of a step that was not recorded whole.
  complete_ = !joined.empty() && std::ranges::none_of(calls.unjoined, [&](const auto& lost) {
    return products.contains(lost.first) && u128{10} * lost.second > joined[lost.first];
  });
  join.for_each_forward([&](uint32_t path) {
    const uint32_t home = operators.operator_of(path);
    if (home == kNoIndex) return;
    first_ = std::min(first_, home);
    bool products_of_it = false;  // nodes of casts and padding are no calls of it
    for (const auto& [backward, found] : *join.backwards_of(path)) {
      const uint32_t at = operators.operator_of(backward);
      if (at == kNoIndex) continue;
      products_of_it =
          products_of_it || is_matrix_work(operators.name_of(at)->name) || attention_.contains(at);
      Backward& of = backwards_[home][at];
      add_saturating(of.launches, found.launches);
      add_saturating(of.calls, found.calls);
      of.numbers = std::max(of.numbers, found.numbers);
      for (const auto& [forward, launches] : *join.forwards_of(backward))
        of.shared = of.shared || operators.operator_of(forward) != home;
      forwards_[at].push_back(home);
    }
    if (products_of_it) add_saturating(differentiated_[home], calls.differentiated.at(path));
  });
}

bool GradientFinder::has_own_gradient(uint32_t path) const {
  const OperatorName* name = operators_.name_of(path);
  return name != nullptr && is_program_function(*name);
}

std::string GradientFinder::own_gradient_around(uint32_t path) const {
  for (path = operators_.parent_of(path); path != kNoIndex; path = operators_.parent_of(path))
    if (has_own_gradient(path)) return std::string(operators_.name_of(path)->name);
  return {};
}

uint32_t GradientFinder::function_around(uint32_t path) const {
  for (path = operators_.parent_of(path); path != kNoIndex; path = operators_.parent_of(path)) {
    const auto found = backwards_.find(path);
    if (found == backwards_.end() || !has_own_gradient(path)) continue;
    const bool alone = std::ranges::none_of(found->second, [&](const auto& backward) {
      const AutogradNode* node = operators_.node_of(backward.first);
      return node != nullptr && evaluating_.contains(node->range);
    });
    return alone ? path : kNoIndex;
  }
  return kNoIndex;
}

double GradientFinder::outside_of_products(uint32_t home) const {
  double sum = 0;
  if (const auto found = backwards_.find(home); found != backwards_.end())
    for (const auto& [at, backward] : found->second)
      if (const auto work = work_.find(at); work != work_.end())
        sum += work->second.outside * static_cast<double>(backward.launches);
  return sum;
}

ExpectedBackward GradientFinder::of_function(uint32_t function, const std::vector<uint32_t>& inside,
                                             u128 multiply_adds) const {
  const std::string node = "the node of " + std::string(operators_.name_of(function)->name);
  const auto whole = static_cast<double>(multiply_adds);
  if (!complete_) return {.text = "backward work is not joined to forward"};
  std::vector<uint32_t> homes = inside;  // a call of one product alone has the node for itself
  homes.push_back(function);
  Sum sum;
  double outside = 0;
  for (const uint32_t home : homes) {
    outside += outside_of_products(home);
    if (const auto found = backwards_.find(home); found != backwards_.end())
      for (const auto& [at, backward] : found->second)
        add_backward(at, backward, function == first_, 0, sum);
  }
  if (sum.unknown) return {.text = sum.text};
  if (outside > kRatioTolerance * whole)
    return {.text = node + " does matrix work outside of products"};
  return {.found = ExpectedBackward::Found::kKnown,
          .least = sum.least / whole,
          .most = sum.most / whole,
          .assumed = sum.assumed,
          .what = sum.most > 0 ? "gradients as its node's products" : "no product in backward",
          .text = sum.text.empty() ? node : sum.text};
}

bool GradientFinder::of_weights(uint32_t path) const {
  const OperatorName& name = *operators_.name_of(path);
  const auto weights = weight_sizes(name);
  const auto found = backwards_.find(path);
  if (!weights || weights == input_sizes(name) || found == backwards_.end()) return false;
  return std::ranges::any_of(found->second, [&](const auto& backward) {
    return result_sizes(*operators_.name_of(backward.first)) == weights;
  });
}

const GradientEvidence& GradientFinder::add(uint32_t path, const OperatorFacts& facts) {
  const auto forwards = forwards_.find(path);
  const auto is_first = [&](uint32_t forward) { return forward == first_; };
  const bool joined = forwards != forwards_.end();
  const bool first = joined && std::ranges::all_of(forwards->second, is_first);
  BackwardWork& work = work_[path];
  if (facts.formula.flop && facts.calls > 0)
    work.multiply_adds =
        static_cast<double>(facts.algorithm().multiply_adds) / static_cast<double>(facts.calls);
  if (!is_matrix_work(facts.name->name) && facts.work.launches > 0)
    work.outside = static_cast<double>(facts.work.matrix_flop) / facts.fma /
                   static_cast<double>(facts.work.launches);
  if (computes_both_gradients(facts.formula, *facts.name)) {
    const auto asked = gradients_of_call(*facts.name);
    work.evidence =
        asked ? *asked
              : gradients_of_kernels(facts, first,
                                     joined && std::ranges::any_of(forwards->second, is_first));
  }
  return work.evidence;
}

ExpectedBackward GradientFinder::of(uint32_t path, const ForwardCalls& forward, double all,
                                    bool weights) const {
  using Found = ExpectedBackward::Found;
  const auto found = backwards_.find(path);
  if (found == backwards_.end()) {
    if (const std::string outer = own_gradient_around(path); !outer.empty())
      return {.text = "it is inside of " + outer + ", which has a gradient of its own"};
    if (!complete_) return {.text = "backward work is not joined to forward"};
    return {
        .found = Found::kKnown, .what = "no gradient", .text = "no backward work has its number"};
  }
  const auto differentiated = differentiated_.find(path);
  if (differentiated == differentiated_.end()) return {.text = "it has no product of its own"};
  const uint64_t with = differentiated->second;
  const bool counted = recorded_ && operators_.is_call(path);
  if (!recorded_ && !weights) return {Found::kKnown, all, all};
  if (!counted && forward.calls > with) return {.found = Found::kMixed, .text = kNotRecorded};
  if (forward.multiply_adds == 0) return {.text = "it has no product"};
  Sum sum;
  const auto whole = static_cast<double>(forward.multiply_adds);
  const double each = all * whole / static_cast<double>(std::max<uint64_t>(1, forward.calls));
  for (const auto& [at, backward] : found->second)
    add_backward(at, backward, path == first_, each, sum);
  if (sum.unknown || sum.most == 0) return {.text = sum.text};
  const bool again = sum.most > whole * all * (1 + 1e-9);
  ExpectedBackward expected{Found::kKnown, sum.least / whole, sum.most / whole, sum.assumed,
                            again,         sum.what,          sum.text};
  const auto is_all = [&](double part) { return std::abs(part - all) <= 1e-9 * all; };
  if (is_all(expected.least) && is_all(expected.most) && !sum.assumed) {
    expected.text.clear();
  } else if (!complete_) {
    return {.again = again, .text = "backward work is not joined to forward"};
  } else if (counted && with < forward.calls) {
    expected.what = "no gradient of " + to_grouped(forward.calls - with) + " of " +
                    to_grouped(forward.calls) + " calls";
    expected.text = "no backward work has their numbers";
  } else if (sum.what.empty()) {
    expected.what = again ? "gradients computed again" : "not all gradients";
    expected.text = "products of backward";
  }
  return expected;
}

// Multiply-adds of the calls of one backward operator.
void GradientFinder::add_backward(uint32_t at, const Backward& backward, bool first, double each,
                                  Sum& sum) const {
  const OperatorName& name = *operators_.name_of(at);
  const bool attention = each > 0 && attention_.contains(at);
  if (!is_matrix_work(name.name) && !attention) return;
  const bool counted = recorded_ && operators_.is_call(at);
  const uint64_t calls = counted ? backward.calls : backward.numbers;
  const auto factors = factors_of(name);
  // Where no recorder says it: of a square result both gradients have the same sizes.
  const bool square =
      factors && !factors->first.empty() && factors->first.front() == factors->first.back();
  const bool several = !counted && backward.launches > calls && (recorded_ || square);
  const auto work = work_.find(at);
  if (attention && work != work_.end() && !work->second.multiply_adds) {
    sum.least += each * static_cast<double>(calls);
    sum.most += each * static_cast<double>(calls);
    return;
  }
  if (work == work_.end() || !work->second.multiply_adds || several) {
    sum.unknown = true;
    sum.text = several ? kNotRecorded : "its gradient has no formula";
    return;
  }
  const double all = *work->second.multiply_adds * static_cast<double>(calls);
  const GradientEvidence& e = work->second.evidence;
  double least = 1, most = 1;
  if (!e.text.empty()) {  // both in one
    const bool told = !e.by_flop && !(backward.shared && e.shares);
    if (told && e.shares) {
      least = most = (e.shares->input + e.shares->weight) / 2;
      sum.what = "not all calls have both gradients";
    } else if (told && (e.found == Gradients::kNoInput || e.found == Gradients::kNoWeight)) {
      least = most = 0.5;
      sum.what = e.found == Gradients::kNoInput ? "no input gradient" : "no weight gradient";
    } else if (!told || e.found == Gradients::kUnknown) {
      least = first ? 0.5 : 1;
      sum.assumed = sum.assumed || !first;
      sum.what = first ? "with or without input gradient" : "both gradients assumed";
    }
    if (least < 1 || sum.assumed)
      sum.text = told && !sum.assumed ? e.text : "neither its kernels' names nor sizes say which";
  }
  sum.least += least * all;
  sum.most += most * all;
}

}  // namespace flopinj::reduce
