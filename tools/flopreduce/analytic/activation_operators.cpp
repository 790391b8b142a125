// Activations, softmax, dropout and losses, per element of the argument named, from the definition
// (torch.nn's documentation prints it for each). The same rules as elementwise_operators.cpp.
#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

// Operations in the order: multiply-adds, arithmetic, uncounted.
constexpr const char* kScale = "comparison and scale";
constexpr const char* kExponential = "x > 0 ? x : alpha (exp(x) - 1)";
constexpr const char* kDraw = "draw, mask, scale";
constexpr const char* kSoftmax = "maximum, difference, exponential, sum, quotient";
constexpr const char* kSoftmaxBack = "(dy - sum of dy y) y";
constexpr const char* kLogSoftmax = "maximum, difference, exponential, sum, difference";
constexpr const char* kLogSoftmaxBack = "dy - exp(y) sum of dy";
constexpr const char* kSample = "one addition per sample";
constexpr const char* kSampleBack = "one scaling per sample";

constexpr ElementwiseRow kActivationRows[] = {
    {"relu", 0, 0, 0, 1, kCompare},
    {"threshold", 0, 0, 0, 1, kCompare},
    {"threshold_backward", 0, 0, 0, 1, kCompare, true},
    {"leaky_relu", 0, 0, 1, 1, kScale},
    {"leaky_relu_backward", 0, 0, 1, 1, kScale, true},
    {"prelu", 0, 0, 1, 1, kScale},
    {"_prelu_kernel", 0, 0, 1, 1, kScale},
    {"_prelu_kernel_backward", 0, 0, 2, 1, "gradients by input and by weight", true},
    {"relu6", 0, 0, 0, 2, "two comparisons"},
    {"hardtanh", 0, 0, 0, 2, "two comparisons"},
    {"hardtanh_backward", 0, 0, 0, 2, "two comparisons", true},
    {"hardsigmoid", 0, 0, 2, 2, "min(max(x + 3, 0), 6) / 6"},
    {"hardsigmoid_backward", 0, 0, 1, 2, "dy / 6 between -3 and 3", true},
    {"hardswish", 0, 0, 3, 2, "x min(max(x + 3, 0), 6) / 6"},
    {"hardswish_backward", 0, 1, 1, 2, "dy (x / 3 + 1 / 2) between -3 and 3", true},
    {"elu", 0, 0, 2, 2, kExponential},
    {"elu_backward", 0, 0, 2, 2, "dy alpha exp(x) where x < 0", true},
    {"selu", 0, 0, 3, 2, "the same, scaled"},
    {"celu", 0, 0, 3, 2, "x > 0 ? x : alpha (exp(x / alpha) - 1)"},
    {"sigmoid", 0, 0, 2, 1, "1 / (1 + exp(-x))"},
    {"sigmoid_backward", 0, 0, 3, 0, "dy y (1 - y)", true},
    {"log_sigmoid", 0, 0, 2, 4, "min(x, 0) - log(1 + exp(-|x|))"},
    {"log_sigmoid_forward", 0, 0, 2, 4, "min(x, 0) - log(1 + exp(-|x|))"},
    {"log_sigmoid_backward", 0, 0, 2, 1, "dy / (1 + exp(x))", true},
    {"tanh", 0, 0, 0, 1, kSpecial},
    {"tanh_backward", 0, 1, 1, 0, "dy (1 - y y)", true},
    {"softplus", 0, 0, 3, 3, "log(1 + exp(beta x)) / beta"},
    {"softplus_backward", 0, 0, 4, 2, "dy z / (1 + z), z = exp(beta x)", true},
    {"silu", 0, 0, 2, 1, "x / (1 + exp(-x))"},
    {"silu_backward", 0, 1, 5, 1, "dy s (1 + x (1 - s)), s = sigmoid(x)", true},
    {"mish", 0, 0, 2, 3, "x tanh(log(1 + exp(x)))"},
    {"mish_backward", 0, 2, 5, 4,
     "dy (t + x s (1 - t t)), t = tanh(log(1 + exp(x))), s = sigmoid(x)", true},
    // The tanh form, which has the same name, is an approximation of this.
    {"gelu", 0, 0, 4, 1, "x / 2 (1 + erf(x / sqrt 2))"},
    {"gelu_backward", 0, 1, 7, 2, "dy (cdf(x) + x pdf(x))", true},
    {"glu", kHalf, 0, 3, 1, "a sigmoid(b), half of the elements each"},
    {"glu_backward", 0, 0, 6, 1, "dy s and dy s a (1 - s), s = sigmoid(b)", true},
    {"dropout", 0, 0, 2, 1, kDraw},
    {"native_dropout", 0, 0, 2, 1, kDraw},
    {"_fused_dropout", 0, 0, 2, 1, kDraw},
    {"native_dropout_backward", 0, 0, 2, 0, "mask, scale", true},

    {"softmax", 0, 0, 3, 2, kSoftmax},
    {"_softmax", 0, 0, 3, 2, kSoftmax},
    {"_safe_softmax", 0, 0, 3, 2, kSoftmax},
    {"_softmax_backward_data", 0, 1, 2, 0, kSoftmaxBack, true},
    {"log_softmax", 0, 0, 3, 2, kLogSoftmax},
    {"_log_softmax", 0, 0, 3, 2, kLogSoftmax},
    {"_log_softmax_backward_data", 0, 1, 1, 1, kLogSoftmaxBack, true},

    // self, target; backward: grad, self, target
    {"cross_entropy_loss", 0, 0, 3, 2, kLogSoftmax},
    {"nll_loss", 1, 0, 1, 0, kSample},
    {"nll_loss_nd", 1, 0, 1, 0, kSample},
    {"nll_loss2d", 1, 0, 1, 0, kSample},
    {"nll_loss_forward", 1, 0, 1, 0, kSample},
    {"nll_loss2d_forward", 1, 0, 1, 0, kSample},
    {"nll_loss_backward", 2, 0, 1, 0, kSampleBack, true},
    {"nll_loss2d_backward", 2, 0, 1, 0, kSampleBack, true},
    {"mse_loss", 0, 1, 1, 0, "difference, its square added"},
    {"mse_loss_backward", 1, 0, 3, 0, "difference, scaled twice", true},
    {"l1_loss", 0, 0, 2, 1, "difference, its absolute value added"},
    {"smooth_l1_loss", 0, 1, 2, 2, "d d / (2 beta), added: the quadratic part"},
    {"smooth_l1_loss_backward", 1, 0, 4, 2, "d / beta, scaled twice: the quadratic part", true},
    {"huber_loss", 0, 1, 2, 2, "d d / 2, added: the quadratic part"},
    {"huber_loss_backward", 1, 0, 3, 2, "d, scaled twice: the quadratic part", true},
    {"kl_div", 0, 1, 1, 1, "t (log(t) - x), added"},
    {"binary_cross_entropy", 0, 1, 4, 4,
     "t log(p) + (1 - t) log(1 - p), added; logarithms clamped"},
    {"binary_cross_entropy_backward", 1, 0, 6, 1, "dy (p - t) / (p (1 - p)), scaled", true},
    {"binary_cross_entropy_with_logits", 0, 1, 4, 4, "(1 - t) x - log sigmoid(x), added"},
};

}  // namespace

std::span<const ElementwiseRow> activation_operators() { return kActivationRows; }

}  // namespace flopinj::reduce
