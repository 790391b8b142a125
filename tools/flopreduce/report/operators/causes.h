// Why the hardware's count of an operator differs from the formula, by evidence.
#pragma once
#include <optional>
#include <string>

#include "report/operators/operator_facts.h"

namespace flopinj::reduce {

struct Cause {
  std::string cause;     // empty: there is nothing to explain
  std::string evidence;  // what it is taken from
};
Cause cause_of(const OperatorFacts& facts);

// Whether the formula is an upper bound: of both gradients, and nothing shows which were computed.
bool formula_is_at_most(const OperatorFacts& facts);

// Whether fused attention executed about half of its formula: 0.495 to 0.66. Under a causal mask of
// L queries and keys a kernel with tiles of t does 1/2 + t / (2 L) of the scores, and the softmax
// adds a few operations to each (Dao, FlashAttention-2, section 3.1: blocks beyond the diagonal are
// skipped). No name has the mask. Known failures: another mask that leaves out half; sequences of
// fewer than four tiles, which look like no mask.
bool about_half_of_attention(const OperatorFacts& facts);

// FLOP that count for model FLOP utilization (MFU); nothing without a formula:
// - what backward computes again does not count (Formula::again; PaLM, appendix B: recomputation
//   belongs to hardware FLOP utilization);
// - of a causal mask what it leaves in counts, half: as Megatron-LM (num_floating_point_operations,
//   "causal mask (only half of the mask is non-zero)") and FlashAttention's benchmarks have it.
//   PaLM and nanoGPT (12 L H Q T for each token) count the whole matrix: up to twice as much for
//   attention;
// - of a product's two gradients those that were computed, by evidence (gradients.h).
std::optional<u128> model_flop(const OperatorFacts& facts);

}  // namespace flopinj::reduce
