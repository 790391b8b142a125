// Matrix and vector products. Arguments a and b are the operands, whose dimensions `shapes` names:
// "nk,km" is of [n, k] and [k, m]. Equal letters are equal sizes. '*' is any dimensions before the
// others. A capital letter is dealt out: groups have parts of another dimension. Several forms have
// a space between; the first that fits counts.
//
// Multiply-adds: all sizes multiplied, each letter once: rows x inner dimension x columns, for each
// matrix of a batch. The same convention as torch.utils.flop_counter (mm_flop, addmm_flop,
// bmm_flop, baddbmm_flop) and fvcore; both leave the bias out, and so does the hardware where the
// sum starts at the bias.
#include <algorithm>
#include <array>
#include <utility>

#include "analytic/tables.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

u128 dimension(const Shape& shape, size_t from_end) {
  return static_cast<u128>(shape[shape.size() - from_end]);
}

// By one form; nothing where the operands do not fit it.
std::optional<u128> multiply_adds(std::string_view form, const Shape& first, const Shape& second) {
  std::array<int64_t, 128> sizes;
  sizes.fill(-1);
  u128 product = 1;
  const size_t comma = form.find(',');
  for (auto [letters, shape] :
       {std::pair{form.substr(0, comma), &first}, std::pair{form.substr(comma + 1), &second}}) {
    const bool any = letters.starts_with('*');
    if (any) letters.remove_prefix(1);
    if (shape->size() < letters.size() || (!any && shape->size() > letters.size()))
      return std::nullopt;
    const size_t before = shape->size() - letters.size();
    for (size_t i = 0; i < shape->size(); ++i) {
      const char letter = i < before ? '*' : letters[i - before];
      int64_t& known = sizes[static_cast<size_t>(letter)];
      const int64_t size = (*shape)[i];
      if (letter != '*' && known >= 0 && known != size) return std::nullopt;
      if ((letter == '*' || known < 0) && (letter < 'A' || letter > 'Z'))
        product = times_saturating(product, static_cast<u128>(size));
      known = size;
    }
  }
  return product;
}

Formula product(const OperatorCall& call, const OperatorRow& row) {
  for (const auto form : parts_of(row.shapes, ' '))
    if (const auto found = multiply_adds(form, call.shape(row.a), call.shape(row.b)))
      return Formula::of(*found);
  return Formula::none(kMismatch);
}

// torch.matmul: vectors are rows and columns, leading dimensions broadcast.
Formula general_product(const OperatorCall& call, const OperatorRow& row) {
  Shape a = call.shape(row.a), b = call.shape(row.b);
  if (a.empty() || b.empty()) return Formula::none(kMismatch);
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  if (dimension(a, 1) != dimension(b, 2)) return Formula::none(kMismatch);
  u128 product =
      times_saturating(times_saturating(dimension(a, 2), dimension(a, 1)), dimension(b, 1));
  for (size_t i = 3; i <= std::max(a.size(), b.size()); ++i) {
    const u128 x = i <= a.size() ? dimension(a, i) : 1;
    const u128 y = i <= b.size() ? dimension(b, i) : 1;
    if (x != y && x != 1 && y != 1) return Formula::none(kMismatch);
    product = times_saturating(product, x == 1 ? y : x);
  }
  return Formula::of(product);
}

// The gradient by the matrix of a matrix-vector product is an outer product: no multiply-adds.
std::optional<ProductGradients> matrix_gradients(const OperatorCall& call, const OperatorRow& row) {
  if (call.shape(row.a).size() < 2 || call.shape(row.b).size() < 2) return std::nullopt;
  return ProductGradients{2, 0};
}

// Single multiplications.
Formula outer_product(const OperatorCall& call, const OperatorRow& row) {
  Formula formula = product(call, row);
  if (formula.flop) std::swap(formula.flop->multiply_adds, formula.flop->arithmetic);
  return formula;
}

// Each of three gradients has a product as large as the weights with the rows; forward has a small
// one beside that, by the result with the second operand: rows x o x j to rows x o x i x j
// (aten/src/ATen/native/Linear.cpp, _trilinear).
std::optional<ProductGradients> three_gradients(const OperatorCall& call, const OperatorRow& row) {
  const Shape& a = call.shape(row.a);
  if (a.empty()) return std::nullopt;
  const auto inner = static_cast<double>(a.back());
  const double each = inner / (inner + 1);
  return ProductGradients{3 * each, 2 * each, true};
}

// [..., i] and [..., j] with weights [o, i, j]: the first with the weights, the result with the
// second.
Formula bilinear(const OperatorCall& call, const OperatorRow& row) {
  const Shape &a = call.shape(row.a), &b = call.shape(row.b), &weight = call.shape(row.c);
  if (a.empty() || a.size() != b.size() || weight.size() != 3 || a.back() != weight[1] ||
      b.back() != weight[2] || !std::equal(a.begin(), a.end() - 1, b.begin()))
    return Formula::none(kMismatch);
  u128 each = elements(weight);
  add_saturating(each, elements({weight[0], weight[2]}));
  return Formula::of(times_saturating(elements({a.begin(), a.end() - 1}), each));
}

Formula integer_product(const OperatorCall&, const OperatorRow&) {
  return Formula::none("integer operations are no FLOP");
}

constexpr std::string_view kMatrices = "nk,km", kBatches = "bnk,bkm", kLinear = "*k,mk *k,k",
                           kGroups = "tk,Gkm Gnk,kt nt,tm bnk,bkm", kVector = "nk,k k,k";
constexpr OperatorRow kProductRows[] = {
    {"mm", product, 0, 1, 0, 0, weight_and_input, kMatrices},
    {"addmm _addmm_activation", product, 1, 2, 0, 0, weight_and_input, kMatrices},
    {"_scaled_mm _scaled_mm_v2", product, 0, 1, 0, 0, nullptr, kMatrices},
    {"bmm", product, 0, 1, 0, 0, two_gradients, kBatches},
    {"baddbmm addbmm", product, 1, 2, 0, 0, two_gradients, kBatches},
    {"_grouped_mm", product, 0, 1, 0, 0, two_gradients, kGroups},
    {"_scaled_grouped_mm _scaled_grouped_mm_v2", product, 0, 1, 0, 0, nullptr, kGroups},
    {"matmul", general_product, 0, 1, 0, 0, matrix_gradients},
    {"linear", product, 0, 1, 0, 0, weight_and_input, kLinear},
    // grad_output and weight are arguments too; input x weight is as large as either gradient.
    {"linear_backward", product, 0, 2, 0, 2, nullptr, kLinear},
    {"_weight_int8pack_mm", product, 0, 1, 0, 0, nullptr, kLinear},
    // The first operand with the weights, that with the second.
    {"bilinear", bilinear, 0, 1, 2, 0, three_gradients},
    {"mv dot vdot", product, 0, 1, 0, 0, nullptr, kVector},
    {"addmv", product, 1, 2, 0, 0, nullptr, kVector},
    {"outer ger", outer_product, 0, 1, 0, 0, nullptr, "n,m"},  // one multiplication per cell
    {"addr", product, 1, 2, 0, 0, nullptr, "n,m"},             // one multiply-add per cell
    {"_int_mm", integer_product},
};

}  // namespace

std::span<const OperatorRow> product_operators() { return kProductRows; }

}  // namespace flopinj::reduce
