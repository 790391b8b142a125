// Activations, softmax, dropout and losses, per element of the argument named, from the definition
// (torch.nn's documentation prints it for each). The same rules as elementwise_operators.cpp.
#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

// Operations in the order: multiply-adds, arithmetic, uncounted.

constexpr ElementwiseRow kActivationRows[] = {
    {"relu threshold", 0, 0, 0, 1},  // one comparison per element
    {"threshold_backward", 0, 0, 0, 1, true},
    {"leaky_relu prelu _prelu_kernel", 0, 0, 1, 1},  // comparison and scale
    {"leaky_relu_backward", 0, 0, 1, 1, true},
    {"_prelu_kernel_backward", 0, 0, 2, 1, true},  // gradients by input and by weight
    {"relu6 hardtanh", 0, 0, 0, 2},                // two comparisons
    {"hardtanh_backward", 0, 0, 0, 2, true},
    {"hardsigmoid", 0, 0, 2, 2},                      // min(max(x + 3, 0), 6) / 6
    {"hardsigmoid_backward", 0, 0, 1, 2, true},       // dy / 6 between -3 and 3
    {"hardswish", 0, 0, 3, 2},                        // x min(max(x + 3, 0), 6) / 6
    {"hardswish_backward", 0, 1, 1, 2, true},         // dy (x / 3 + 1 / 2) between -3 and 3
    {"elu", 0, 0, 2, 2},                              // x > 0 ? x : alpha (exp(x) - 1)
    {"elu_backward", 0, 0, 2, 2, true},               // dy alpha exp(x) where x < 0
    {"selu", 0, 0, 3, 2},                             // the same, scaled
    {"celu", 0, 0, 3, 2},                             // x > 0 ? x : alpha (exp(x / alpha) - 1)
    {"sigmoid", 0, 0, 2, 1},                          // 1 / (1 + exp(-x))
    {"sigmoid_backward", 0, 0, 3, 0, true},           // dy y (1 - y)
    {"log_sigmoid log_sigmoid_forward", 0, 0, 2, 4},  // min(x, 0) - log(1 + exp(-|x|))
    {"log_sigmoid_backward", 0, 0, 2, 1, true},       // dy / (1 + exp(x))
    {"tanh", 0, 0, 0, 1},                             // one special function per element
    {"tanh_backward", 0, 1, 1, 0, true},              // dy (1 - y y)
    {"softplus", 0, 0, 3, 3},                         // log(1 + exp(beta x)) / beta
    {"softplus_backward", 0, 0, 4, 2, true},          // dy z / (1 + z), z = exp(beta x)
    {"silu", 0, 0, 2, 1},                             // x / (1 + exp(-x))
    {"silu_backward", 0, 1, 5, 1, true},              // dy s (1 + x (1 - s)), s = sigmoid(x)
    {"mish", 0, 0, 2, 3},                             // x tanh(log(1 + exp(x)))
    // dy (t + x s (1 - t t)), t = tanh(log(1 + exp(x))), s = sigmoid(x)
    {"mish_backward", 0, 2, 5, 4, true},
    // The tanh form, which has the same name, is an approximation of this.
    {"gelu", 0, 0, 4, 1},                 // x / 2 (1 + erf(x / sqrt 2))
    {"gelu_backward", 0, 1, 7, 2, true},  // dy (cdf(x) + x pdf(x))
    {"glu", kHalf, 0, 3, 1},              // a sigmoid(b), half of the elements each
    {"glu_backward", 0, 0, 6, 1, true},   // dy s and dy s a (1 - s), s = sigmoid(b)
    {"dropout native_dropout _fused_dropout", 0, 0, 2, 1},  // draw, mask, scale
    {"native_dropout_backward", 0, 0, 2, 0, true},          // mask, scale

    // maximum, difference, exponential, sum, quotient
    {"softmax _softmax _safe_softmax", 0, 0, 3, 2},
    {"_softmax_backward_data", 0, 1, 2, 0, true},  // (dy - sum of dy y) y
    {"log_softmax _log_softmax", 0, 0, 3, 2},  // maximum, difference, exponential, sum, difference
    {"_log_softmax_backward_data", 0, 1, 1, 1, true},  // dy - exp(y) sum of dy

    // self, target; backward: grad, self, target
    {"cross_entropy_loss", 0, 0, 3, 2},  // maximum, difference, exponential, sum, difference
    // one addition per sample
    {"nll_loss nll_loss_nd nll_loss2d nll_loss_forward nll_loss2d_forward", 1, 0, 1, 0},
    {"nll_loss_backward nll_loss2d_backward", 2, 0, 1, 0, true},  // one scaling per sample
    {"mse_loss", 0, 1, 1, 0},                                     // difference, its square added
    {"mse_loss_backward", 1, 0, 3, 0, true},                      // difference, scaled twice
    {"l1_loss", 0, 0, 2, 1},                        // difference, its absolute value added
    {"smooth_l1_loss", 0, 1, 2, 2},                 // d d / (2 beta), added: the quadratic part
    {"smooth_l1_loss_backward", 1, 0, 4, 2, true},  // d / beta, scaled twice: the quadratic part
    {"huber_loss", 0, 1, 2, 2},                     // d d / 2, added: the quadratic part
    {"huber_loss_backward", 1, 0, 3, 2, true},      // d, scaled twice: the quadratic part
    {"kl_div", 0, 1, 1, 1},                         // t (log(t) - x), added
    // t log(p) + (1 - t) log(1 - p), added; logarithms clamped
    {"binary_cross_entropy", 0, 1, 4, 4},
    {"binary_cross_entropy_backward", 1, 0, 6, 1, true},  // dy (p - t) / (p (1 - p)), scaled
    {"binary_cross_entropy_with_logits", 0, 1, 4, 4},     // (1 - t) x - log sigmoid(x), added
};

}  // namespace

std::span<const ElementwiseRow> activation_operators() { return kActivationRows; }

}  // namespace flopinj::reduce
