// Operators that do the same for every element: copies, arithmetic, functions, reductions, looking
// up and scattering. Per element of the argument named, from the definition.
#include <algorithm>

#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

// Operations in the order: multiply-adds, arithmetic, uncounted.
constexpr const char* kCompareAtLeast = "only comparisons, one per element and more";
constexpr const char* kSum = "one addition per element";
constexpr const char* kScatter = "one addition per element that is scattered";
constexpr const char* kVariance = "mean; difference, its square added";

constexpr ElementwiseRow kElementwiseRows[] = {
    {"copy", 0, 0, 0, 0, kMove},
    {"_to_copy", 0, 0, 0, 0, kMove},
    {"to", 0, 0, 0, 0, kMove},
    {"clone", 0, 0, 0, 0, kMove},
    {"contiguous", 0, 0, 0, 0, kMove},
    {"fill", 0, 0, 0, 0, kMove},
    {"zero", 0, 0, 0, 0, kMove},
    {"zeros", 0, 0, 0, 0, kMove},
    {"ones", 0, 0, 0, 0, kMove},
    {"full", 0, 0, 0, 0, kMove},
    {"zeros_like", 0, 0, 0, 0, kMove},
    {"ones_like", 0, 0, 0, 0, kMove},
    {"full_like", 0, 0, 0, 0, kMove},
    {"cat", 0, 0, 0, 0, kMove},
    {"stack", 0, 0, 0, 0, kMove},
    {"repeat", 0, 0, 0, 0, kMove},
    {"repeat_interleave", 0, 0, 0, 0, kMove},
    {"reshape", 0, 0, 0, 0, kMove},
    {"flip", 0, 0, 0, 0, kMove},
    {"roll", 0, 0, 0, 0, kMove},
    {"tril", 0, 0, 0, 0, kMove},
    {"triu", 0, 0, 0, 0, kMove},
    {"constant_pad_nd", 0, 0, 0, 0, kMove},
    {"reflection_pad2d", 0, 0, 0, 0, kMove},
    {"replication_pad2d", 0, 0, 0, 0, kMove},
    {"pixel_shuffle", 0, 0, 0, 0, kMove},
    {"pixel_unshuffle", 0, 0, 0, 0, kMove},
    {"channel_shuffle", 0, 0, 0, 0, kMove},
    {"im2col", 0, 0, 0, 0, kMove},
    {"slice_backward", 0, 0, 0, 0, kMove, true},
    {"select_backward", 0, 0, 0, 0, kMove, true},
    {"index", 0, 0, 0, 0, kMove},
    {"index_select", 0, 0, 0, 0, kMove},
    {"gather", 0, 0, 0, 0, kMove},
    {"masked_select", 0, 0, 0, 0, kMove},
    {"scatter", 0, 0, 0, 0, kMove},
    {"one_hot", 0, 0, 0, 0, kMove},
    {"embedding", 0, 0, 0, 0, "a look-up: no operation"},
    // grad, indices
    {"embedding_dense_backward", 0, 0, 1, 0, "one addition per element of the gradient", true},
    // self, dim, index, source
    {"scatter_add", 2, 0, 1, 0, kScatter},
    {"index_add", 3, 0, 1, 0, kScatter},
    {"reflection_pad2d_backward", 0, 0, 1, 0, kScatter, true},
    {"replication_pad2d_backward", 0, 0, 1, 0, kScatter, true},
    {"col2im", 0, 0, 1, 0, kScatter},

    {"add", kBroadcast, 0, 1, 0, kOne},
    {"sub", kBroadcast, 0, 1, 0, kOne},
    {"rsub", kBroadcast, 0, 1, 0, kOne},
    {"mul", kBroadcast, 0, 1, 0, kOne},
    {"div", kBroadcast, 0, 1, 0, kOne},
    {"true_divide", kBroadcast, 0, 1, 0, kOne},
    {"square", 0, 0, 1, 0, "one multiplication per element"},
    {"reciprocal", 0, 0, 1, 0, "one division per element"},
    {"addcmul", 0, 1, 1, 0, "self + value x a x b"},
    {"addcdiv", 0, 1, 1, 0, "self + value x a / b"},
    {"lerp", 0, 1, 1, 0, "self + weight (end - self)"},
    {"_masked_scale", 0, 0, 2, 0, "mask, scale"},

    {"sum", 0, 0, 1, 0, kSum},
    {"nansum", 0, 0, 1, 0, kSum},
    {"mean", 0, 0, 1, 0, kSum},
    {"cumsum", 0, 0, 1, 0, kSum},
    {"prod", 0, 0, 1, 0, "one multiplication per element"},
    {"cumprod", 0, 0, 1, 0, "one multiplication per element"},
    {"var", 0, 1, 2, 0, kVariance},
    {"var_mean", 0, 1, 2, 0, kVariance},
    {"std", 0, 1, 2, 0, kVariance},
    {"std_mean", 0, 1, 2, 0, kVariance},
    {"norm", 0, 1, 0, 0, "2-norm: one multiply-add per element"},
    {"linalg_vector_norm", 0, 1, 0, 0, "2-norm: one multiply-add per element"},
    {"logsumexp", 0, 0, 2, 2, "maximum, difference, exponential, sum"},
    {"cosine_similarity", kBroadcast, 3, 0, 0, "three products: a b, a a, b b"},

    {"neg", 0, 0, 0, 1, kSign},
    {"abs", 0, 0, 0, 1, kSign},
    {"sign", 0, 0, 0, 1, kSign},
    {"sgn", 0, 0, 0, 1, kSign},
    {"floor", 0, 0, 0, 1, "only rounding"},
    {"ceil", 0, 0, 0, 1, "only rounding"},
    {"round", 0, 0, 0, 1, "only rounding"},
    {"trunc", 0, 0, 0, 1, "only rounding"},
    {"sqrt", 0, 0, 0, 1, kSpecial},
    {"rsqrt", 0, 0, 0, 1, kSpecial},
    {"exp", 0, 0, 0, 1, kSpecial},
    {"exp2", 0, 0, 0, 1, kSpecial},
    {"expm1", 0, 0, 0, 1, kSpecial},
    {"log", 0, 0, 0, 1, kSpecial},
    {"log2", 0, 0, 0, 1, kSpecial},
    {"log10", 0, 0, 0, 1, kSpecial},
    {"log1p", 0, 0, 0, 1, kSpecial},
    {"sin", 0, 0, 0, 1, kSpecial},
    {"cos", 0, 0, 0, 1, kSpecial},
    {"tan", 0, 0, 0, 1, kSpecial},
    {"atan2", kBroadcast, 0, 0, 1, kSpecial},
    {"erf", 0, 0, 0, 1, kSpecial},
    {"erfinv", 0, 0, 0, 1, kSpecial},
    // The exponent is not in the name; square() is counted as a product.
    {"pow", kBroadcast, 0, 0, 1, "one special function per element, whatever the exponent"},

    {"clamp", 0, 0, 0, 2, "two comparisons"},
    {"clamp_min", 0, 0, 0, 1, kCompare},
    {"clamp_max", 0, 0, 0, 1, kCompare},
    {"maximum", kBroadcast, 0, 0, 1, kCompare},
    {"minimum", kBroadcast, 0, 0, 1, kCompare},
    {"where", kBroadcast, 0, 0, 1, kCompare},
    {"masked_fill", kBroadcast, 0, 0, 1, kCompare},
    {"eq", kBroadcast, 0, 0, 1, kCompare},
    {"ne", kBroadcast, 0, 0, 1, kCompare},
    {"lt", kBroadcast, 0, 0, 1, kCompare},
    {"le", kBroadcast, 0, 0, 1, kCompare},
    {"gt", kBroadcast, 0, 0, 1, kCompare},
    {"ge", kBroadcast, 0, 0, 1, kCompare},
    {"isnan", 0, 0, 0, 1, kCompare},
    {"isinf", 0, 0, 0, 2, "two comparisons"},
    {"isfinite", 0, 0, 0, 1, kCompare},
    {"amax", 0, 0, 0, 1, kCompare},
    {"amin", 0, 0, 0, 1, kCompare},
    {"max", kBroadcast, 0, 0, 1, kCompare},
    {"min", kBroadcast, 0, 0, 1, kCompare},
    {"argmax", 0, 0, 0, 1, kCompare},
    {"argmin", 0, 0, 0, 1, kCompare},
    {"topk", 0, 0, 0, 1, kCompareAtLeast},
    {"sort", 0, 0, 0, 1, kCompareAtLeast},
    {"argsort", 0, 0, 0, 1, kCompareAtLeast},

    // As many more as windows overlap, which sizes do not show: none of them FLOP.
    {"max_pool1d", 0, 0, 0, 1, kCompareAtLeast},
    {"max_pool2d", 0, 0, 0, 1, kCompareAtLeast},
    {"max_pool3d", 0, 0, 0, 1, kCompareAtLeast},
    {"max_pool1d_with_indices", 0, 0, 0, 1, kCompareAtLeast},
    {"max_pool2d_with_indices", 0, 0, 0, 1, kCompareAtLeast},
    {"max_pool3d_with_indices", 0, 0, 0, 1, kCompareAtLeast},
    {"adaptive_max_pool1d", 0, 0, 0, 1, kCompareAtLeast},
    {"adaptive_max_pool2d", 0, 0, 0, 1, kCompareAtLeast},
    {"adaptive_max_pool3d", 0, 0, 0, 1, kCompareAtLeast},
    {"max_pool2d_with_indices_backward", 0, 0, 1, 0, "one addition per gradient", true},
    {"max_pool3d_with_indices_backward", 0, 0, 1, 0, "one addition per gradient", true},
    {"adaptive_max_pool2d_backward", 0, 0, 1, 0, "one addition per gradient", true},
    {"adaptive_max_pool3d_backward", 0, 0, 1, 0, "one addition per gradient", true},

    // Per element of the result a weighted mean along each dimension, one after the other, a
    // product and a multiply-add for two neighbours; weights, which belong to a row or column, left
    // out. Backward the weights' products, and a multiply-add into each neighbour.
    {"upsample_nearest1d", 0, 0, 0, 0, kMove},
    {"upsample_nearest2d", 0, 0, 0, 0, kMove},
    {"upsample_nearest3d", 0, 0, 0, 0, kMove},
    {"upsample_nearest1d_backward", 0, 0, 1, 0, kScatter, true},
    {"upsample_nearest2d_backward", 0, 0, 1, 0, kScatter, true},
    {"upsample_nearest3d_backward", 0, 0, 1, 0, kScatter, true},
    {"upsample_linear1d", kOutput, 1, 1, 0, "one mean of two"},
    {"upsample_bilinear2d", kOutput, 3, 3, 0, "three means of two"},
    {"upsample_trilinear3d", kOutput, 7, 7, 0, "seven means of two"},
    {"upsample_bicubic2d", kOutput, 15, 5, 0, "five means of four"},
    {"upsample_linear1d_backward", 0, 2, 0, 0, "weighted into two neighbours", true},
    {"upsample_bilinear2d_backward", 0, 4, 2, 0, "weighted into four neighbours", true},
    {"upsample_trilinear3d_backward", 0, 8, 6, 0, "weighted into eight neighbours", true},
    {"upsample_bicubic2d_backward", 0, 16, 4, 0, "weighted into sixteen neighbours", true},
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
  const Shape* first = row.argument == kOutput ? call.output
                       : row.argument >= kHalf ? call.shape(0)
                                               : call.shape(row.argument);
  if (first == nullptr)
    return Formula::none(row.argument == kOutput
                             ? "the output's size is not in the range's name, nor in another's"
                             : kMismatch);
  u128 count = elements(*first);
  if (row.argument == kHalf) count /= 2;
  const Shape* second = call.shape(1);
  if (row.argument == kBroadcast && second != nullptr) count = broadcast(*first, *second);
  Formula formula = Formula::of(0);
  formula.flop = OperatorFlop{row.multiply_adds, row.arithmetic, row.uncounted}.times(count);
  return formula;
}

}  // namespace flopinj::reduce
