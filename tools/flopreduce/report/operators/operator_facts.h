// What is known of an operator's launches in one phase, and why the hardware's count of them
// differs from the formula, by evidence.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analytic/attention_kernels.h"
#include "analytic/operator_flop.h"
#include "analytic/operator_name.h"
#include "report/report.h"

namespace flopinj::reduce {

// A kernel among an operator's launches.
struct KernelSum {
  uint64_t launches = 0;
  uint64_t incomplete = 0;  // of them: unmeasured, or not screened for tensor work
  u128 flop = 0, matrix_flop = 0;
  u128 in_part = 0;     // of flop: by launches that were not screened
  bool tensor = false;  // some ran on tensor cores
  void add(const KernelSum& other) {
    add_saturating(launches, other.launches);
    add_saturating(incomplete, other.incomplete);
    tensor = tensor || other.tensor;
    add_saturating(flop, other.flop);
    add_saturating(matrix_flop, other.matrix_flop);
    add_saturating(in_part, other.in_part);
  }
};
struct OperatorKernel : KernelSum {
  std::string name;                               // mangled
  std::optional<AttentionKernel> attention = {};  // of its name
};

// What kernels of fused attention executed, by whose they are: where those of backward did 2.5 or
// 3.5 times forward's products, as five or seven for each pair of a query and a key are, it is
// known how many of them the model needs, whatever their algorithm: twice forward's. Likewise of
// kernels named for forward that run in backward where none is named for it; beside such ones, or
// if they are no more than forward's, they compute again.
class AttentionWork {
 public:
  void add(const AttentionKernel& kernel, const std::string& phase, u128 matrix_flop);
  // The part of the products of a kernel that was added that the model needs; nothing where that is
  // not known.
  std::optional<double> needed(const AttentionKernel& kernel, const std::string& phase) const;

 private:
  struct Sums {
    u128 forward = 0, backward = 0, forward_in_backward = 0;
    u128 apart = 0;  // of some of the gradients
  };
  std::map<std::string_view, Sums> families_;
};

// Which gradients backward computed of a product with weights.
enum class Gradients : uint8_t {
  kUnknown,   // nothing shows it
  kBoth,      // by input and by weights
  kNoInput,   // by weights only
  kNoWeight,  // by input only: the weights are frozen
  kNone,      // none: backward has nothing of this operator
};
struct GradientEvidence {
  Gradients found = Gradients::kUnknown;
  std::string text;  // what it is taken from; of kUnknown, what is missing
  // Shares of the calls that had each, where some calls of one range had only one: both, by their
  // number. Nothing where `found` says it of all.
  struct Shares {
    double input = 1, weight = 1;
  };
  std::optional<Shares> shares = {};
  // It is taken from backward's FLOP, so it is no expectation of them.
  bool by_flop = false;
};

// Calls of an operator that do the same work.
struct CallForm {
  Formula formula;  // of one call
  uint64_t calls = 0;
  uint64_t runs = 0;  // of their gradients: each backward pass over a kept graph computes again
  bool by_result = false;  // others of the same name may have another formula
};

struct OperatorFacts {
  const OperatorName* name = nullptr;
  std::string phase;
  Formula formula;  // of one call, of the first form; without FLOP where any form has none
  std::vector<CallForm> forms;  // one, but for layers that share a range
  uint64_t calls = 0;           // of all forms
  bool calls_counted = false;   // by sequence numbers; else the launches of the busiest kernel
  int fma = 2;
  Work work;
  std::vector<OperatorKernel> kernels;  // most FLOP first
  bool tensor = false;                  // some ran on tensor cores
  bool no_products = false;             // its kernels' names say that they multiply no matrices
  std::string unmeasured_reason;
  GradientEvidence gradients;                // of an operator that computes both of a product's
  const AttentionWork* attention = nullptr;  // of all kernels; null where it does not count

  // FLOP by formula of all calls, nothing left out for what was not computed; only where there is
  // a formula. What is computed again does not count.
  u128 formula_flop() const {
    OperatorFlop sum;
    for (const CallForm& form : forms) sum.add(form.formula.needed().times(form.calls));
    return sum.flop(fma);
  }
  // The same of all that the algorithm executes.
  OperatorFlop algorithm() const {
    OperatorFlop sum;
    for (const CallForm& form : forms) sum.add(form.formula.flop->times(form.calls));
    return sum;
  }
};

// Of a kernel of an operator without a formula: the part of its products that the model needs,
// where it is fused attention, by the kernel's name or the operator's. 0 of what backward computes
// again. An operator that is known to be something else has none, whatever its kernels are named.
std::optional<double> needed_of_attention(const OperatorFacts& facts, const OperatorKernel& kernel);

struct Cause {
  std::string cause;     // empty: there is nothing to explain
  std::string evidence;  // what it is taken from
};
Cause cause_of(const OperatorFacts& facts);

// Whether the formula is an upper bound: of both gradients, and nothing shows which were computed.
bool formula_is_at_most(const OperatorFacts& facts);

// Whether a mask leaves out half of fused attention, where no name says which: by what it executed
// of its formula, 0.495 to 0.66. Under a causal mask of L queries and keys a kernel with tiles of t
// does 1/2 + t / (2 L) of the scores, and the softmax adds a few operations to each (Dao,
// FlashAttention-2, section 3.1: blocks beyond the diagonal are skipped). It is known only where a
// kernel's name says that the mask is causal. Known failure: sequences of fewer than four tiles,
// which look like no mask.
enum class Mask : uint8_t { kNone, kPerhapsHalf, kCausal };
Mask mask_of_attention(const OperatorFacts& facts);

// FLOP that count for model FLOP utilization (MFU):
// - what backward computes again does not count (Formula::again; PaLM, appendix B: recomputation
//   belongs to hardware FLOP utilization);
// - of a mask that a name tells, what it leaves in (the formula has it); of another one that leaves
//   out half, or perhaps does, the other half counts: as Megatron-LM
//   (num_floating_point_operations, "causal mask (only half of the mask is non-zero)") and
//   FlashAttention's benchmarks have it.
//   PaLM and nanoGPT (12 L H Q T for each token) count the whole matrix: up to twice as much for
//   attention;
// - of a product's two gradients those that were computed, by evidence (gradients.h);
// - of fused attention without a formula, as of packed sequences, whose lengths no range's name
//   has, what its kernels executed, about: blocks on a mask's edge run whole. Of backward without
//   what it computes again: of five products four (needed_of_attention());
// - where that is more than was executed, and no algorithm explains it, what was executed, less
//   what backward computes again: windows and packed sequences may leave out more than any name
//   says.
// A product that executed twice its formula or more, unexplained, may be of complex numbers, or be
// two products: of that nothing is known but a lower bound.
// A formula of the user's own counts as it is written.
ModelFlop model_of(const OperatorFacts& facts, const Cause& cause);
// Such a product: several in one call, as in forward mode (torch.func.jvp), which has another one
// for the tangent, or one of complex numbers.
bool multiplies_more(const OperatorFacts& facts, const Cause& cause);

// Products as kernels compute them: in whole tiles.
//
// A kernel for matrix products gives each thread block one tile of the result, and computes all of
// it, whatever part of the result lies beyond the matrix (NVIDIA, Matrix Multiplication Background
// User's Guide, "Tile Quantization"). The depth is done in whole steps in the same way. Kernels
// have their tile in their name: "128x64_32x3" (rows x columns, depth of a step x stages),
// "tilesize128x64x16", "sgemm_128x128". Convolutions without FFT or Winograd are such products too
// (implicit GEMM: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, section 3).

// `batch` products of [rows, depth] with [depth, columns].
struct Gemm {
  uint64_t batch = 1, rows = 0, columns = 0, depth = 0;
};

// What mm, addmm, bmm, baddbmm, linear and matmul multiply, where sizes are known. Lives as long as
// the name.
struct Factors {
  const Shape& first;
  const Shape& second;  // of linear: the weights, [columns, depth]
};
std::optional<Factors> factors_of(const OperatorName& name);
// Of a matrix or its transpose: the smaller one first.
using MatrixSizes = std::pair<int64_t, int64_t>;
// Of such a product: weights that are one matrix; the other operand, its rows in one matrix; and
// the result, where both operands are matrices.
std::optional<MatrixSizes> weight_sizes(const OperatorName& name);
std::optional<MatrixSizes> input_sizes(const OperatorName& name);
std::optional<MatrixSizes> result_sizes(const OperatorName& name);

enum class Direction : uint8_t { kForward, kInputGradient, kWeightGradient };

// What an operator is for the hardware: a product, or a convolution that is not transposed, in one
// direction. `multiply_adds`: of one call in that direction, by formula; tells the sizes that no
// name has. Nothing for other operators. With weights [K, C / groups, taps...] and `positions` of
// the output, of all images together:
//   forward           groups x [positions, C / groups x taps] x [.., K / groups]
//   gradient by input groups x [positions of the input, K / groups x taps] x [.., C / groups]
//   by weights        groups x [K / groups, positions] x [.., C / groups x taps]
std::optional<Gemm> gemm_of(const OperatorName& name, u128 multiply_adds, Direction direction);

// Why `kernel` executes `ratio` times the product: in words, if the tiles that its name tells give
// that number to 1 %, and to a quarter of the difference. Known failures: a name whose numbers are
// no tile but fit; tiles that the name leaves out.
std::optional<std::string> explain_padding(const Gemm& gemm, const std::string& kernel,
                                           double ratio);

}  // namespace flopinj::reduce
