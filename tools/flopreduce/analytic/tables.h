// The tables that operator_flop.cpp searches. A row's comment says what is counted.
#pragma once
#include <span>

#include "analytic/operator_flop.h"

namespace flopinj::reduce {

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

std::span<const OperatorRow> product_operators();
std::span<const OperatorRow> convolution_operators();
std::span<const OperatorRow> pooling_operators();
std::span<const OperatorRow> attention_operators();
// fused_attention() of a row of that table.
std::optional<double> needed_of_attention(const OperatorRow& row, const OperatorCall& call);
std::span<const OperatorRow> recurrent_operators();
std::span<const OperatorRow> norm_operators();

// So many operations for each element of one argument.
struct ElementwiseRow {
  std::string_view functions;                    // as in OperatorRow
  uint8_t argument;                              // or one of those below
  uint8_t multiply_adds, arithmetic, uncounted;  // per element
  bool backward = false;
};
inline constexpr uint8_t kBroadcast = 255;  // of what arguments 0 and 1 broadcast to
inline constexpr uint8_t kOutput = 254;     // of the result, where its size is known
inline constexpr uint8_t kHalf = 253;       // of the first half of argument 0
std::span<const ElementwiseRow> elementwise_operators();
Formula elementwise_formula(const OperatorCall& call, const ElementwiseRow& row);

// So many operations for each element of a list of tensors, the first argument. PyTorch prints the
// tensors of all lists one after the other, and one [] for an empty list; `arguments` says how:
//   P  a list as long as the first, of tensors of the same sizes
//   S  a list as long as the first, of single values
//   .  one argument: a number, a tensor of one value, or no tensor
// Several of them, with spaces between, and several rows of one function are the forms that it is
// called in.
struct ListRow {
  std::string_view functions, arguments;
  uint8_t multiply_adds, arithmetic, uncounted;  // per element
};
std::span<const ListRow> list_operators();
// By all rows of one function. Nothing where forms that fit the sizes differ in the result.
Formula list_formula(const OperatorCall& call, const std::vector<const ListRow*>& rows);

inline constexpr const char* kMismatch = "the sizes do not fit the operator";
inline constexpr const char* kNoOutputSize =
    "the output's size is not in the range's name, nor in another's";

// One dimension of a module's setting: a single number is for all.
inline int64_t setting_at(const Shape& setting, size_t dimension, int64_t otherwise) {
  if (setting.size() == 1) return setting[0];
  return dimension < setting.size() ? setting[dimension] : otherwise;
}

}  // namespace flopinj::reduce
