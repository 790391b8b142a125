// Products as kernels compute them: in whole tiles.
//
// A kernel for matrix products gives each thread block one tile of the result, and computes all of
// it, whatever part of the result lies beyond the matrix (NVIDIA, Matrix Multiplication Background
// User's Guide, "Tile Quantization"). The depth is done in whole steps in the same way. Kernels
// have their tile in their name: "128x64_32x3" (rows x columns, depth of a step x stages),
// "tilesize128x64x16", "sgemm_128x128". Convolutions without FFT or Winograd are such products too
// (implicit GEMM: Chetlur et al., cuDNN: Efficient Primitives for Deep Learning, section 3).
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "analytic/operator_name.h"
#include "support/wide.h"

namespace flopinj::reduce {

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
