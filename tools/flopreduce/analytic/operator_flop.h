// FLOP of one call of an operator by formula. What is counted, in all tables:
//
//   One FLOP each: an addition, subtraction, multiplication and division, of whatever precision. A
//   product that is added to something is a multiply-add, two FLOP or one as the user chooses: the
//   same instruction, and the convention of peaks and of torch.utils.flop_counter and fvcore.
//   A sum of n terms is n additions, as a product of n terms is n multiply-adds: both begin at 0.
//   Comparisons (maximum, clamp, where), signs, roots, exponentials, logarithms, powers,
//   trigonometric and error functions are counted apart and are no FLOP: GPUs run them on units, or
//   as instructions, that no FLOP counter counts, and so they are none on the hardware's side. Left
//   out: what is done once for a row, a channel or a call, and factors that a name does not have
//   (alpha, beta, weight decay). Where a name leaves the work open, there is no formula, and the
//   reason is said.
//
// The source of each formula: beside its table, in *_operators.cpp; in short:
//
//   products      mm, addmm, bmm, linear, ...: one multiply-add per element and inner index. A bias
//                 starts the sum and costs nothing (as in torch.utils.flop_counter and fvcore).
//   convolutions  elements of the output x inputs of one output element, taps on padding included.
//   attention     the products of attention_operators.cpp, nothing skipped for a causal mask.
//   recurrent     every weight matrix once per time step and sample; gates are left out.
//   pooling       every element of every window, padding left out.
//   element-wise  so many operations per element, from the definition.
//   lists         _foreach_ and fused optimizers: the same for every element of the first list.
//   gradients     of a product or convolution: twice the forward formula (one for each operand).
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "analytic/formula.h"

namespace flopinj::reduce {

// Of a function's name ("aten::conv2d", "mul"; an in-place "_" may follow).
bool has_operator_formula(std::string_view name);
// All names that the tables have, as they have them, in no order.
std::vector<std::string_view> operators_with_formula();

// Whether both are of one table: products, convolutions, pooling, attention, recurrent layers or
// norms.
bool same_kind_of_work(std::string_view name, std::string_view other);
// Whether it has a formula of no operations at all: copies, casts, views, padding.
bool moves_data(std::string_view name);

// `call.sizes` must be the sizes of that operator's arguments in the order of PyTorch's schema
// (aten/src/ATen/native/native_functions.yaml).
Formula operator_formula(const OperatorName& name, const OperatorCall& call);

// What the gradients of a product take: 2, and for fused attention 2.5 where keys and values are
// equally wide. Nothing for what is no product, or where the sizes are missing.
std::optional<ProductGradients> operator_gradients(const OperatorName& name);

}  // namespace flopinj::reduce
