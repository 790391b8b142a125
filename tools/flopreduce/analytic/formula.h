// What a formula says of one call of an operator: operations of the textbook algorithm, worked out
// from the sizes of its arguments.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

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
  // Not part of flop(): see operator_flop.h.
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

  // The shape of argument i, or nullptr where there is none.
  const Shape* shape(size_t i) const {
    return sizes != nullptr && i < sizes->size() ? &(*sizes)[i] : nullptr;
  }
};

// The result of a formula: FLOP, or why not.
struct Formula {
  std::optional<OperatorFlop> flop;
  const char* why_not = "";  // static text, where there is no flop
  bool backward = false;     // the operator computes gradients
  bool attention = false;    // fused: a mask may leave out part of every product
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

// A row of a table of operators. Names are without namespace, unless they are a library's own, and
// have a space between two.
struct OperatorRow {
  std::string_view functions;
  Formula (*formula)(const OperatorCall&, const OperatorRow&);
  uint8_t a = 0, b = 0, c = 0;  // which arguments the formula reads; see each table
  // A gradient operator: times the forward formula for all gradients together (0: forward).
  uint8_t backward = 0;
  // Of a forward operator that is a product; null for other operators.
  std::optional<ProductGradients> (*gradients)(const OperatorCall&, const OperatorRow&) = nullptr;
  std::string_view shapes = "";  // of products: product_operators.cpp
};

// The gradient by each of two operands is a product as large as the forward one.
inline std::optional<ProductGradients> two_gradients(const OperatorCall&, const OperatorRow&) {
  return ProductGradients{2, 0};
}
// The same where one operand is a weight.
inline std::optional<ProductGradients> weight_and_input(const OperatorCall&, const OperatorRow&) {
  return ProductGradients{2, 1};
}

}  // namespace flopinj::reduce
