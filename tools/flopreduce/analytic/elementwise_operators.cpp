// Operators that do the same for every element: copies, arithmetic, functions, reductions, looking
// up and scattering; activations, softmax, dropout and losses. Per element of the argument named,
// from the definition (torch.nn's documentation prints it for each).
#include <algorithm>

#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

// Operations in the order: multiply-adds, arithmetic, uncounted.

constexpr ElementwiseRow kElementwiseRows[] = {
    // moves data
    {"copy _to_copy to clone contiguous fill zero zeros ones full zeros_like ones_like full_like "
     "cat stack repeat repeat_interleave reshape flip roll tril triu constant_pad_nd "
     "reflection_pad2d replication_pad2d pixel_shuffle pixel_unshuffle channel_shuffle im2col "
     "index index_select gather masked_select scatter one_hot",
     0, 0, 0, 0},
    {"slice_backward select_backward", 0, 0, 0, 0, true},
    {"embedding", 0, 0, 0, 0},  // a look-up: no operation
    // grad, indices
    {"embedding_dense_backward", 0, 0, 1, 0, true},  // one addition per element of the gradient
    // self, dim, index, source
    {"scatter_add", 2, 0, 1, 0},  // one addition per element that is scattered
    {"index_add", 3, 0, 1, 0},
    {"reflection_pad2d_backward replication_pad2d_backward", 0, 0, 1, 0, true},
    {"col2im", 0, 0, 1, 0},

    {"add sub rsub mul div true_divide", kBroadcast, 0, 1, 0},  // one operation per element
    {"square", 0, 0, 1, 0},                                     // one multiplication per element
    {"reciprocal", 0, 0, 1, 0},                                 // one division per element
    {"addcmul", 0, 1, 1, 0},                                    // self + value x a x b
    {"addcdiv", 0, 1, 1, 0},                                    // self + value x a / b
    {"lerp", 0, 1, 1, 0},                                       // self + weight (end - self)
    {"_masked_scale", 0, 0, 2, 0},                              // mask, scale

    {"sum nansum mean cumsum", 0, 0, 1, 0},      // one addition per element
    {"prod cumprod", 0, 0, 1, 0},                // one multiplication per element
    {"var var_mean std std_mean", 0, 1, 2, 0},   // mean; difference, its square added
    {"norm linalg_vector_norm", 0, 1, 0, 0},     // 2-norm: one multiply-add per element
    {"logsumexp", 0, 0, 2, 2},                   // maximum, difference, exponential, sum
    {"cosine_similarity", kBroadcast, 3, 0, 0},  // three products: a b, a a, b b

    {"neg abs sign sgn", 0, 0, 0, 1},        // only the sign
    {"floor ceil round trunc", 0, 0, 0, 1},  // only rounding
    // one special function per element
    {"sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan erf erfinv", 0, 0, 0, 1},
    {"atan2", kBroadcast, 0, 0, 1},
    // The exponent is not in the name; square() is counted as a product.
    {"pow", kBroadcast, 0, 0, 1},  // one special function per element, whatever the exponent

    {"clamp isinf", 0, 0, 0, 2},  // two comparisons
    // one comparison per element
    {"clamp_min clamp_max isnan isfinite amax amin argmax argmin", 0, 0, 0, 1},
    {"maximum minimum where masked_fill eq ne lt le gt ge max min", kBroadcast, 0, 0, 1},
    {"topk sort argsort", 0, 0, 0, 1},  // only comparisons, one per element and more

    // As many more as windows overlap, which sizes do not show: none of them FLOP.
    // only comparisons, one per element and more
    {"max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices "
     "max_pool3d_with_indices adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
     0, 0, 0, 1},
    // one addition per gradient
    {"max_pool2d_with_indices_backward max_pool3d_with_indices_backward "
     "adaptive_max_pool2d_backward adaptive_max_pool3d_backward",
     0, 0, 1, 0, true},

    // Per element of the result a weighted mean along each dimension, one after the other, a
    // product and a multiply-add for two neighbours; weights, which belong to a row or column, left
    // out. Backward the weights' products, and a multiply-add into each neighbour.
    {"upsample_nearest1d upsample_nearest2d upsample_nearest3d", 0, 0, 0, 0},  // moves data
    // one addition per element that is scattered
    {"upsample_nearest1d_backward upsample_nearest2d_backward upsample_nearest3d_backward", 0, 0, 1,
     0, true},
    {"upsample_linear1d", kOutput, 1, 1, 0},              // one mean of two
    {"upsample_bilinear2d", kOutput, 3, 3, 0},            // three means of two
    {"upsample_trilinear3d", kOutput, 7, 7, 0},           // seven means of two
    {"upsample_bicubic2d", kOutput, 15, 5, 0},            // five means of four
    {"upsample_linear1d_backward", 0, 2, 0, 0, true},     // weighted into two neighbours
    {"upsample_bilinear2d_backward", 0, 4, 2, 0, true},   // weighted into four neighbours
    {"upsample_trilinear3d_backward", 0, 8, 6, 0, true},  // weighted into eight neighbours
    {"upsample_bicubic2d_backward", 0, 16, 4, 0, true},   // weighted into sixteen neighbours

    // Activations.
    {"relu threshold", 0, 0, 0, 1},  // one comparison per element
    {"threshold_backward", 0, 0, 0, 1, true},
    {"leaky_relu prelu _prelu_kernel", 0, 0, 1, 1},  // comparison and scale
    {"leaky_relu_backward", 0, 0, 1, 1, true},
    {"_prelu_kernel_backward", 0, 0, 2, 1, true},  // gradients by input and by weight
    {"relu6 hardtanh", 0, 0, 0, 2},                // two comparisons
    {"hardtanh_backward", 0, 0, 0, 2, true},
    {"hardsigmoid", 0, 0, 2, 2},                      // min(max(x + 3, 0), 6) / 6
    {"hardsigmoid_backward", 0, 0, 1, 2, true},       // dy / 6 between -3 and 3
    {"hardswish", 0, 0, 3, 2},                        // x min(max(x + 3, 0), 6) / 6
    {"hardswish_backward", 0, 1, 1, 2, true},         // dy (x / 3 + 1 / 2) between -3 and 3
    {"elu", 0, 0, 2, 2},                              // x > 0 ? x : alpha (exp(x) - 1)
    {"elu_backward", 0, 0, 2, 2, true},               // dy alpha exp(x) where x < 0
    {"selu", 0, 0, 3, 2},                             // the same, scaled
    {"celu", 0, 0, 3, 2},                             // x > 0 ? x : alpha (exp(x / alpha) - 1)
    {"sigmoid", 0, 0, 2, 1},                          // 1 / (1 + exp(-x))
    {"sigmoid_backward", 0, 0, 3, 0, true},           // dy y (1 - y)
    {"log_sigmoid log_sigmoid_forward", 0, 0, 2, 4},  // min(x, 0) - log(1 + exp(-|x|))
    {"log_sigmoid_backward", 0, 0, 2, 1, true},       // dy / (1 + exp(x))
    {"tanh", 0, 0, 0, 1},                             // one special function per element
    {"tanh_backward", 0, 1, 1, 0, true},              // dy (1 - y y)
    {"softplus", 0, 0, 3, 3},                         // log(1 + exp(beta x)) / beta
    {"softplus_backward", 0, 0, 4, 2, true},          // dy z / (1 + z), z = exp(beta x)
    {"silu", 0, 0, 2, 1},                             // x / (1 + exp(-x))
    {"silu_backward", 0, 1, 5, 1, true},              // dy s (1 + x (1 - s)), s = sigmoid(x)
    {"mish", 0, 0, 2, 3},                             // x tanh(log(1 + exp(x)))
    // dy (t + x s (1 - t t)), t = tanh(log(1 + exp(x))), s = sigmoid(x)
    {"mish_backward", 0, 2, 5, 4, true},
    // The tanh form, which has the same name, is an approximation of this.
    {"gelu", 0, 0, 4, 1},                 // x / 2 (1 + erf(x / sqrt 2))
    {"gelu_backward", 0, 1, 7, 2, true},  // dy (cdf(x) + x pdf(x))
    {"glu", kHalf, 0, 3, 1},              // a sigmoid(b), half of the elements each
    {"glu_backward", 0, 0, 6, 1, true},   // dy s and dy s a (1 - s), s = sigmoid(b)
    {"dropout native_dropout _fused_dropout", 0, 0, 2, 1},  // draw, mask, scale
    {"native_dropout_backward", 0, 0, 2, 0, true},          // mask, scale

    // maximum, difference, exponential, sum, quotient
    {"softmax _softmax _safe_softmax", 0, 0, 3, 2},
    {"_softmax_backward_data", 0, 1, 2, 0, true},  // (dy - sum of dy y) y
    {"log_softmax _log_softmax", 0, 0, 3, 2},  // maximum, difference, exponential, sum, difference
    {"_log_softmax_backward_data", 0, 1, 1, 1, true},  // dy - exp(y) sum of dy

    // self, target; backward: grad, self, target
    {"cross_entropy_loss", 0, 0, 3, 2},  // maximum, difference, exponential, sum, difference
    // one addition per sample
    {"nll_loss nll_loss_nd nll_loss2d nll_loss_forward nll_loss2d_forward", 1, 0, 1, 0},
    {"nll_loss_backward nll_loss2d_backward", 2, 0, 1, 0, true},  // one scaling per sample
    {"mse_loss", 0, 1, 1, 0},                                     // difference, its square added
    {"mse_loss_backward", 1, 0, 3, 0, true},                      // difference, scaled twice
    {"l1_loss", 0, 0, 2, 1},                        // difference, its absolute value added
    {"smooth_l1_loss", 0, 1, 2, 2},                 // d d / (2 beta), added: the quadratic part
    {"smooth_l1_loss_backward", 1, 0, 4, 2, true},  // d / beta, scaled twice: the quadratic part
    {"huber_loss", 0, 1, 2, 2},                     // d d / 2, added: the quadratic part
    {"huber_loss_backward", 1, 0, 3, 2, true},      // d, scaled twice: the quadratic part
    {"kl_div", 0, 1, 1, 1},                         // t (log(t) - x), added
    // t log(p) + (1 - t) log(1 - p), added; logarithms clamped
    {"binary_cross_entropy", 0, 1, 4, 4},
    {"binary_cross_entropy_backward", 1, 0, 6, 1, true},  // dy (p - t) / (p (1 - p)), scaled
    {"binary_cross_entropy_with_logits", 0, 1, 4, 4},     // (1 - t) x - log sigmoid(x), added
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

std::span<const ElementwiseRow> elementwise_operators() { return kElementwiseRows; }

Formula elementwise_formula(const OperatorCall& call, const ElementwiseRow& row) {
  if (row.argument == kOutput && call.output == nullptr) return Formula::none(kNoOutputSize);
  const size_t argument = row.argument >= kHalf ? 0 : row.argument;
  if (row.argument != kOutput && !call.has(argument)) return Formula::none(kMismatch);
  u128 count = elements(row.argument == kOutput ? *call.output : call.shape(argument));
  if (row.argument == kHalf) count /= 2;
  if (row.argument == kBroadcast) count = broadcast(call.shape(0), call.shape(1));
  return Formula::of(OperatorFlop{row.multiply_adds, row.arithmetic, row.uncounted}.times(count));
}

}  // namespace flopinj::reduce
