#include "analytic/operator_flop.h"

#include <unordered_map>

#include "analytic/given_formula.h"
#include "analytic/tables.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

constexpr const char* kNoFormula = "no formula for this operator";
constexpr const char* kNoSizes = "the range's name has no sizes";

struct Entry {
  const OperatorRow* row = nullptr;
  const ElementwiseRow* elementwise = nullptr;
  std::vector<const ListRow*> forms;
  const OperatorRow* table = nullptr;  // where row is

  bool known() const { return row != nullptr || elementwise != nullptr || !forms.empty(); }
};

using Index = std::unordered_map<std::string_view, Entry>;
const Index& index() {
  static const Index kBuilt = [] {
    Index map;
    for (const auto table : {product_operators(), convolution_operators(), pooling_operators(),
                             attention_operators(), recurrent_operators(), norm_operators()})
      for (const auto& row : table)
        for (const auto name : parts_of(row.functions, ' ')) {
          map[name].row = &row;
          map[name].table = table.data();
        }
    for (const auto& row : elementwise_operators())
      for (const auto name : parts_of(row.functions, ' ')) map[name].elementwise = &row;
    for (const auto& row : list_operators())
      for (const auto name : parts_of(row.functions, ' ')) map[name].forms.push_back(&row);
    return map;
  }();
  return kBuilt;
}

// Rows of a library's own names, such as "flash_attn_3::fwd", have its namespace.
Entry find(std::string_view name) {
  auto found = index().find(name);
  if (found != index().end()) return found->second;
  const size_t colons = name.rfind("::");
  const std::string_view function = colons == name.npos ? name : name.substr(colons + 2);
  found = index().find(function);
  if (found == index().end() && function.ends_with("_"))  // in place
    found = index().find(function.substr(0, function.size() - 1));
  return found == index().end() ? Entry{} : found->second;
}

Formula formula_of(const Entry& entry, const OperatorCall& call) {
  if (entry.row != nullptr) return entry.row->formula(call, *entry.row);
  if (entry.elementwise != nullptr) return elementwise_formula(call, *entry.elementwise);
  return list_formula(call, entry.forms);
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

bool has_operator_formula(std::string_view name) { return find(name).known(); }
bool has_operator_formula(const OperatorName& name) {
  return name.has_given_formula() || has_operator_formula(name.name);
}

std::vector<std::string_view> operators_with_formula() {
  std::vector<std::string_view> names;
  for (const auto& [name, entry] : index()) names.push_back(name);
  return names;
}

bool same_kind_of_work(std::string_view name, std::string_view other) {
  const Entry entry = find(name);
  return entry.table != nullptr && entry.table == find(other).table;
}

bool is_matrix_work(std::string_view name) {
  const OperatorRow* table = find(name).table;
  return table != nullptr && table != pooling_operators().data() &&
         table != norm_operators().data();
}

bool is_attention(std::string_view name) {
  return find(name).table == attention_operators().data();
}

std::optional<double> fused_attention(const OperatorName& name) {
  const Entry entry = find(name.name);
  if (entry.table != attention_operators().data()) return std::nullopt;
  return needed_of_attention(*entry.row, {.sizes = name.has_sizes ? &name.sizes : nullptr});
}

bool moves_data(std::string_view name) {
  const ElementwiseRow* row = find(name).elementwise;
  return row != nullptr && row->multiply_adds + row->arithmetic + row->uncounted == 0;
}

Formula operator_formula(const OperatorName& name, const OperatorCall& call) {
  if (name.given != nullptr) return name.given->of_call(call);
  const Entry entry = find(name.name);
  if (!entry.known()) return Formula::none(kNoFormula);
  Formula formula = call.sizes != nullptr ? formula_of(entry, call) : Formula::none(kNoSizes);
  if (formula.flop && name.complex)  // each is four of real numbers
    formula.flop->multiply_adds = times_saturating(formula.flop->multiply_adds, 4);
  if (formula.flop && entry.row != nullptr && entry.row->backward > 1)
    formula.flop = formula.flop->times(entry.row->backward);
  formula.backward = entry.row != nullptr           ? entry.row->backward != 0
                     : entry.elementwise != nullptr ? entry.elementwise->backward
                                                    : false;
  return formula;
}

std::optional<ProductGradients> operator_gradients(const OperatorName& name) {
  const OperatorRow* row = find(name.name).row;
  if (row == nullptr || row->gradients == nullptr) return std::nullopt;
  return row->gradients({.sizes = name.has_sizes ? &name.sizes : nullptr}, *row);
}

}  // namespace flopinj::reduce
