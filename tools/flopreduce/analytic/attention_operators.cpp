// Fused attention. Attention of queries [B, H, L, E] with keys [B, Hk, S, E] and values [B, Hk, S,
// V]: B H L S (E + V) multiply-adds, the products of queries with keys and of scores with values
// (torch.utils.flop_counter: sdpa_flop_count). Nothing is taken off for a causal mask, which is not
// in the name. Backward of the fused kernels: five products, since the scores are computed again
// (sdpa_backward_flop_count; Dao, FlashAttention-2, section 4.1: 2.5 times forward). Softmax is
// left out.
#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

struct Attention {
  u128 scores = 0;  // B H L S
  u128 head = 0;    // E
  u128 value = 0;   // V
};

// `heads`, `length`: which dimensions; row.a is the query's argument, keys and values follow.
std::optional<Attention> read(const OperatorCall& call, size_t query, size_t heads, size_t length) {
  const Shape &q = call.shape(query), &k = call.shape(query + 1), &v = call.shape(query + 2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[3] != k[3] || k[length] != v[length])
    return std::nullopt;
  return Attention{.scores = elements({q[0], q[heads], q[length], k[length]}),
                   .head = static_cast<u128>(q[3]),
                   .value = static_cast<u128>(v[3])};
}

// So many times E and V for each score; row.b is the dimension of the heads, row.c that of the
// sequence.
Formula fused(const OperatorCall& call, const OperatorRow& row, u128 heads, u128 values) {
  const auto a = read(call, row.a, row.b, row.c);
  if (!a)
    return Formula::none("the sizes are not those of whole sequences (packed or unknown lengths)");
  u128 per_score = times_saturating(a->head, heads);
  add_saturating(per_score, times_saturating(a->value, values));
  Formula formula = Formula::of(times_saturating(a->scores, per_score));
  formula.attention = true;
  if (row.backward != 0) formula.again = times_saturating(a->scores, a->head);
  return formula;
}

Formula attention(const OperatorCall& call, const OperatorRow& row) {
  return fused(call, row, 1, 1);
}
// Scores again, gradients by scores, values, queries and keys.
Formula attention_gradient(const OperatorCall& call, const OperatorRow& row) {
  return fused(call, row, 3, 2);
}

// FlashAttention-3 (hopper/flash_attn_interface.py): q, k, v, k_new, v_new, qv, out, cu_seqlens of
// q, k and k_new, seqused of q and k, two longest lengths, page_table, kv_batch_idx, leftpad_k, ...
// Whole sequences where nothing is added to the keys, and nothing says how long sequences are or
// where they lie. FlashAttention-2's operator of that name has eleven arguments: q, k, v, numbers
// and slopes.
Formula flash_attention(const OperatorCall& call, const OperatorRow& row) {
  constexpr size_t kSecondHas = 12;
  constexpr uint8_t kOther[] = {3, 4, 5, 7, 8, 9, 10, 11, 14, 15, 16};
  if (call.sizes->size() > kSecondHas)
    for (const uint8_t i : kOther)
      if (!call.shape(i).empty())
        return Formula::none("keys are added, or lengths of sequences are in no range's name");
  return attention(call, row);
}

// Of the fused kernels.
std::optional<ProductGradients> attention_gradients(const OperatorCall& call,
                                                    const OperatorRow& row) {
  const auto a = read(call, row.a, row.b, row.c);
  if (!a || a->head + a->value == 0) return std::nullopt;
  const double head = static_cast<double>(a->head), value = static_cast<double>(a->value);
  return ProductGradients{(3 * head + 2 * value) / (head + value), 0};
}

constexpr OperatorRow kAttentionRows[] = {
    {"scaled_dot_product_attention _scaled_dot_product_flash_attention "
     "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
     "_scaled_dot_product_fused_attention_overrideable",
     attention, 0, 1, 2, 0, attention_gradients},
    {"_scaled_dot_product_attention_math", attention, 0, 1, 2, 0, two_gradients},
    {"_scaled_dot_product_flash_attention_backward "
     "_scaled_dot_product_efficient_attention_backward "
     "_scaled_dot_product_cudnn_attention_backward "
     "_scaled_dot_product_fused_attention_overrideable_backward",
     attention_gradient, 1, 1, 2, 1},
    // [batch, length, heads, head size]
    {"_flash_attention_forward _efficient_attention_forward _flash_attn_varlen_forward "
     "efficient_attention_forward_cutlass",
     attention, 0, 2, 1, 0, attention_gradients},
    {"_flash_attn_forward flash_attn_3::fwd", flash_attention, 0, 2, 1, 0, attention_gradients},
    {"_flash_attention_backward _efficient_attention_backward _flash_attn_backward "
     "_flash_attn_varlen_backward flash_attn_3::bwd efficient_attention_backward_cutlass",
     attention_gradient, 1, 2, 1, 1},
};

}  // namespace

std::span<const OperatorRow> attention_operators() { return kAttentionRows; }

}  // namespace flopinj::reduce
