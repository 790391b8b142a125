#include "analytic/operator_flop.h"

#include <unordered_map>

#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kNoFormula = "no formula for this operator";
constexpr const char* kNoSizes = "the range's name has no sizes";

struct Entry {
  const OperatorRow* row = nullptr;
  const ElementwiseRow* elementwise = nullptr;
};

const std::unordered_map<std::string_view, Entry>& index() {
  static const auto built = [] {
    std::unordered_map<std::string_view, Entry> map;
    for (const auto table :
         {product_operators(), window_operators(), attention_operators(), optimizer_operators()})
      for (const auto& row : table) map[row.function].row = &row;
    for (const auto& row : elementwise_operators()) map[row.function].elementwise = &row;
    return map;
  }();
  return built;
}

Entry find(std::string_view function) {
  auto found = index().find(function);
  if (found == index().end() && function.ends_with("_"))  // in place
    found = index().find(function.substr(0, function.size() - 1));
  return found == index().end() ? Entry{} : found->second;
}

}  // namespace

u128 times_saturating(u128 a, u128 b) {
  u128 product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kU128Max : product;
}

u128 elements(const Shape& shape) {
  u128 product = 1;
  for (const int64_t size : shape) product = times_saturating(product, static_cast<u128>(size));
  return product;
}

u128 OperatorFlop::flop(int fma) const {
  u128 total = times_saturating(multiply_adds, static_cast<u128>(fma));
  add_saturating(total, arithmetic);
  return total;
}

void OperatorFlop::add(const OperatorFlop& other) {
  add_saturating(multiply_adds, other.multiply_adds);
  add_saturating(arithmetic, other.arithmetic);
  add_saturating(uncounted, other.uncounted);
}

OperatorFlop OperatorFlop::times(u128 count) const {
  return {times_saturating(multiply_adds, count), times_saturating(arithmetic, count),
          times_saturating(uncounted, count)};
}

bool has_operator_formula(std::string_view function) {
  const Entry entry = find(function);
  return entry.row != nullptr || entry.elementwise != nullptr;
}

const char* operator_convention(std::string_view function) {
  const Entry entry = find(function);
  if (entry.row != nullptr) return entry.row->convention;
  return entry.elementwise != nullptr ? entry.elementwise->convention : "";
}

Formula operator_formula(const OperatorName& name, const OperatorCall& call) {
  const Entry entry = find(name.function());
  if (entry.row == nullptr && entry.elementwise == nullptr) return Formula::none(kNoFormula);
  const bool backward =
      entry.row != nullptr ? entry.row->backward != 0 : entry.elementwise->backward;
  Formula formula = Formula::none(kNoSizes);
  if (call.sizes != nullptr)
    formula = entry.row != nullptr ? entry.row->formula(call, *entry.row)
                                   : elementwise_formula(call, *entry.elementwise);
  if (formula.flop && entry.row != nullptr && entry.row->backward > 1)
    formula.flop = formula.flop->times(entry.row->backward);
  formula.backward = backward;
  return formula;
}

std::optional<ProductGradients> operator_gradients(const OperatorName& name) {
  const OperatorRow* row = find(name.function()).row;
  if (row == nullptr || row->gradients == nullptr) return std::nullopt;
  return row->gradients({name.has_sizes ? &name.sizes : nullptr, nullptr, nullptr}, *row);
}

}  // namespace flopinj::reduce
