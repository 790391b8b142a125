#include "report/operators/causes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "report/operators/gradients.h"
#include "report/operators/tile_padding.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Smaller differences are not asked after.
constexpr double kAgrees = 0.001;

// The first kernel that did or may have done arithmetic whose name has one of the parts.
template <class Parts>
const OperatorKernel* kernel_with(const OperatorFacts& facts, const Parts& parts) {
  for (const auto& kernel : facts.kernels)
    for (const std::string_view part : parts)
      if (contains_any_case(kernel.name, part)) return &kernel;
  return nullptr;
}

std::string shown(const OperatorKernel& kernel) {
  return "kernel " + cut(demangle(kernel.name), 120);
}

// Of the product that an operator is; nothing for gradients and other operators.
std::optional<Gemm> gemm_of(const OperatorFacts& facts) {
  if (!facts.formula.flop || facts.formula.backward || facts.forms.size() > 1) return std::nullopt;
  return gemm_of(*facts.name, facts.formula.flop->multiply_adds, Direction::kForward);
}

// Elements of the results of all calls; 0 where they are not known.
u128 result_elements(const OperatorFacts& facts) {
  const auto& sizes = facts.name->sizes;
  if (facts.formula.backward)
    return sizes.empty() ? 0 : times_saturating(elements(sizes[0]), facts.calls);
  u128 all = 0;
  for (const CallForm& form : facts.forms) {
    if (!form.formula.flop) return 0;
    const auto gemm = gemm_of(*facts.name, form.formula.flop->multiply_adds, Direction::kForward);
    if (!gemm) return 0;
    const u128 each = times_saturating(times_saturating(gemm->batch, gemm->rows), gemm->columns);
    add_saturating(all, times_saturating(each, form.calls));
  }
  return all;
}

// A product computed in whole tiles; where no name has the tile, this is sure only of tensor cores.
std::optional<Cause> padding(const OperatorFacts& facts, double ratio) {
  const auto gemm = gemm_of(facts);
  if (!gemm) return std::nullopt;
  for (const auto& kernel : facts.kernels)
    if (auto text = explain_padding(*gemm, kernel.name, ratio))
      return Cause{"tile padding", *text + ": " + shown(kernel)};
  if (facts.tensor && facts.name->function().find("conv") == std::string_view::npos)
    if (auto text = explain_padding_unnamed(*gemm, ratio)) return Cause{"tile padding", *text};
  return std::nullopt;
}

const char* missing_gradient_word(const OperatorFacts& facts) {
  if (!facts.formula.backward) return nullptr;
  if (facts.gradients.shares) return "one gradient of some calls";
  if (facts.gradients.found == Gradients::kNoInput) return "no input gradient";
  if (facts.gradients.found == Gradients::kNoWeight) return "no weight gradient";
  return nullptr;
}

// Gradients, each against the product that its kernel's name says it is.
std::optional<Cause> gradient_padding(const OperatorFacts& facts) {
  if (!computes_both_gradients(facts.formula, *facts.name)) return std::nullopt;
  const u128 one = facts.formula.flop->multiply_adds / 2;
  const u128 flop = times_saturating(OperatorFlop{one, 0, 0}.flop(facts.fma), facts.calls);
  std::string evidence;
  for (const auto& kernel : facts.kernels) {
    if (kernel.matrix_flop <= facts.work.matrix_flop / 100) continue;
    const auto direction = gradient_direction(kernel.name);
    const auto gemm = direction ? gemm_of(*facts.name, one, *direction) : std::nullopt;
    if (!gemm || flop == 0) return std::nullopt;
    const double ratio = quotient(kernel.matrix_flop, flop);
    if (std::abs(ratio - 1) <= kAgrees) continue;
    const auto text = explain_padding(*gemm, kernel.name, ratio);
    if (!text) return std::nullopt;
    evidence += (evidence.empty() ? "" : "; ") + *text + ": " + shown(kernel);
  }
  if (evidence.empty()) return std::nullopt;
  return Cause{"tile padding", std::move(evidence)};
}

// Algorithms that need other numbers of operations than the formula.
std::optional<Cause> algorithm(const OperatorFacts& facts) {
  struct Algorithm {
    const char* cause;
    std::array<std::string_view, 2> parts;
  };
  static constexpr Algorithm kAlgorithms[] = {
      {"Winograd", {"winograd", "winogrand"}},
      {"FFT", {"fft2d", "fft_"}},
  };
  for (const auto& a : kAlgorithms)
    if (const auto* kernel = kernel_with(facts, a.parts)) return Cause{a.cause, shown(*kernel)};
  return std::nullopt;
}

bool differs_by_bias(const OperatorFacts& facts, u128 executed, u128 formula) {
  const u128 result = result_elements(facts);
  return executed > formula && result > 0 && executed - formula == result;
}

// Of the formula of both gradients, those that were computed.
u128 of_computed(const OperatorFacts& facts, u128 both) {
  if (missing_gradient_word(facts) == nullptr) return both;
  if (!facts.gradients.shares) return both / 2;
  const auto& shares = *facts.gradients.shares;
  // Shares are of whole calls.
  const auto calls = static_cast<double>(facts.calls);
  const auto computed = static_cast<uint64_t>(std::llround((shares.input + shares.weight) * calls));
  bool overflow = false;
  return facts.calls == 0 || facts.calls > UINT64_MAX / 2
             ? both
             : mul_div_round(both, computed, 2 * facts.calls, overflow);
}

// Of a product's two gradients not both were computed, or not in all calls: less than the formula,
// padded perhaps.
std::optional<Cause> missing_gradient(const OperatorFacts& facts, u128 executed, u128 formula) {
  const char* word = missing_gradient_word(facts);
  if (word == nullptr) return std::nullopt;
  const u128 computed = of_computed(facts, formula);
  if (differs_by_bias(facts, executed, computed))
    return Cause{word, facts.gradients.text + "; and the bias gradient"};
  if (computed > 0 && std::abs(quotient(executed, computed) - 1) <= 0.05)
    return Cause{word, facts.gradients.text};
  if (const auto padded = gradient_padding(facts))
    return Cause{std::string(word) + ", tile padding",
                 facts.gradients.text + "; " + padded->evidence};
  return Cause{std::string(word) + ", unexplained", facts.gradients.text};
}

// The formula is of both gradients, and it may be that one was computed.
std::optional<Cause> untold_gradients(const OperatorFacts& facts, u128 executed, u128 formula) {
  if (!formula_is_at_most(facts) || executed >= formula) return std::nullopt;
  return Cause{"unexplained", "the formula is of both gradients: " + facts.gradients.text};
}

// Of fused attention: what a mask leaves out, what backward computes again, what the formula lacks.
std::optional<Cause> attention(const OperatorFacts& facts, u128 executed) {
  if (!facts.formula.attention) return std::nullopt;
  const double done = quotient(executed, facts.algorithm().flop(facts.fma));
  const bool half = about_half_of_attention(facts), again = facts.formula.again > 0;
  if (!half && (done < 0.98 || done > 1.1)) return std::nullopt;
  std::array<char, 24> share{};
  std::snprintf(share.data(), share.size(), "%.3f", done);
  Cause cause;
  const auto add = [&](const char* word, const std::string& why) {
    cause.cause += (cause.cause.empty() ? "" : ", ") + std::string(word);
    cause.evidence += (cause.evidence.empty() ? "" : "; ") + why;
  };
  if (half)
    add("causal mask",
        std::string(share.data()) +
            " of the products without a mask: a causal mask is likely; no name says so");
  if (again)
    add("recompute inside the fused backward",
        std::string("the scores are computed again: ") + kBackwardExecutes);
  if (cause.cause.empty())
    add("softmax", std::string(share.data()) + " of the products: the formula has no softmax");
  return cause;
}

// Types are in no range's name, and formulas are of real numbers: a complex multiply-add is four
// real ones.
// By matrix FLOP, so that a bias does not count.
std::optional<Cause> complex_numbers(const OperatorFacts& facts, bool by_name) {
  static constexpr std::array<std::string_view, 3> kKernels = {"cgemm", "zgemm", "complex<"};
  const u128 products = OperatorFlop{facts.algorithm().multiply_adds, 0, 0}.flop(facts.fma);
  if (products == 0 || std::abs(quotient(facts.work.matrix_flop, products) - 4) > 0.08)
    return std::nullopt;
  const auto* kernel = kernel_with(facts, kKernels);
  if (by_name && kernel != nullptr)
    return Cause{std::string(kComplexNumbers),
                 "a complex multiply-add is four real ones: " + shown(*kernel)};
  if (by_name || !facts.calls_counted) return std::nullopt;
  return Cause{std::string(kComplexNumbers) + " likely",
               "four times the formula of real numbers: no range's name has the type"};
}

// A kernel that does the work of other operators too does more, never less; what the end of a
// product does (a bias, a relu) is a few operations for each element of the result.
std::optional<Cause> fused(const OperatorFacts& facts, u128 executed, u128 formula) {
  static constexpr std::array<std::string_view, 2> kKernels = {"fused", "triton_"};
  static constexpr std::array<std::string_view, 5> kEnds = {"epilogue", "gemm_relu", "gemm_bias",
                                                            "_relu_", "gelu"};
  constexpr u128 kMostAtEnd = 16;  // a gelu by its polynomial, the most of usual ones
  if (executed <= formula) return std::nullopt;
  if (const auto* kernel = kernel_with(facts, kKernels)) return Cause{"fused", shown(*kernel)};
  const u128 results = result_elements(facts);
  if (executed - formula > times_saturating(results, kMostAtEnd)) return std::nullopt;
  if (const auto* kernel = kernel_with(facts, kEnds))
    return Cause{"fused epilogue",
                 "at most 16 operations per element of the result more: " + shown(*kernel)};
  return std::nullopt;
}

std::optional<Cause> bias(const OperatorFacts& facts, u128 executed, u128 formula) {
  if (!differs_by_bias(facts, executed, formula)) return std::nullopt;
  return Cause{facts.formula.backward ? "bias gradient" : "bias",
               "the difference is one addition per element of the result, " +
                   to_grouped(result_elements(facts)) + " in all calls"};
}

// One call is several kernels: harmless here, since calls are told apart, but whoever counts the
// formula once per kernel counts too much.
std::string per_kernel(const OperatorFacts& facts) {
  if (facts.kernels.empty() || facts.calls == 0) return {};
  const uint64_t each = facts.kernels[0].launches / facts.calls;
  return each > 1 ? std::to_string(each) + " launches of one kernel per call" : std::string();
}

Cause explain(const OperatorFacts& facts, u128 executed, u128 formula) {
  const double ratio = formula == 0 ? 0 : quotient(executed, formula);
  if (auto cause = algorithm(facts)) return *cause;
  if (auto cause = attention(facts, executed)) return *cause;
  if (auto cause = complex_numbers(facts, true)) return *cause;
  if (auto cause = bias(facts, executed, formula)) return *cause;
  if (auto cause = missing_gradient(facts, executed, formula)) return *cause;
  if (auto cause = padding(facts, ratio)) return *cause;
  if (auto cause = gradient_padding(facts)) return *cause;
  if (auto cause = fused(facts, executed, formula)) return *cause;
  if (!facts.calls_counted && formula > 0 && ratio > 0) {
    const double parts = 1 / ratio;
    if (parts > 1.5 && std::abs(parts - std::round(parts)) < 0.01 * parts)
      return {"calls estimated", "each launch does 1/" + std::to_string(std::llround(parts)) +
                                     " of the formula: one call may be as many launches"};
  }
  if (auto cause = complex_numbers(facts, false)) return *cause;
  if (auto cause = untold_gradients(facts, executed, formula)) return *cause;
  return {"unexplained", ""};
}

}  // namespace

Cause cause_of(const OperatorFacts& facts) {
  const Work& work = facts.work;
  if (!work.flop_known()) return {"no hardware count", facts.unmeasured_reason};
  if (!facts.formula.flop) return {"no formula", facts.formula.why_not};
  Cause cause;
  const u128 formula = facts.formula_flop();
  if (work.unmeasured > 0) {
    cause = {"no hardware count", std::to_string(work.unmeasured) + " of " +
                                      std::to_string(work.launches) +
                                      " launches: " + facts.unmeasured_reason};
  } else if (work.flop != formula &&
             (formula == 0 || std::abs(quotient(work.flop, formula) - 1) > kAgrees)) {
    cause = explain(facts, work.flop, formula);
  }
  if (facts.phase == "recompute") {
    cause.evidence = cause.cause.empty() ? "runs inside backward, and ran in forward"
                                         : cause.cause + ": " + cause.evidence;
    cause.cause = "recompute";
  }
  if (cause.cause.empty() && work.flop == 0 && facts.formula.flop->uncounted > 0)
    cause = {"not counted", "only comparisons and special functions"};
  if (const std::string note = per_kernel(facts); !note.empty() && facts.calls_counted)
    cause.evidence += (cause.evidence.empty() ? "" : "; ") + note;
  return cause;
}

bool formula_is_at_most(const OperatorFacts& facts) {
  return computes_both_gradients(facts.formula, *facts.name) &&
         facts.gradients.found == Gradients::kUnknown;
}

bool about_half_of_attention(const OperatorFacts& facts) {
  if (!facts.formula.attention || !facts.formula.flop || !facts.work.flop_complete()) return false;
  const u128 whole = facts.algorithm().flop(facts.fma);
  const double done = whole == 0 ? 0 : quotient(facts.work.flop, whole);
  return done >= 0.495 && done <= 0.66;
}

std::optional<u128> model_flop(const OperatorFacts& facts) {
  if (!facts.formula.flop) return std::nullopt;
  const u128 whole = facts.formula_flop();
  return about_half_of_attention(facts) ? whole / 2 : of_computed(facts, whole);
}

}  // namespace flopinj::reduce
