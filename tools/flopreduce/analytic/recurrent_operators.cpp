// Recurrent layers: every weight matrix meets each time step of each sample once; gates, which grow
// with the hidden size only, are left out where the matrices are counted. Backward twice that.
#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

// A whole layer or stack: argument a is [time, batch, features] or [batch, time, features], or of
// packed sequences [steps of all samples, features]. States, which have three dimensions, and
// weights follow; what has two is a matrix. Lists end at the first argument that is no tensor.
Formula recurrent(const OperatorCall& call, const OperatorRow& row) {
  const Shape& input = call.shape(row.a);
  if (input.size() != 2 && input.size() != 3) return Formula::none(kMismatch);
  u128 weights = 0;
  for (size_t i = row.a + 1U; !call.shape(i).empty(); ++i)
    if (call.shape(i).size() == 2) add_saturating(weights, elements(call.shape(i)));
  if (weights == 0) return Formula::none(kMismatch);
  return Formula::of(times_saturating(elements({input.begin(), input.end() - 1}), weights));
}

// One step: input [B, I], then the states, then weights a and b.
Formula cell(const OperatorCall& call, const OperatorRow& row) {
  const Shape &input = call.shape(0), &from_input = call.shape(row.a),
              &from_state = call.shape(row.b);
  if (input.size() != 2 || from_input.size() != 2 || from_state.size() != 2 ||
      from_input[1] != input[1])
    return Formula::none(kMismatch);
  u128 weights = elements(from_input);
  add_saturating(weights, elements(from_state));
  return Formula::of(times_saturating(static_cast<u128>(input[0]), weights));
}

// The gates of one step, after the products: gates of the input and of the state, [B, gates x
// units], a state [B, units], and biases of both gates or none. Per unit:
//   LSTM  i, f, o = sigmoid, g = tanh of sums; c' = f c + i g, h' = o tanh(c')
//   GRU   r, z = sigmoid of sums, n = tanh(x + r h); h' = n + z (h - n)
Formula gates(const OperatorCall& call, const OperatorRow& row) {
  const uint8_t count = row.a;
  const Shape &x = call.shape(0), &h = call.shape(1), &state = call.shape(2);
  if (!call.has(3) || x != h || elements(x) != times_saturating(elements(state), count))
    return Formula::none(kMismatch);
  const u128 biases = call.shape(3).empty() ? 0 : 2U * count;
  const auto per_unit = count == 4 ? OperatorFlop{1, 4 + 3 * 2 + 2 + biases, 5}
                                   : OperatorFlop{2, 2 + 2 * 2 + 1 + biases, 3};
  return Formula::of(per_unit.times(elements(state)));
}

// Whether the forward cell had biases, of which the gradient is a sum over the samples: the flag
// that says so is in no name.
std::optional<bool> biased(const OperatorCall& call) {
  if (call.forward == nullptr || !call.forward->has_sizes) return std::nullopt;
  const auto& sizes = call.forward->sizes;
  const std::string_view forward = call.forward->function();
  // Gates of input and state, state, bias; or input, states, two weights, bias.
  const size_t at = forward.starts_with("_thnn_fused_") ? 3
                    : forward == "lstm_cell"            ? 5
                    : forward == "gru_cell"             ? 4
                                                        : sizes.size();
  if (at >= sizes.size()) return std::nullopt;
  return !sizes[at].empty();
}

// row.b: what forward saved, [B, so many times units]. By the chain rule, per unit:
//   LSTM  t = tanh(c'); dc += dh o (1 - t t); do = dh t o (1 - o); di = dc g i (1 - i);
//         df = dc c f (1 - f); dg = dc i (1 - g g); dc before = dc f
//   GRU   w = 1 - z; dh before = dh z; dn = dh w (1 - n n); dz = dh (h - n) w z;
//         dr = dn s r (1 - r), s what the state gave to n; ds = dn r
// Biases: each gate's gradient once more, those of the GRU for input and state.
Formula gates_gradient(const OperatorCall& call, const OperatorRow& row) {
  const bool lstm = row.a == 4;
  const Shape &grad = call.shape(0), &saved = call.shape(row.b);
  if (grad.size() != 2 || saved.size() != 2) return Formula::none(kMismatch);
  // The program may need no gradient of the last step's state, or of its cell.
  if (lstm && grad != call.shape(1))
    return Formula::none("a gradient by the cell or by its output is missing");
  const auto any = biased(call);
  if (!any) return Formula::none("whether there are biases is not in the range's name");
  const u128 biases = !*any ? 0 : lstm ? 4 : 6;
  const auto per_unit = lstm ? OperatorFlop{3, 16 + biases, 1} : OperatorFlop{1, 13 + biases, 0};
  if (elements(saved) != times_saturating(elements(grad), lstm ? 4 : 5))
    return Formula::none(kMismatch);
  return Formula::of(per_unit.times(elements(grad)));
}

constexpr OperatorRow kRecurrentRows[] = {
    // every weight once per time step and sample; gates left out
    {"lstm gru rnn_tanh rnn_relu _cudnn_rnn", recurrent, 0, 0, 0, 0, two_gradients},
    {"_cudnn_rnn_backward", recurrent, 0, 0, 0, 2},  // twice forward
    // every weight once per time step and sample; gates left out
    {"lstm_cell", cell, 3, 4, 0, 0, two_gradients},
    {"gru_cell rnn_tanh_cell rnn_relu_cell", cell, 2, 3, 0, 0, two_gradients},
    // sums, sigmoids, hyperbolic tangents and the new state
    {"_thnn_fused_lstm_cell", gates, 4, 0, 0, 0},
    {"_thnn_fused_gru_cell", gates, 3, 0, 0, 0},
    // grad of h and c, c before and after, saved gates
    // the gates' gradients, and the sums of those by biases
    {"_thnn_fused_lstm_cell_backward _thnn_fused_lstm_cell_backward_impl", gates_gradient, 4, 4, 0,
     1},
    // grad of h; saved: r, z, n, h and what the state gave to n
    // the gates' gradients, and the sums of those by biases
    {"_thnn_fused_gru_cell_backward", gates_gradient, 3, 1, 0, 1},
};

}  // namespace

std::span<const OperatorRow> recurrent_operators() { return kRecurrentRows; }

}  // namespace flopinj::reduce
