// Operators that do the same for every element: activations, norms, softmax, losses, embeddings,
// arithmetic. Per element of the argument named, from the textbook algorithm; what is done once for a
// row or channel is left out.
#include <algorithm>

#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

// Operations in the order: multiply-adds, arithmetic, uncounted.
constexpr const char* kMove = "moves data";
constexpr const char* kOne = "one operation per element";
constexpr const char* kCompare = "one comparison per element";
constexpr const char* kSpecial = "one special function per element";
// x - mean twice over: sum; x - mean, its square added; times 1/sigma; times gamma plus beta.
constexpr const char* kNorm =
    "mean, variance, scale and shift: 3 single operations, 2 multiply-adds";
// x - mean, times 1/sigma; dy gamma, its sum, its sum with x; two subtractions of means, times
// 1/sigma; sums of dy and dy x for beta and gamma.
constexpr const char* kNormBack = "gradients by input, scale and shift: 7 single, 3 multiply-adds";
constexpr const char* kRms = "sum of squares, scale twice";
constexpr const char* kRmsBack = "gradients by input and scale: 3 single, 3 multiply-adds";
constexpr const char* kSoftmax = "maximum, difference, exponential, sum, quotient";
constexpr const char* kSoftmaxBack = "(dy - sum of dy y) y";
constexpr const char* kLogSoftmax = "maximum, difference, exponential, sum, difference";
constexpr const char* kLogSoftmaxBack = "dy - exp(y) sum of dy";

constexpr ElementwiseRow kRows[] = {
    {"copy", 0, 0, 0, 0, kMove},
    {"_to_copy", 0, 0, 0, 0, kMove},
    {"to", 0, 0, 0, 0, kMove},
    {"clone", 0, 0, 0, 0, kMove},
    {"contiguous", 0, 0, 0, 0, kMove},
    {"fill", 0, 0, 0, 0, kMove},
    {"zero", 0, 0, 0, 0, kMove},
    {"cat", 0, 0, 0, 0, kMove},
    {"index_select", 0, 0, 0, 0, kMove},
    {"gather", 0, 0, 0, 0, kMove},
    {"embedding", 0, 0, 0, 0, "a look-up: no operation"},
    {"embedding_dense_backward", 0, 0, 1, 0, "one addition per element of the gradient", true},

    {"add", kBroadcast, 0, 1, 0, kOne},
    {"sub", kBroadcast, 0, 1, 0, kOne},
    {"mul", kBroadcast, 0, 1, 0, kOne},
    {"div", kBroadcast, 0, 1, 0, kOne},
    {"addcmul", 0, 1, 1, 0, "self + value x a x b"},
    {"addcdiv", 0, 1, 1, 0, "self + value x a / b"},
    {"lerp", 0, 1, 1, 0, "self + weight (end - self)"},
    {"sum", 0, 0, 1, 0, "one addition per element"},
    {"mean", 0, 0, 1, 0, "one addition per element"},
    {"neg", 0, 0, 0, 1, "the sign alone"},
    {"sqrt", 0, 0, 0, 1, kSpecial},
    {"rsqrt", 0, 0, 0, 1, kSpecial},
    {"exp", 0, 0, 0, 1, kSpecial},
    {"log", 0, 0, 0, 1, kSpecial},
    {"pow", 0, 0, 0, 1, kSpecial},
    {"clamp", 0, 0, 0, 2, "two comparisons"},
    {"clamp_min", 0, 0, 0, 1, kCompare},
    {"where", 0, 0, 0, 1, kCompare},
    {"masked_fill", 0, 0, 0, 1, kCompare},

    {"relu", 0, 0, 0, 1, kCompare},
    {"threshold_backward", 0, 0, 0, 1, kCompare, true},
    {"leaky_relu", 0, 0, 1, 1, "comparison and scale"},
    {"leaky_relu_backward", 0, 0, 1, 1, "comparison and scale", true},
    {"hardtanh", 0, 0, 0, 2, "two comparisons"},
    {"hardtanh_backward", 0, 0, 0, 2, "two comparisons", true},
    {"hardswish", 0, 0, 3, 2, "x min(max(x + 3, 0), 6) / 6"},
    {"sigmoid", 0, 0, 2, 1, "1 / (1 + exp(-x))"},
    {"sigmoid_backward", 0, 0, 3, 0, "dy y (1 - y)", true},
    {"tanh", 0, 0, 0, 1, kSpecial},
    {"tanh_backward", 0, 1, 1, 0, "dy (1 - y y)", true},
    {"silu", 0, 0, 3, 1, "x / (1 + exp(-x)) and a product"},
    {"silu_backward", 0, 1, 5, 1, "dy s (1 + x (1 - s)), s = sigmoid(x)", true},
    {"gelu", 0, 0, 4, 1, "x / 2 (1 + erf(x / sqrt 2))"},
    {"gelu_backward", 0, 1, 7, 2, "dy (cdf(x) + x pdf(x))", true},
    {"dropout", 0, 0, 2, 1, "draw, mask, scale"},
    {"native_dropout", 0, 0, 2, 1, "draw, mask, scale"},
    {"native_dropout_backward", 0, 0, 2, 0, "mask, scale", true},

    {"softmax", 0, 0, 3, 2, kSoftmax},
    {"_softmax", 0, 0, 3, 2, kSoftmax},
    {"_softmax_backward_data", 0, 1, 2, 0, kSoftmaxBack, true},
    {"log_softmax", 0, 0, 3, 2, kLogSoftmax},
    {"_log_softmax", 0, 0, 3, 2, kLogSoftmax},
    {"_log_softmax_backward_data", 0, 1, 1, 1, kLogSoftmaxBack, true},
    {"cross_entropy_loss", 0, 0, 3, 2, kLogSoftmax},
    {"nll_loss_forward", 1, 0, 1, 0, "one addition per sample"},
    {"nll_loss_backward", 2, 0, 1, 0, "one scaling per sample", true},
    {"mse_loss", 0, 1, 1, 0, "difference, its square added"},
    {"mse_loss_backward", 1, 0, 3, 0, "difference, scaled twice", true},

    {"batch_norm", 0, 2, 3, 0, kNorm},
    {"_batch_norm_impl_index", 0, 2, 3, 0, kNorm},
    {"native_batch_norm", 0, 2, 3, 0, kNorm},
    {"cudnn_batch_norm", 0, 2, 3, 0, kNorm},
    {"native_batch_norm_backward", 0, 3, 7, 0, kNormBack, true},
    {"cudnn_batch_norm_backward", 0, 3, 7, 0, kNormBack, true},
    {"layer_norm", 0, 2, 3, 0, kNorm},
    {"native_layer_norm", 0, 2, 3, 0, kNorm},
    {"native_layer_norm_backward", 0, 3, 7, 0, kNormBack, true},
    {"group_norm", 0, 2, 3, 0, kNorm},
    {"native_group_norm", 0, 2, 3, 0, kNorm},
    {"native_group_norm_backward", 0, 3, 7, 0, kNormBack, true},
    {"rms_norm", 0, 1, 2, 0, kRms},
    {"_fused_rms_norm", 0, 1, 2, 0, kRms},
    {"_fused_rms_norm_backward", 0, 3, 3, 0, kRmsBack, true},

    {"max_pool2d", 0, 0, 0, 1, kCompare},
    {"max_pool2d_with_indices", 0, 0, 0, 1, kCompare},
    {"max_pool2d_with_indices_backward", 0, 0, 1, 0, "one addition per gradient", true},
};

u128 broadcast(const Shape& a, const Shape& b) {
  u128 product = 1;
  for (size_t i = 1; i <= std::max(a.size(), b.size()); ++i) {
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    product = times_saturating(product, static_cast<u128>(x == 1 ? y : x));
  }
  return product;
}

}  // namespace

std::span<const ElementwiseRow> elementwise_operators() { return kRows; }

Formula elementwise_formula(const OperatorCall& call, const ElementwiseRow& row) {
  const Shape* first = call.shape(row.argument == kBroadcast ? 0 : row.argument);
  if (first == nullptr) return Formula::none("the sizes do not fit the operator");
  const Shape scalar;
  const Shape* second = call.shape(1);
  const u128 count = row.argument == kBroadcast
                         ? broadcast(*first, second != nullptr ? *second : scalar)
                         : elements(*first);
  Formula formula = Formula::of(0);
  formula.flop = OperatorFlop{row.multiply_adds, row.arithmetic, row.uncounted}.times(count);
  return formula;
}

}  // namespace flopinj::reduce
