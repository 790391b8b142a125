// Normalization, per element of the input; what is done once for a row or channel (the mean of a
// sum, the root of the variance, running statistics) is left out. Forward: argument a is the input,
// b the scale, b + 1 the shift; backward: a the input, b the scale, c the shift (0: where the scale
// is).
//
//   x^ = (x - mean) / sigma, y = gamma x^ + beta                     Ioffe and Szegedy, Batch
//   dx = (g - mean(g) - x^ mean(g x^)) / sigma, g = gamma dy,        normalization; Ba, Kiros and
//   dgamma = sum of dy x^, dbeta = sum of dy                         Hinton, Layer normalization;
//                                                                    Wu and He, Group normalization
// Where gamma belongs to a channel, it is left out of the sums over that channel, which are then
// those of dgamma and dbeta. In evaluation, batch norm takes running statistics: x^ as above,
// dx = gamma dy / sigma.
//   RMS norm: y = gamma x / r, r the root of the mean square         Zhang and Sennrich, Root mean
//   dx = (g - x^ mean(g x^)) / r                                     square layer normalization
#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kEither =
    "running statistics or the batch's own: not in the range's name, nor in its gradient's";

// Multiply-adds and single operations of each element of argument `a`.
Formula per_element(const OperatorCall& call, size_t a, u128 multiply_adds, u128 arithmetic) {
  return Formula::of(OperatorFlop{multiply_adds, arithmetic, 0}.times(elements(call.shape(a))));
}

// How gamma and beta add to `single` operations.
Formula scaled(const OperatorCall& call, const OperatorRow& row, u128 multiply_adds, u128 single) {
  const bool scale = !call.shape(row.b).empty(), shift = !call.shape(row.b + 1U).empty();
  if (scale && shift) return per_element(call, row.a, multiply_adds + 1, single);
  return per_element(call, row.a, multiply_adds, single + (scale || shift ? 1 : 0));
}

// Sum; x - mean, its square added; x^ again of x - mean and a product.
Formula layer_norm(const OperatorCall& call, const OperatorRow& row) {
  return call.has(row.b) ? scaled(call, row, 1, 3) : Formula::none(kMismatch);
}

// x^ 2; sums of g, and of g x^; g - mean, less x^ mean, by sigma. Then g, dgamma, dbeta.
Formula layer_norm_gradient(const OperatorCall& call, const OperatorRow& row) {
  if (!call.has(row.b) || !call.has(row.c)) return Formula::none(kMismatch);
  const u128 scale = call.shape(row.b).empty() ? 0 : 1, shift = call.shape(row.c).empty() ? 0 : 1;
  return per_element(call, row.a, 2 + scale, 5 + scale + shift);
}

// gamma belongs to a channel of the group: sums once, and g.
Formula group_norm_gradient(const OperatorCall& call, const OperatorRow& row) {
  if (!call.has(row.b)) return Formula::none(kMismatch);
  return per_element(call, row.a, 2, call.shape(row.b).empty() ? 5 : 6);
}

Formula rms_norm(const OperatorCall& call, const OperatorRow& row) {
  if (!call.has(row.b)) return Formula::none(kMismatch);
  return per_element(call, row.a, 1, call.shape(row.b).empty() ? 1 : 2);
}

// x^; sum of g x^; less x^ mean; by r. Then g and dgamma.
Formula rms_norm_gradient(const OperatorCall& call, const OperatorRow& row) {
  if (!call.has(row.b)) return Formula::none(kMismatch);
  const u128 each = call.shape(row.b).empty() ? 2 : 3;
  return per_element(call, row.a, each, each);
}

enum class Statistics : uint8_t { kUnknown, kBatch, kRunning };

// Of native_batch_norm_backward: grad, input, weight, running mean and variance, saved mean, ...
// Without running ones the batch's were taken. cudnn_batch_norm saves none in evaluation, and its
// gradient is then this operator's (aten/src/ATen/native/cuda/Normalization.cu,
// batch_norm_backward_cuda). native_batch_norm saves them either way.
Statistics of_gradient(const std::vector<Shape>& sizes) {
  if (sizes.size() < 6) return Statistics::kUnknown;
  if (sizes[3].empty()) return Statistics::kBatch;
  return sizes[5] == Shape{0} ? Statistics::kRunning : Statistics::kUnknown;
}

// input, weight, bias, running mean and variance, ...
Statistics of_forward(const OperatorCall& call) {
  if (!call.has(3)) return Statistics::kUnknown;
  if (call.shape(3).empty()) return Statistics::kBatch;
  if (call.gradient == nullptr) return Statistics::kUnknown;
  // Only in training (tools/autograd/derivatives.yaml, cudnn_batch_norm).
  if (call.gradient->function() == "cudnn_batch_norm_backward") return Statistics::kBatch;
  if (call.gradient->function() == "native_batch_norm_backward" && call.gradient->has_sizes)
    return of_gradient(call.gradient->sizes);
  return Statistics::kUnknown;
}

// Row.c: only what the name says.
Formula batch_norm(const OperatorCall& call, const OperatorRow& row) {
  if (!call.has(row.b)) return Formula::none(kMismatch);
  const auto said = static_cast<Statistics>(row.c);
  const Statistics statistics = said != Statistics::kUnknown ? said : of_forward(call);
  if (statistics == Statistics::kUnknown) return Formula::none(kEither);
  return statistics == Statistics::kBatch ? scaled(call, row, 1, 3) : scaled(call, row, 0, 2);
}

Formula batch_norm_gradient(const OperatorCall& call, const OperatorRow& row) {
  if (!call.has(row.b)) return Formula::none(kMismatch);
  const auto said = static_cast<Statistics>(row.c);
  const Statistics statistics = said != Statistics::kUnknown ? said : of_gradient(*call.sizes);
  if (statistics == Statistics::kUnknown) return Formula::none(kEither);
  // x^ 2, two sums, g - mean, less x^ mean, times gamma / sigma.
  if (statistics == Statistics::kBatch) return per_element(call, row.a, 2, 5);
  // times gamma / sigma; x - mean; two sums.
  return call.shape(row.b).empty() ? per_element(call, row.a, 0, 1)
                                   : per_element(call, row.a, 1, 3);
}

// Steps of synchronized batch norm: row.b multiply-adds, row.c single operations.
Formula step(const OperatorCall& call, const OperatorRow& row) {
  if (!call.has(row.a)) return Formula::none(kMismatch);
  return per_element(call, row.a, row.b, row.c);
}

constexpr auto kBatch = static_cast<uint8_t>(Statistics::kBatch);
constexpr auto kRunning = static_cast<uint8_t>(Statistics::kRunning);

constexpr OperatorRow kNormRows[] = {
    // input, normalized_shape or groups, weight, bias
    // mean, variance, scale and shift: 3 single operations, 2 multiply-adds
    {"layer_norm native_layer_norm group_norm", layer_norm, 0, 2, 0, 0},
    {"native_group_norm", layer_norm, 0, 1, 0, 0},
    // grad, input, normalized_shape, mean, rstd, weight, bias
    // gradients by input, scale and shift: 7 single, 3 multiply-adds
    {"native_layer_norm_backward", layer_norm_gradient, 1, 5, 6, 1},
    // grad, input, mean, rstd, weight
    // gradients by input, scale and shift: 6 single, 2 multiply-adds
    {"native_group_norm_backward", group_norm_gradient, 1, 4, 0, 1},
    {"rms_norm _fused_rms_norm", rms_norm, 0, 2, 0, 0},  // sum of squares, scale twice
    // grad, input, normalized_shape, rstd, weight
    // gradients by input and scale: 3 single, 3 multiply-adds
    {"_fused_rms_norm_backward", rms_norm_gradient, 1, 4, 0, 1},

    // mean, variance, scale and shift: 3 single operations, 2 multiply-adds; with running
    // statistics 2, 1
    {"batch_norm instance_norm _batch_norm_impl_index native_batch_norm _native_batch_norm_legit "
     "cudnn_batch_norm",
     batch_norm, 0, 1, 0, 0},
    {"_batch_norm_with_update", batch_norm, 0, 1, kBatch, 0},
    {"_native_batch_norm_legit_no_training", batch_norm, 0, 1, kRunning, 0},
    // gradients by input, scale and shift: 5 single operations, 2 multiply-adds; with running
    // statistics 3, 1
    {"native_batch_norm_backward", batch_norm_gradient, 1, 2, 0, 1},
    {"cudnn_batch_norm_backward", batch_norm_gradient, 0, 2, kBatch, 1},
    {"batch_norm_stats", step, 0, 1, 2, 0},            // mean and variance
    {"batch_norm_elemt", step, 0, 1, 2, 0},            // difference, product, scale and shift
    {"batch_norm_backward_reduce", step, 1, 1, 2, 1},  // two sums
    {"batch_norm_backward_elemt", step, 1, 1, 3, 1},   // gradient by input
};

}  // namespace

std::span<const OperatorRow> norm_operators() { return kNormRows; }

}  // namespace flopinj::reduce
