// Operators on lists of tensors: fused optimizers and _foreach_. What their arguments are is from
// PyTorch's schemas (aten/src/ATen/native/native_functions.yaml), how lists of them are printed
// from torch/csrc/profiler/util.cpp (inputSizes): flattened, an empty list and a list of numbers as
// one [].
//
// Per parameter, with bias corrections and the learning rate, which are worked out once, left out,
// and so weight decay of SGD and Adam and Nesterov's form, which sizes do not tell:
//   SGD            p <- p - lr g                              1 multiply-add
//   with momentum  v <- mu v + g; p <- p - lr v               2 multiply-adds
//   Adam           m <- b1 m + (1 - b1) g                     1 product, 1 multiply-add
//                  v <- b2 v + (1 - b2) g g                   2 products, 1 multiply-add
//                  p <- p - lr m / (sqrt(v) / c + eps)        2 quotients, 1 sum, 1 root,
//                                                             1 multiply-add
//   AMSGrad        the same with the largest v so far         1 comparison more
//   AdamW          the same after p <- (1 - lr wd) p          1 product more
//   Adagrad        s <- s + g g; p <- p - lr g / (sqrt(s) + eps)
// Kingma and Ba, Adam, algorithm 1; Reddi, Kale and Kumar, On the convergence of Adam and beyond,
// algorithm 2; Loshchilov and Hutter, Decoupled weight decay, algorithm 2; Duchi, Hazan and Singer,
// Adaptive subgradient methods; all as torch.optim computes them.
#include <algorithm>

#include "analytic/tables.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr ListRow kListRows[] = {
    // params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs (none without AMSGrad), state_steps;
    // lr, two betas, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf
    // two moments, quotient with a root, of each parameter
    {"_fused_adam", "PPPP.S.........", 3, 6, 1},
    {"_fused_adam", "PPPPPS.........", 3, 6, 2},
    {"_fused_adamw", "PPPP.S.........", 3, 7, 1},
    {"_fused_adamw", "PPPPPS.........", 3, 7, 2},
    // params, grads, momentum_buffer_list (none without momentum); weight_decay, momentum, lr,
    // dampening, nesterov, maximize, is_first_step, grad_scale, found_inf
    {"_fused_sgd", "PP..........", 1, 0, 0},  // p - lr g, of each parameter
    {"_fused_sgd", "PPP.........", 2, 0, 0},  // mu v + g; p - lr v, of each parameter
    // params, grads, state_sums, state_steps; lr, lr_decay, weight_decay, eps, maximize,
    // grad_scale, found_inf
    // s + g g; p - lr g / (sqrt(s) + eps), of each parameter
    {"_fused_adagrad", "PPPS.......", 2, 2, 1},

    // A number or list of numbers for all; a tensor and alpha; a list and alpha. Two lists and
    // alpha look like one list, twice as long, and a number: those have no formula.
    // one operation per element
    {"_foreach_add _foreach_sub _foreach_mul _foreach_div", "P.", 0, 1, 0},
    {"_foreach_add", "P..", 0, 1, 0},
    {"_foreach_add _foreach_sub", "PP.", 0, 1, 0},
    {"_foreach_mul _foreach_div", "PP", 0, 1, 0},
    {"_foreach_reciprocal", "P", 0, 1, 0},
    {"_foreach_addcmul", "PPP.", 1, 1, 0},  // self + value x a x b
    {"_foreach_addcdiv", "PPP.", 1, 1, 0},  // self + value x a / b
    {"_foreach_lerp", "PP. PPP", 1, 1, 0},  // self + weight (end - self)
    // ord, dtype (since PyTorch 2.3)
    {"_foreach_norm", "P..", 1, 0, 0},   // 2-norm: one multiply-add per element
    {"_foreach_sigmoid", "P", 0, 2, 1},  // 1 / (1 + exp(-x))
    // one special function per element
    {"_foreach_sqrt _foreach_rsqrt _foreach_exp _foreach_log _foreach_tanh", "P", 0, 0, 1},
    {"_foreach_pow", "P. PP .P", 0, 0, 1},
    {"_foreach_neg _foreach_abs _foreach_sign", "P", 0, 0, 1},  // only the sign
    {"_foreach_max", "P", 0, 0, 1},                             // one comparison per element
    {"_foreach_maximum _foreach_minimum _foreach_clamp_max _foreach_clamp_min", "P. PP", 0, 0, 1},
    {"_foreach_copy", "PP.", 0, 0, 0},  // moves data
    {"_foreach_zero", "P", 0, 0, 0},
    // found_inf, inv_scale
    {"_amp_foreach_non_finite_check_and_unscale", "P..", 0, 1, 1},  // check and scale
};

bool single(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size == 1; });
}

// Elements of the first list, where the arguments can be in this form.
std::optional<u128> elements_in(const std::vector<Shape>& sizes, std::string_view form) {
  const auto ones = static_cast<size_t>(std::count(form.begin(), form.end(), '.'));
  const size_t lists = form.size() - ones;
  if (sizes.size() <= ones || (sizes.size() - ones) % lists != 0) return std::nullopt;
  const size_t each = (sizes.size() - ones) / lists;
  const size_t first = form.find('P');  // all before it are single arguments
  u128 sum = 0;
  for (size_t i = 0; i < each; ++i) add_saturating(sum, elements(sizes[first + i]));
  size_t at = 0;
  for (const char kind : form) {
    for (size_t i = 0; i < (kind == '.' ? 1 : each); ++i, ++at)
      if (kind == 'P' ? sizes[at] != sizes[first + i] : !single(sizes[at])) return std::nullopt;
  }
  return sum;
}

}  // namespace

std::span<const ListRow> list_operators() { return kListRows; }

Formula list_formula(const OperatorCall& call, const std::vector<const ListRow*>& rows) {
  Formula found = Formula::none("the lists of tensors do not fit together");
  for (const ListRow* row : rows)
    for (const auto form : parts_of(row->arguments, ' ')) {
      const auto count = elements_in(*call.sizes, form);
      if (!count) continue;
      const OperatorFlop flop =
          OperatorFlop{row->multiply_adds, row->arithmetic, row->uncounted}.times(*count);
      if (found.flop && *found.flop != flop)
        return Formula::none("the sizes do not tell where one list of tensors ends");
      found.flop = flop;
      found.why_not = "";
    }
  return found;
}

}  // namespace flopinj::reduce
