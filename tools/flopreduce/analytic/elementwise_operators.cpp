// Operators that do the same for every element: copies, arithmetic, functions, reductions, looking
// up and scattering. Per element of the argument named, from the definition.
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
  return Formula::of(OperatorFlop{row.multiply_adds, row.arithmetic, row.uncounted}.times(count));
}

}  // namespace flopinj::reduce
