// FLOP of one call of an operator by formula. Source of each formula and what it counts: the tables
// in *_operators.cpp and optimizers.h; in short:
//
//   products      mm, addmm, bmm, linear, ...: one multiply-add per element and inner index. A bias
//                 starts the sum and costs nothing (as in torch.utils.flop_counter and fvcore).
//   convolutions  elements of the output x inputs of one output element, taps on padding included.
//   attention     the two products of scores and values, nothing skipped for a causal mask; backward
//                 of fused kernels five products for two (the scores are computed again).
//   recurrent     every weight matrix once per time step and sample; gates are left out.
//   element-wise  so many operations per element, from the textbook algorithm.
//   gradients     of a product or convolution: twice the forward formula (one for each operand).
#pragma once
#include <optional>
#include <string_view>

#include "analytic/formula.h"

namespace flopinj::reduce {

// Of a function name without namespace ("conv2d", "mul"; an in-place "_" may follow).
bool has_operator_formula(std::string_view function);
// What its formula counts, and where that is from; empty where there is none.
const char* operator_convention(std::string_view function);

// `call.sizes` must be the sizes of that operator's arguments in the order of PyTorch's schema
// (aten/src/ATen/native/native_functions.yaml).
Formula operator_formula(const OperatorName& name, const OperatorCall& call);

// What the gradients of a product take: 2, and for fused attention 2.5 where keys and values are
// equally wide. Nothing for what is no product, or where the sizes are missing.
std::optional<ProductGradients> operator_gradients(const OperatorName& name);

}  // namespace flopinj::reduce
