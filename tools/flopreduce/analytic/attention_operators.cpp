// Fused attention. Attention of queries [B, H, L, E] with keys [B, Hk, S, E] and values [B, Hk, S,
// V]: E + V multiply-adds for each pair of a query and a key that it sees, the products of queries
// with keys and of scores with values (torch.utils.flop_counter: sdpa_flop_count, for B H L S
// pairs). Which pairs a mask leaves in is in names that flopinj.torch makes; without, all of them
// count. Backward of the fused kernels: five products, since the scores are computed again
// (sdpa_backward_flop_count; Dao, FlashAttention-2, section 4.1: 2.5 times forward). Softmax is
// left out.
#include <algorithm>

#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

using Whole = __int128;  // sums of positions, whatever a name says

// Longer sequences are no tensor's.
constexpr int64_t kLongest = int64_t{1} << 40;

// Of queries i from 0 to `queries`: the sum of i + from, held between 0 and `keys`.
Whole held_sum(Whole queries, Whole keys, Whole from) {
  const Whole begin = std::clamp<Whole>(-from, 0, queries);
  const Whole end = std::clamp<Whole>(keys - from, begin, queries);
  return (end - begin) * (begin + end - 1 + 2 * from) / 2 + (queries - end) * keys;
}

// Which keys a query sees, relative to the key at its own place, where it has one: from `left`
// before it to `right` after it. In a chunk where there are chunks: those of its own only.
struct Sight {
  Whole left = 0, right = 0;
  int64_t chunk = 0;
};

// Pairs of `queries`, the first of which is at the place of key `first`, and `keys`.
Whole pairs_in_sight(Whole queries, Whole keys, Whole first, const Sight& sight) {
  return held_sum(queries, keys, first + sight.right + 1) -
         held_sum(queries, keys, first - sight.left);
}

// The same with chunks of keys: FlashAttention-3 (hopper/mask.h). Chunks between the first and the
// last one are alike.
Whole pairs_in_chunks(Whole queries, Whole keys, Whole first, const Sight& sight) {
  const Whole chunk = sight.chunk, begin = std::max<Whole>(first, 0),
              end = std::min(first + queries, keys);
  Whole pairs = 0;
  for (Whole at = begin; at < end;) {
    const Whole base = at / chunk * chunk, next = std::min(base + chunk, end);
    const Whole alike = at == base && next == base + chunk ? (end - at) / chunk : 1;
    pairs +=
        alike * pairs_in_sight(next - at, std::min(base + chunk, keys) - base, at - base, sight);
    at = alike > 1 ? at + alike * chunk : next;
  }
  return pairs;
}

// Of one head. Causal masks: PyTorch's own operators put the first query at the first key
// (torch.nn.functional.scaled_dot_product_attention); FlashAttention the last one at the last key
// (flash_attn_interface.py, since 2.1), and so do its windows. xFormers says which.
u128 visible_pairs(int64_t queries, int64_t keys, bool from_last, const OperatorSettings& mask) {
  const Whole all = Whole{queries} + keys;
  Sight sight{all, all, mask.chunk.value_or(0)};
  const auto narrow = [](Whole& to, std::optional<int64_t> keys_beside) {
    if (keys_beside && *keys_beside >= 0) to = std::min<Whole>(to, *keys_beside);
  };
  narrow(sight.left, mask.window_left);
  narrow(sight.right, mask.window_right);
  if (mask.causal.value_or(false)) sight.right = 0;
  if (const int64_t type = mask.mask_type.value_or(0); type != 0) {
    from_last = type == 2;
    sight.right = 0;
    if (mask.window.value_or(0) > 0) narrow(sight.left, *mask.window - 1);
  }
  const Whole first = from_last ? Whole{keys} - queries : 0;
  return static_cast<u128>(sight.chunk > 0 ? pairs_in_chunks(queries, keys, first, sight)
                                           : pairs_in_sight(queries, keys, first, sight));
}

bool says_which_pairs(const OperatorSettings& settings) {
  return settings.causal || settings.window_left || settings.window_right || settings.mask_type;
}

struct Attention {
  u128 scores = 0;  // of all pairs that are seen, in all heads
  u128 head = 0;    // E
  u128 value = 0;   // V
  bool mask_named = false;
};

// `heads`, `length`: which dimensions; `query`: its argument, keys and values follow.
std::optional<Attention> read(const OperatorCall& call, size_t query, size_t heads, size_t length) {
  const Shape &q = call.shape(query), &k = call.shape(query + 1), &v = call.shape(query + 2);
  if (q.size() != 4 || k.size() != 4 || v.size() != 4 || q[3] != k[3] || k[length] != v[length] ||
      q[length] > kLongest || k[length] > kLongest)
    return std::nullopt;
  const bool named = call.settings != nullptr && says_which_pairs(*call.settings);
  const bool heads_behind = length < heads;
  const u128 pairs = named ? visible_pairs(q[length], k[length], heads_behind, *call.settings)
                           : elements({q[length], k[length]});
  return Attention{.scores = times_saturating(elements({q[0], q[heads]}), pairs),
                   .head = static_cast<u128>(q[3]),
                   .value = static_cast<u128>(v[3]),
                   .mask_named = named};
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
  formula.mask_named = a->mask_named;
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

// E and V, which packed sequences have too: [all positions, heads, width].
struct Widths {
  double head = 0, value = 0;
};
std::optional<Widths> widths(const OperatorCall& call, size_t query) {
  const Shape &q = call.shape(query), &k = call.shape(query + 1), &v = call.shape(query + 2);
  if (q.size() < 3 || k.size() != q.size() || v.size() != q.size() || q.back() != k.back() ||
      q.back() <= 0 || v.back() <= 0)
    return std::nullopt;
  return Widths{static_cast<double>(q.back()), static_cast<double>(v.back())};
}

// Of the fused kernels, whatever the lengths.
std::optional<ProductGradients> attention_gradients(const OperatorCall& call,
                                                    const OperatorRow& row) {
  const auto w = widths(call, row.a);
  if (!w) return std::nullopt;
  return ProductGradients{(3 * w->head + 2 * w->value) / (w->head + w->value), 0};
}

constexpr OperatorRow kAttentionRows[] = {
    {"scaled_dot_product_attention", attention, 0, 1, 2, 0, attention_gradients},
    {"_scaled_dot_product_flash_attention "
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

std::optional<double> needed_of_attention(const OperatorRow& row, const OperatorCall& call) {
  if (row.formula == attention_gradient) {
    const Widths w = widths(call, row.a).value_or(Widths{1, 1});  // equal ones are usual
    return 2 * (w.head + w.value) / (3 * w.head + 2 * w.value);
  }
  if (row.gradients != attention_gradients || &row == &kAttentionRows[0]) return std::nullopt;
  return 1;
}

}  // namespace flopinj::reduce
