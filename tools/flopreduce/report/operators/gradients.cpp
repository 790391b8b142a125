#include "report/operators/gradients.h"

#include <algorithm>
#include <array>

#include "analytic/operator_flop.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr std::array<std::string_view, 4> kInput = {"dgrad", "input_gradient", "bwd_data",
                                                    "backward_data"};
constexpr std::array<std::string_view, 4> kWeight = {"wgrad", "weight_gradient", "bwd_filter",
                                                     "backward_filter"};

constexpr std::array<std::string_view, 4> kSparseKernels = {"cusparse", "spmm", "csrmm", "csrmv"};

enum class Products : uint8_t { kNeither, kOne, kTwo };

Products products_of(double ratio) {
  if (ratio >= 0.7 && ratio <= 1.4) return Products::kOne;
  if (ratio >= 1.6 && ratio <= 2.8) return Products::kTwo;
  return Products::kNeither;
}

using Sides = std::pair<u128, u128>;
Sides sorted(u128 a, u128 b) { return a < b ? Sides{a, b} : Sides{b, a}; }

// Sizes of a product's input and weights as matrices, smaller side first.
struct Operands {
  Sides input, weight;
};
std::optional<Operands> operands_of(const OperatorName& name) {
  // Either factor of a matmul may be weights, or neither.
  if (name.function() == "matmul") return std::nullopt;
  const auto factors = factors_of(name);
  if (!factors) return std::nullopt;
  const Shape& a = factors->first;
  const Shape& b = factors->second;  // in batches: no weights
  if (a.empty() || a.back() <= 0 || b.size() != 2) return std::nullopt;
  const auto depth = static_cast<u128>(a.back());
  return Operands{sorted(elements(a) / depth, depth),
                  sorted(static_cast<u128>(b[0]), static_cast<u128>(b[1]))};
}

// Of calls that have one gradient or both; nothing where all have both.
std::optional<GradientEvidence> some_calls(uint64_t input, uint64_t weight, const char* of) {
  if (input == weight || input == 0 || weight == 0) return std::nullopt;
  const auto all = static_cast<double>(std::max(input, weight));
  const char* fewer = input < weight ? "input" : "weights'";
  GradientEvidence evidence{Gradients::kBoth,
                            std::string(of) + ": " + fewer + " gradient of " +
                                to_grouped(std::min(input, weight)) + " of " +
                                to_grouped(std::max(input, weight)) + " calls",
                            GradientEvidence::Shares{}};
  evidence.shares->input = static_cast<double>(input) / all;
  evidence.shares->weight = static_cast<double>(weight) / all;
  return evidence;
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

GradientEvidence gradients_of_kernels(const OperatorFacts& facts, bool first) {
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
    const bool one_each = facts.calls_counted && std::max(inputs, weights) == facts.calls;
    const auto some = some_calls(inputs, weights, "kernels named for one gradient");
    return some && one_each && other == nullptr
               ? *some
               : GradientEvidence{Gradients::kBoth, "kernels named for both gradients", {}};
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
                               const std::unordered_set<uint32_t>& products)
    : operators_(operators) {
  u128 lost = 0, joined = 0;
  for (const auto& [path, launches] : calls.unjoined)
    if (products.contains(path)) add_saturating(lost, launches);
  for (const auto& [key, found] : calls.joined)
    if (products.contains(OperatorCalls::backward_of(key))) add_saturating(joined, found.launches);
  complete_ = joined > 0 && 10 * lost <= joined;
  join.for_each_forward([&](uint32_t path) {
    const uint32_t home = operators.operator_of(path);
    if (home == kNoIndex) return;
    first_ = std::min(first_, home);
    for (const auto& [backward, numbers] : *join.backwards_of(path)) {
      const auto& shares = *join.forwards_of(backward);
      Backward found{backward, 0, numbers, false};
      for (const auto& [forward, launches] : shares) {
        if (forward == path) found.launches = launches;
        found.shared = found.shared || operators.operator_of(forward) != home;
      }
      backwards_[home].push_back(found);
      if (const uint32_t at = operators.operator_of(backward); at != kNoIndex)
        forwards_[at].push_back(home);
    }
  });
}

// A function in Python has its class's name: no namespace.
std::string GradientFinder::own_gradient_around(uint32_t path) const {
  for (path = operators_.parent_of(path); path != kNoIndex; path = operators_.parent_of(path)) {
    const OperatorName* name = operators_.name_of(path);
    if (name == nullptr) continue;
    if (name->kind == OperatorKind::kFunction && name->name.find("::") == std::string_view::npos)
      return std::string(name->name);
  }
  return {};
}

const GradientEvidence& GradientFinder::add(uint32_t path, const OperatorFacts& facts) {
  const auto forwards = forwards_.find(path);
  const bool first = forwards != forwards_.end() &&
                     std::all_of(forwards->second.begin(), forwards->second.end(),
                                 [&](uint32_t forward) { return forward == first_; });
  GradientEvidence& evidence = by_combined_[path];
  if (computes_both_gradients(facts.formula, *facts.name))
    evidence = gradients_of_kernels(facts, first);
  return evidence;
}

GradientEvidence GradientFinder::of(uint32_t path, const MatrixFlop& flop) const {
  const auto found = backwards_.find(path);
  if (found == backwards_.end()) {
    if (const std::string outer = own_gradient_around(path); !outer.empty())
      return {Gradients::kUnknown,
              "it is inside of " + outer + ", which has a gradient of its own",
              {}};
    if (complete_) return {Gradients::kNone, "no backward work has its number", {}};
    return {Gradients::kUnknown, "backward work is not joined to forward", {}};
  }
  if (auto evidence = by_products(path, found->second)) return *evidence;
  if (auto evidence = by_kernels(found->second)) return *evidence;
  return by_flop(path, flop);
}

// Nothing where no product of its own decides, or all have sizes that both would have.
std::optional<GradientEvidence> GradientFinder::by_products(
    uint32_t path, const std::vector<Backward>& backwards) const {
  const auto operands = operands_of(*operators_.name_of(path));
  if (!operands || operands->input == operands->weight) return std::nullopt;
  bool input = false, weight = false;
  uint64_t inputs = 0, weights = 0;  // calls
  for (const Backward& b : backwards) {
    const uint32_t at = operators_.operator_of(b.path);
    const OperatorName* name = at == kNoIndex ? nullptr : operators_.name_of(at);
    if (name == nullptr || b.launches == 0) continue;
    const Formula formula = operator_formula(*name, {&name->sizes, nullptr, nullptr});
    if (!name->has_sizes || !formula.flop || formula.backward) continue;
    const auto gemm = gemm_of(*name, formula.flop->multiply_adds, Direction::kForward);
    if (!gemm) continue;
    const Sides result = sorted(gemm->rows, gemm->columns);
    input = input || result == operands->input;
    weight = weight || result == operands->weight;
    if (result == operands->input) add_saturating(inputs, b.numbers);
    if (result == operands->weight) add_saturating(weights, b.numbers);
  }
  if (input && weight) {
    const auto some = complete_ ? some_calls(inputs, weights, "products") : std::nullopt;
    return some ? *some : GradientEvidence{Gradients::kBoth, "products with both sizes", {}};
  }
  if (!complete_ || (!input && !weight)) return std::nullopt;
  if (weight)
    return GradientEvidence{
        Gradients::kNoInput, "no product of backward has the input's sizes", {}};
  return GradientEvidence{
      Gradients::kNoWeight, "no product of backward has the weights' sizes", {}};
}

std::optional<GradientEvidence> GradientFinder::by_kernels(
    const std::vector<Backward>& backwards) const {
  for (const Backward& b : backwards) {
    const auto found = by_combined_.find(operators_.operator_of(b.path));
    if (found == by_combined_.end() || found->second.text.empty()) continue;
    // Of several operators one may lack what another has.
    if (b.shared && found->second.found != Gradients::kBoth)
      return GradientEvidence{Gradients::kUnknown, "backward's range is shared with others", {}};
    return found->second;
  }
  return std::nullopt;
}

GradientEvidence GradientFinder::by_flop(uint32_t path, const MatrixFlop& flop) const {
  if (!flop.backward) return {Gradients::kUnknown, "no hardware count", {}};
  std::optional<Products> products;
  for (const auto& base : {flop.formula, flop.forward}) {
    if (!base || *base == 0) continue;
    const Products by_base = products_of(quotient(*flop.backward, *base));
    if (products && *products != by_base) return {Gradients::kUnknown, "its FLOP do not tell", {}};
    products = by_base;
  }
  if (products == Products::kTwo) return {Gradients::kBoth, "the FLOP of two gradients", {}, true};
  if (products == Products::kOne && first(path))
    return {
        Gradients::kNoInput, "the FLOP of one gradient, and nothing before it has any", {}, true};
  return {Gradients::kUnknown, "its FLOP do not tell", {}};
}

}  // namespace flopinj::reduce
