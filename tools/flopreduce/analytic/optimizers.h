// What an optimizer does to each parameter, once per step.
#pragma once
#include "analytic/formula.h"

namespace flopinj::reduce {

enum class Optimizer : uint8_t { kSgd, kSgdMomentum, kAdam, kAdamW };

// For `parameters` values; bias corrections and the learning rate, which are worked out once, are left
// out, and so are weight decay of SGD and Adam, Nesterov's form and AMSGrad.
//   SGD            p <- p - lr g                              1 multiply-add
//   with momentum  v <- mu v + g; p <- p - lr v               2 multiply-adds
//   Adam           m <- b1 m + (1 - b1) g                     1 product, 1 multiply-add
//                  v <- b2 v + (1 - b2) g g                   2 products, 1 multiply-add
//                  p <- p - lr m / (sqrt(v) / c + eps)        2 quotients, 1 sum, 1 multiply-add, 1 root
//   AdamW          the same after p <- (1 - lr wd) p          1 product more
// Kingma and Ba, Adam, algorithm 1; Loshchilov and Hutter, Decoupled weight decay, algorithm 2; both as
// torch.optim computes them.
OperatorFlop optimizer_step(Optimizer optimizer, u128 parameters);

}  // namespace flopinj::reduce
