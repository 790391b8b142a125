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
//   attention     the products of attention_operators.cpp; nothing is skipped for a mask, but where
//                 a name says which.
//   recurrent     every weight matrix once per time step and sample; gates are left out.
//   pooling       every element of every window, padding left out.
//   element-wise  so many operations per element, from the definition.
//   lists         _foreach_ and fused optimizers: the same for every element of the first list.
//   gradients     of a product or convolution: twice the forward formula (one for each operand).
#pragma once
#include <optional>
#include <string_view>
#include <vector>

#include "analytic/operator_name.h"
#include "support/wide.h"

namespace flopinj::reduce {

// A fused multiply-add is one of `multiply_adds`; how much FLOP it is (1 or 2) is the user's
// choice.
struct OperatorFlop {
  u128 multiply_adds = 0;
  // Additions, subtractions, multiplications, divisions that are no part of one.
  u128 arithmetic = 0;
  // Comparisons, signs, exponentials, logarithms, roots, powers, trigonometric and error functions.
  // Not part of flop(): see above.
  u128 uncounted = 0;

  u128 flop(int fma) const;
  void add(const OperatorFlop& other);
  OperatorFlop times(u128 count) const;
  bool operator==(const OperatorFlop&) const = default;
};

// a * b, held at the largest value.
u128 times_saturating(u128 a, u128 b);
// Number of elements: the product of the dimensions, 1 for a scalar.
u128 elements(const Shape& shape);

// One call of an operator, as far as names describe it.
struct OperatorCall {
  const std::vector<Shape>* sizes = nullptr;
  const OperatorSettings* settings =
      nullptr;  // its own, or of the module around it, where a name has them
  // Of its result, where another range has it: the gradient's shape in the backward operator with
  // the same sequence number.
  const Shape* output = nullptr;
  const OperatorName* gradient = nullptr;  // that backward operator
  // Of a backward operator: the forward one. Of a function inside of another operator: that one.
  const OperatorName* forward = nullptr;

  bool has(size_t i) const { return sizes != nullptr && i < sizes->size(); }
  // The shape of argument i; where there is none, as of one that is no tensor.
  const Shape& shape(size_t i) const {
    static const Shape kNone;
    return has(i) ? (*sizes)[i] : kNone;
  }
};

// The result of a formula: FLOP, or why not.
struct Formula {
  std::optional<OperatorFlop> flop;
  const char* why_not = "";  // static text, where there is no flop
  bool backward = false;     // the operator computes gradients
  bool attention = false;    // fused: a mask may leave out part of every product
  bool mask_named = false;   // which part is known, and `flop` is without it
  // Of `flop`, multiply-adds that compute again what forward has computed: executed, but no part of
  // the model.
  u128 again = 0;

  static Formula of(const OperatorFlop& flop) {
    Formula formula;
    formula.flop = flop;
    return formula;
  }
  static Formula of(u128 multiply_adds) { return of(OperatorFlop{multiply_adds, 0, 0}); }
  static Formula none(const char* why) {
    Formula formula;
    formula.why_not = why;
    return formula;
  }
  // What the model needs, without what is computed again. Only where there is `flop`.
  OperatorFlop needed() const {
    OperatorFlop part = *flop;
    part.multiply_adds -= again < part.multiply_adds ? again : part.multiply_adds;
    return part;
  }
};

// What a product takes in backward.
struct ProductGradients {
  double all = 0;       // multiply-adds of all its gradients together / its own
  double by_input = 0;  // of them what the network's first layer does not need
  bool whole = false;   // of the operator with the products inside of it, whatever these say
};

// Of a function's name ("aten::conv2d", "mul"; an in-place "_" may follow).
bool has_operator_formula(std::string_view name);
// The same, or a formula of the user's own.
bool has_operator_formula(const OperatorName& name);
// All names that the tables have, as they have them, in no order.
std::vector<std::string_view> operators_with_formula();

// Whether both are of one table: products, convolutions, pooling, attention, recurrent layers or
// norms.
bool same_kind_of_work(std::string_view name, std::string_view other);
// Whether it is a product, a convolution, attention or a recurrent layer, or the gradient of one.
bool is_matrix_work(std::string_view name);
// Whether it is attention, of whatever kernels, or its gradient.
bool is_attention(std::string_view name);
// Of an operator whose products are those of fused attention's kernels, whatever the lengths of
// sequences: the part of them that the model needs, all of forward's, and of backward's those that
// are no scores computed again. Nothing for other operators.
std::optional<double> fused_attention(const OperatorName& name);
// Whether it has a formula of no operations at all: copies, casts, views, padding.
bool moves_data(std::string_view name);

// `call.sizes` must be the sizes of that operator's arguments in the order of PyTorch's schema
// (aten/src/ATen/native/native_functions.yaml).
Formula operator_formula(const OperatorName& name, const OperatorCall& call);

// Leaves a name of PyTorch's operators the sizes that are its arguments': schema_arguments.cpp.
void keep_arguments(OperatorName& name);

// What the gradients of a product take: 2, and for fused attention 2.5 where keys and values are
// equally wide. Nothing for what is no product, or where the sizes are missing.
std::optional<ProductGradients> operator_gradients(const OperatorName& name);

}  // namespace flopinj::reduce
