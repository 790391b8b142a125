// The tables that operator_flop.cpp searches. Private to analytic/.
#pragma once
#include <span>

#include "analytic/formula.h"

namespace flopinj::reduce {

std::span<const OperatorRow> product_operators();
std::span<const OperatorRow> window_operators();     // convolutions and pooling
std::span<const OperatorRow> attention_operators();  // and recurrent layers
std::span<const OperatorRow> optimizer_operators();

// So many operations for each element of one argument.
struct ElementwiseRow {
  std::string_view function;
  uint8_t argument;  // or kBroadcast: of what arguments 0 and 1 broadcast to
  // Per element.
  uint8_t multiply_adds, arithmetic, uncounted;
  const char* convention;
  bool backward = false;
};
inline constexpr uint8_t kBroadcast = 255;
std::span<const ElementwiseRow> elementwise_operators();
Formula elementwise_formula(const OperatorCall& call, const ElementwiseRow& row);

}  // namespace flopinj::reduce
