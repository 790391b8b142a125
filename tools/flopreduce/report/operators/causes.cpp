#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>

#include "report/operators/gradients.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

// Smaller differences are not asked after.
constexpr double kAgrees = 0.001;

constexpr std::string_view kUnexplained = "unexplained";

// Algorithms that do without some of the formula's operations.
constexpr const char *kWinograd = "Winograd", *kFft = "FFT";
bool needs_less(const Cause& cause) { return cause.cause == kWinograd || cause.cause == kFft; }

std::string shown(const OperatorKernel& kernel) {
  return "kernel " + cut(demangle(kernel.name), 120);
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

const char* missing_gradient_word(const OperatorFacts& facts) {
  if (!facts.formula.backward) return nullptr;
  if (facts.gradients.shares) return "one gradient of some calls";
  if (facts.gradients.found == Gradients::kNoInput) return "no input gradient";
  if (facts.gradients.found == Gradients::kNoWeight) return "no weight gradient";
  return nullptr;
}

// Products in whole tiles, each kernel against the product that it computes: of two gradients the
// one that its name says.
std::optional<Cause> padding(const OperatorFacts& facts) {
  const bool both = computes_both_gradients(facts.formula, *facts.name);
  if (!facts.formula.flop || (!both && (facts.formula.backward || facts.forms.size() > 1)))
    return std::nullopt;
  const u128 one = facts.formula.flop->multiply_adds / (both ? 2 : 1);
  const u128 flop = times_saturating(OperatorFlop{one, 0, 0}.flop(facts.fma), facts.calls);
  std::string evidence;
  for (const auto& kernel : facts.kernels) {
    if (kernel.matrix_flop <= facts.work.matrix_flop / 100) continue;
    const auto direction = both ? gradient_direction(kernel.name) : Direction::kForward;
    const auto gemm = direction ? gemm_of(*facts.name, one, *direction) : std::nullopt;
    if (!gemm || flop == 0) return std::nullopt;
    const double ratio = quotient(kernel.matrix_flop, flop);
    if (std::abs(ratio - 1) <= kAgrees) continue;
    const auto text = explain_padding(*gemm, kernel.name, ratio);
    if (!text) return std::nullopt;
    evidence += (evidence.empty() ? "" : "; ") + *text + ": " + shown(kernel);
  }
  return evidence.empty() ? std::nullopt : std::optional(Cause{"tile padding", evidence});
}

// Operations beyond the formula for each element of the result; nothing where there are none or the
// result is not known.
std::optional<double> excess(const OperatorFacts& facts, u128 formula) {
  const u128 result = result_elements(facts);
  if (facts.work.flop <= formula || result == 0) return std::nullopt;
  return quotient(facts.work.flop - formula, result);
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
std::optional<Cause> missing_gradient(const OperatorFacts& facts, u128 formula) {
  const char* word = missing_gradient_word(facts);
  if (word == nullptr) return std::nullopt;
  const u128 computed = of_computed(facts, formula);
  if (excess(facts, computed) == 1)
    return Cause{word, facts.gradients.text + "; and the bias gradient"};
  if (computed > 0 && std::abs(quotient(facts.work.flop, computed) - 1) <= 0.05)
    return Cause{word, facts.gradients.text};
  if (const auto padded = padding(facts))
    return Cause{std::string(word) + ", tile padding",
                 facts.gradients.text + "; " + padded->evidence};
  return Cause{word + (", " + std::string(kUnexplained)), facts.gradients.text};
}

using Ratio = std::optional<double>;

double over(u128 executed, u128 formula) {
  return formula == 0 ? std::numeric_limits<double>::infinity() : quotient(executed, formula);
}
// Executed matrix FLOP, so that a bias does not count, over the formula's products.
double products(const OperatorFacts& facts) {
  return over(facts.work.matrix_flop,
              OperatorFlop{facts.algorithm().multiply_adds, 0, 0}.flop(facts.fma));
}
// Of fused attention what it executed of its products without a mask.
Ratio attention(const OperatorFacts& facts, bool again) {
  if (!facts.formula.attention || (facts.formula.again > 0) != again) return std::nullopt;
  return over(facts.work.flop, facts.algorithm().flop(facts.fma));
}
Ratio attention_once(const OperatorFacts& facts, u128) { return attention(facts, false); }
Ratio attention_again(const OperatorFacts& facts, u128) { return attention(facts, true); }
// Likewise where it is known what the mask leaves in.
Ratio seen_once(const OperatorFacts& facts, u128) {
  return facts.formula.mask_named ? attention(facts, false) : Ratio();
}
Ratio seen_again(const OperatorFacts& facts, u128) {
  return facts.formula.mask_named ? attention(facts, true) : Ratio();
}

// A cause whose measure is within a range, and one of whose parts a kernel's name has, if it has
// any.
struct PossibleCause {
  const char* cause;
  Ratio (*measure)(const OperatorFacts&, u128 formula);
  double low, high;
  const char* evidence = "";  // '*': the measure, '#': elements of the results
  std::array<std::string_view, 5> kernels = {};
};
constexpr double kHalfLow = 0.495, kHalfHigh = 0.66;  // mask_of_attention()
// A window of so many keys as a block has is in three blocks at most.
constexpr double kMostBlocks = 3;

// FlashAttention's kernels have it among the values behind their traits: "Is_dropout, Is_causal",
// or "Is_causal" first where keys are split (csrc/flash_attn/src/flash_fwd_launch_template.h).
bool is_causal(std::string_view kernel) {
  if (contains_any_case(kernel, "causal")) return true;
  const size_t traits = kernel.find("_kernel_traits"), values = kernel.find("EELb", traits);
  if (traits == kernel.npos || values == kernel.npos) return false;
  const size_t at = values + (contains_any_case(kernel, "splitkv") ? 4 : 8);
  return at < kernel.size() && kernel[at] == '1';
}

// Tried in this order.
// clang-format off
constexpr PossibleCause kBefore[] = {
    // Algorithms that need other numbers of operations than the formula.
    {kWinograd, [](auto&, u128) -> Ratio { return 1; }, 1, 1, "", {"winograd", "winogrand"}},
    {kFft, [](auto&, u128) -> Ratio { return 1; }, 1, 1, "", {"fft2d", "fft_"}},
    {"recompute inside the fused backward", seen_again, 0.98, 1.1,
     "this operator computes the scores again: five products for the formula's four"},
    {"blocks on the mask's edge", seen_once, 1.1, kMostBlocks,
     "* of the products that the mask leaves in: kernels compute whole blocks"},
    {"blocks on the mask's edge, recompute inside the fused backward", seen_again, 1.1, kMostBlocks,
     "* of the products that the mask leaves in: kernels compute whole blocks; this operator "
     "computes the scores again: five products for the formula's four"},
    // Only the operator's algorithm is known, by its name; of a mask nothing is.
    {"about half of the products", attention_once, kHalfLow, kHalfHigh,
     "* of the products without a mask, as under a causal one; no name says which mask"},
    {"about half of the products, recompute inside the fused backward", attention_again, kHalfLow,
     kHalfHigh,
     "* of the products without a mask, as under a causal one; no name says which mask; "
     "this operator computes the scores again: five products for the formula's four"},
    {"recompute inside the fused backward", attention_again, 0.98, 1.1,
     "this operator computes the scores again: five products for the formula's four"},
    {"softmax", attention_once, 0.98, 1.1, "* of the products: the formula has no softmax"},
    {kComplexNumbers.data(), [](auto& facts, u128) -> Ratio { return products(facts); }, 3.92, 4.08,
     "a complex multiply-add is four real ones", {"cgemm", "zgemm", "complex<"}},
    {"bias", excess, 1, 1,
     "the difference is one addition per element of the result, # in all calls"},
};
constexpr PossibleCause kAfter[] = {
    // A kernel that does the work of other operators too does more, never less.
    {"fused", [](auto& facts, u128 formula) -> Ratio { return over(facts.work.flop, formula); },
     1, std::numeric_limits<double>::infinity(), "", {"fused", "triton_"}},
    // The end of a product; 16: a gelu by its polynomial, the most of usual ones.
    {"fused epilogue", excess, 0, 16, "at most 16 operations per element of the result more",
     {"epilogue", "gemm_relu", "gemm_bias", "_relu_", "gelu"}},
};
// clang-format on

std::optional<Cause> first_of(std::span<const PossibleCause> causes, const OperatorFacts& facts,
                              u128 formula) {
  for (const PossibleCause& possible : causes) {
    const Ratio value = possible.measure(facts, formula);
    if (!value || *value < possible.low || *value > possible.high) continue;
    std::string evidence = possible.evidence;
    std::array<char, 24> share{};
    std::snprintf(share.data(), share.size(), "%.3f", *value);
    if (const size_t at = evidence.find('*'); at != evidence.npos)
      evidence.replace(at, 1, share.data());
    if (const size_t at = evidence.find('#'); at != evidence.npos)
      evidence.replace(at, 1, to_grouped(result_elements(facts)));
    const auto is_named = [&](const OperatorKernel& kernel) {
      return std::ranges::any_of(possible.kernels, [&](std::string_view part) {
        return !part.empty() && contains_any_case(kernel.name, part);
      });
    };
    const auto kernel = std::ranges::find_if(facts.kernels, is_named);
    if (possible.kernels[0].empty()) return Cause{possible.cause, evidence};
    if (kernel != facts.kernels.end())
      return Cause{possible.cause, (evidence.empty() ? "" : evidence + ": ") + shown(*kernel)};
  }
  return std::nullopt;
}

// One call is several kernels: harmless here, since calls are told apart; but a count of the
// formula once per kernel is too high.
std::string per_kernel(const OperatorFacts& facts) {
  if (facts.kernels.empty() || facts.calls == 0) return {};
  const uint64_t each = facts.kernels[0].launches / facts.calls;
  return each > 1 ? std::to_string(each) + " launches of one kernel per call" : std::string();
}

Cause explain(const OperatorFacts& facts, u128 formula) {
  if (auto cause = first_of(kBefore, facts, formula)) {
    if (mask_of_attention(facts) == Mask::kCausal) {
      cause->cause.replace(0, cause->cause.find_first_of(','), "causal mask");
      cause->evidence = "named by " + shown(*std::ranges::find_if(facts.kernels, is_causal,
                                                                  &OperatorKernel::name));
    }
    if (cause->cause == "bias" && facts.formula.backward) cause->cause += " gradient";
    return *cause;
  }
  if (auto cause = missing_gradient(facts, formula)) return *cause;
  if (auto cause = padding(facts)) return *cause;
  if (auto cause = first_of(kAfter, facts, formula)) return *cause;
  if (formula_is_at_most(facts) && facts.work.flop < formula)
    return {std::string(kUnexplained), "the formula is of both gradients: " + facts.gradients.text};
  return {std::string(kUnexplained), ""};
}

// Of an operator without a formula: what its kernels of fused attention executed, and of it what
// the model needs.
struct AsExecuted {
  u128 executed = 0, needed = 0;  // matrix FLOP
  const OperatorKernel* most = nullptr;
};
AsExecuted as_executed(const OperatorFacts& facts) {
  AsExecuted sum;
  for (const OperatorKernel& kernel : facts.kernels) {
    const auto share = needed_of_attention(facts, kernel);
    if (!share || kernel.matrix_flop == 0) continue;
    if (sum.most == nullptr) sum.most = &kernel;
    add_saturating(sum.executed, kernel.matrix_flop);
    add_saturating(sum.needed, *share < 1
                                   ? static_cast<u128>(*share * quotient(kernel.matrix_flop, 1))
                                   : kernel.matrix_flop);
  }
  return sum;
}

std::optional<Cause> attention_as_executed(const OperatorFacts& facts) {
  const AsExecuted sum = as_executed(facts);
  if (sum.most == nullptr) return std::nullopt;
  std::string part;
  if (sum.needed < sum.executed) part = printed("%.3f of ", quotient(sum.needed, sum.executed));
  std::string evidence = part + "its products count as executed: " + shown(*sum.most);
  if (!part.empty()) evidence += "; backward computes some again";
  return Cause{"fused attention", evidence};
}

ModelFlop model_of_kernels(const OperatorFacts& facts) {
  const AsExecuted sum = as_executed(facts);
  const bool product = facts.tensor || is_matrix_work(facts.name->name);
  if (sum.most == nullptr) return ModelFlop::without_formula(facts.work, product);
  Work covered;
  covered.matrix_flop = sum.executed;
  ModelFlop model =
      ModelFlop::of({.needed = sum.needed, .uncertain = std::max<u128>(1, sum.needed)}, covered);
  for (const OperatorKernel& kernel : facts.kernels) {
    Work other;
    other.unmeasured = kernel.incomplete;
    if (!needed_of_attention(facts, kernel)) other.matrix_flop = kernel.matrix_flop;
    model += ModelFlop::without_formula(other, kernel.tensor);
  }
  return model;
}

}  // namespace

void AttentionWork::add(const AttentionKernel& kernel, const std::string& phase, u128 matrix_flop) {
  using Does = AttentionKernel::Does;
  Sums& sums = families_[kernel.family];
  if (kernel.does == Does::kForward && phase == "backward")
    add_saturating(sums.forward_in_backward, matrix_flop);
  else if (kernel.does == Does::kForward && phase != "recompute")
    add_saturating(sums.forward, matrix_flop);
  else if (kernel.does == Does::kBackward)
    add_saturating(sums.backward, matrix_flop);
  else if (kernel.does != Does::kForward)
    add_saturating(sums.apart, matrix_flop);
}

std::optional<double> AttentionWork::needed(const AttentionKernel& kernel,
                                            const std::string& phase) const {
  using Does = AttentionKernel::Does;
  // Keys and values of other widths make it a little more or less; so do blocks on masks' edges.
  constexpr double kNear = 0.06;
  const Sums& sums = families_.at(kernel.family);
  const auto times_forward = [&](u128 flop) {
    return sums.forward > 0 ? quotient(flop, sums.forward) : 0;
  };
  const auto of_gradients = [&](double times) -> std::optional<double> {
    const bool usual = std::abs(times / 2.5 - 1) <= kNear || std::abs(times / 3.5 - 1) <= kNear;
    return usual ? std::optional(2 / times) : std::nullopt;
  };
  if (kernel.does == Does::kBackward)
    return of_gradients(times_forward(sums.backward)).value_or(kernel.share());
  if (kernel.does != Does::kForward) return kernel.share();
  if (phase != "backward") return 1;
  const double times = times_forward(sums.forward_in_backward);
  if (sums.backward > 0 || sums.apart > 0 || (times > 0 && times <= 1 + kNear)) return 0;
  return of_gradients(times);
}

std::optional<double> needed_of_attention(const OperatorFacts& facts,
                                          const OperatorKernel& kernel) {
  using Does = AttentionKernel::Does;
  const std::string_view name = facts.name->name;
  const auto of_operator = fused_attention(*facts.name);
  if (facts.formula.flop || facts.attention == nullptr ||
      (has_operator_formula(*facts.name) && !is_attention(name)))
    return std::nullopt;
  const auto& known = kernel.attention;
  if (known && known->does == Does::kBeside) return std::nullopt;
  // Its sizes say more of five products than a kernel's name.
  if (of_operator && (!known || (known->does == Does::kBackward && !known->varies)))
    return of_operator;
  if (!known) return std::nullopt;
  return facts.attention->needed(*known, facts.phase);
}

Cause cause_of(const OperatorFacts& facts) {
  const Work& work = facts.work;
  if (!work.flop_known()) return {"no hardware count", reason_words(facts.unmeasured_reason)};
  Cause cause;
  const u128 formula = facts.formula.flop ? facts.formula_flop() : 0;
  if (!facts.formula.flop) {
    const auto attention = attention_as_executed(facts);
    if (!attention) return {"no formula", facts.formula.why_not};
    cause = *attention;
  } else if (!work.flop_complete()) {
    cause = {"no hardware count",
             std::to_string(work.incomplete()) + " of " + std::to_string(work.launches) +
                 " launches: " +
                 (work.unmeasured > 0 ? reason_words(facts.unmeasured_reason)
                                      : std::string("not screened for tensor work"))};
  } else if (work.flop != formula &&
             (formula == 0 || std::abs(quotient(work.flop, formula) - 1) > kAgrees)) {
    cause = explain(facts, formula);
  }
  if (facts.phase == "recompute") {
    cause.evidence = cause.cause.empty()
                         ? "runs inside backward, and ran in forward"
                         : cause.cause + (cause.evidence.empty() ? "" : ": ") + cause.evidence;
    cause.cause = "recompute";
  }
  if (cause.cause.empty() && work.flop == 0 && facts.formula.flop &&
      facts.formula.flop->uncounted > 0)
    cause = {"not counted", "only comparisons and special functions"};
  if (const std::string note = per_kernel(facts); !note.empty() && facts.calls_counted)
    cause.evidence += (cause.evidence.empty() ? "" : "; ") + note;
  return cause;
}

bool formula_is_at_most(const OperatorFacts& facts) {
  return computes_both_gradients(facts.formula, *facts.name) &&
         facts.gradients.found == Gradients::kUnknown;
}

Mask mask_of_attention(const OperatorFacts& facts) {
  if (!facts.formula.attention || facts.formula.mask_named || !facts.formula.flop ||
      !facts.work.flop_complete())
    return Mask::kNone;
  const double done = over(facts.work.flop, facts.algorithm().flop(facts.fma));
  if (done < kHalfLow || done > kHalfHigh) return Mask::kNone;
  return std::ranges::any_of(facts.kernels, is_causal, &OperatorKernel::name) ? Mask::kCausal
                                                                              : Mask::kPerhapsHalf;
}

bool multiplies_more(const OperatorFacts& facts, const Cause& cause) {
  if (!facts.formula.flop || facts.formula.attention || !is_matrix_work(facts.name->name) ||
      !facts.work.flop_complete() || !cause.cause.ends_with(kUnexplained))
    return false;
  const u128 computed =
      of_computed(facts, OperatorFlop{facts.algorithm().multiply_adds, 0, 0}.flop(facts.fma));
  return computed > 0 && quotient(facts.work.matrix_flop, computed) >= 2 - kAgrees;
}

ModelFlop model_of(const OperatorFacts& facts, const Cause& cause) {
  const Work& work = facts.work;
  if (!facts.formula.flop) return facts.no_products ? ModelFlop() : model_of_kernels(facts);
  const u128 whole = facts.formula_flop();
  if (facts.name->has_given_formula())
    return ModelFlop::of({.needed = whole, .uncertain = facts.calls_counted ? 0 : whole}, work);
  const Mask mask = mask_of_attention(facts);
  ModelFlop::Place place{
      .needed = mask == Mask::kNone ? of_computed(facts, whole) : whole / 2,
      .at_most = formula_is_at_most(facts) ||
                 (facts.formula.attention && !facts.formula.mask_named && !work.flop_complete()),
      .about = mask == Mask::kPerhapsHalf};
  const OperatorFlop algorithm = facts.algorithm();
  // Elementwise work counts as executed where that is less than its formula, which a compiler's
  // choice of instructions decides. Without counts it is not known how much less.
  const bool elementwise = !is_matrix_work(facts.name->name);
  if (elementwise && !work.flop_complete()) place.uncertain = place.needed;
  if (!work.flop_complete() || mask != Mask::kNone) return ModelFlop::of(place, work);
  // Of what was executed, without what backward computes again.
  const double once = over(whole, algorithm.flop(facts.fma));
  const auto executed = static_cast<u128>(static_cast<double>(work.flop) * std::min(1.0, once));
  if (elementwise) {
    place.needed = std::min(place.needed, executed);
    return ModelFlop::of(place, work);
  }
  if (quotient(executed, std::max<u128>(1, place.needed)) < 1 - kAgrees) {
    if (!needs_less(cause)) place.more = place.needed - executed;
    return ModelFlop::of(place, work);
  }
  const u128 multiplied = OperatorFlop{algorithm.multiply_adds, 0, 0}.flop(facts.fma);
  const u128 computed = of_computed(facts, multiplied);
  const bool is_complex = cause.cause == kComplexNumbers;
  if (computed == 0 || facts.formula.attention || work.matrix_flop <= computed ||
      !(is_complex || cause.cause.ends_with(kUnexplained)))
    return ModelFlop::of(place, work);
  const u128 beyond = work.matrix_flop - computed;
  if (is_complex || quotient(beyond, computed) >= 1 - kAgrees)
    place.beyond = beyond;
  else if (!facts.calls_counted)
    place.uncertain = beyond;
  return ModelFlop::of(place, work);
}

}  // namespace flopinj::reduce
