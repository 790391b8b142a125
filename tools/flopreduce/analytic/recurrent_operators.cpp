// Recurrent layers: every weight matrix meets each time step of each sample once; gates, which grow
// with the hidden size alone, are left out where the matrices are counted. Backward twice that.
#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

// A whole layer or stack: argument a is [time, batch, features] or [batch, time, features], or of
// packed sequences [steps of all samples, features]. States, which have three dimensions, and weights
// follow; what has two is a matrix. Lists end at the first argument that is no tensor.
Formula recurrent(const OperatorCall& call, const OperatorRow& row) {
  const Shape* input = call.shape(row.a);
  if (input == nullptr || (input->size() != 2 && input->size() != 3))
    return Formula::none(kMismatch);
  u128 weights = 0;
  for (size_t i = row.a + 1U; i < call.sizes->size() && !call.shape(i)->empty(); ++i)
    if (const Shape& shape = *call.shape(i); shape.size() == 2)
      add_saturating(weights, elements(shape));
  if (weights == 0) return Formula::none(kMismatch);
  u128 steps = static_cast<u128>((*input)[0]);
  if (input->size() == 3) steps = times_saturating(steps, static_cast<u128>((*input)[1]));
  return Formula::of(times_saturating(steps, weights));
}

// One step: input [B, I], then the states, then weights a and b.
Formula cell(const OperatorCall& call, const OperatorRow& row) {
  const Shape* input = call.shape(0);
  const Shape* from_input = call.shape(row.a);
  const Shape* from_state = call.shape(row.b);
  if (input == nullptr || from_input == nullptr || from_state == nullptr || input->size() != 2 ||
      from_input->size() != 2 || from_state->size() != 2 || (*from_input)[1] != (*input)[1])
    return Formula::none(kMismatch);
  u128 weights = elements(*from_input);
  add_saturating(weights, elements(*from_state));
  return Formula::of(times_saturating(static_cast<u128>((*input)[0]), weights));
}

// The gates of one step, after the products: gates of the input and of the state, [B, gates x units],
// a state [B, units], and biases of both gates or none. Per unit:
//   LSTM  i, f, o = sigmoid, g = tanh of sums; c' = f c + i g, h' = o tanh(c')
//   GRU   r, z = sigmoid of sums, n = tanh(x + r h); h' = n + z (h - n)
Formula gates(const OperatorCall& call, const OperatorRow& row) {
  const uint8_t count = row.a;
  const Shape* x = call.shape(0);
  const Shape* h = call.shape(1);
  const Shape* state = call.shape(2);
  const Shape* bias = call.shape(3);
  if (x == nullptr || h == nullptr || state == nullptr || bias == nullptr || *x != *h ||
      elements(*x) != times_saturating(elements(*state), count))
    return Formula::none(kMismatch);
  const u128 biases = bias->empty() ? 0 : 2U * count;
  Formula formula = Formula::of(0);
  formula.flop = count == 4 ? OperatorFlop{1, 4 + 3 * 2 + 2 + biases, 5}
                            : OperatorFlop{2, 2 + 2 * 2 + 1 + biases, 3};
  formula.flop = formula.flop->times(elements(*state));
  return formula;
}

constexpr const char* kWeights = "every weight once per time step and sample; gates left out";
constexpr const char* kGates = "sums, sigmoids, hyperbolic tangents and the new state";
constexpr OperatorRow kRows[] = {
    {"lstm", recurrent, 0, 0, 0, 0, kWeights, two_gradients},
    {"gru", recurrent, 0, 0, 0, 0, kWeights, two_gradients},
    {"rnn_tanh", recurrent, 0, 0, 0, 0, kWeights, two_gradients},
    {"rnn_relu", recurrent, 0, 0, 0, 0, kWeights, two_gradients},
    {"_cudnn_rnn", recurrent, 0, 0, 0, 0, kWeights, two_gradients},
    {"_cudnn_rnn_backward", recurrent, 0, 0, 0, 2, "twice forward"},
    {"lstm_cell", cell, 3, 4, 0, 0, kWeights, two_gradients},
    {"gru_cell", cell, 2, 3, 0, 0, kWeights, two_gradients},
    {"rnn_tanh_cell", cell, 2, 3, 0, 0, kWeights, two_gradients},
    {"rnn_relu_cell", cell, 2, 3, 0, 0, kWeights, two_gradients},
    {"_thnn_fused_lstm_cell", gates, 4, 0, 0, 0, kGates},
    {"_thnn_fused_gru_cell", gates, 3, 0, 0, 0, kGates},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() { return kRows; }

}  // namespace flopinj::reduce
