// Matrix and vector products. Arguments a and b are the operands.
//
// Multiply-adds: (rows of a) x (inner dimension) x (columns of b), for each matrix of a batch. The
// same convention as torch.utils.flop_counter (mm_flop, addmm_flop, bmm_flop, baddbmm_flop) and
// fvcore; both leave the bias out, and so does the hardware where the sum starts at the bias.
#include <algorithm>

#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

u128 dimension(const Shape& shape, size_t from_end) {
  return static_cast<u128>(shape[shape.size() - from_end]);
}

// [n, k] x [k, m]
Formula product(const OperatorCall& call, const OperatorRow& row) {
  const Shape* a = call.shape(row.a);
  const Shape* b = call.shape(row.b);
  if (a == nullptr || b == nullptr || a->size() != 2 || b->size() != 2 || (*a)[1] != (*b)[0])
    return Formula::none(kMismatch);
  return Formula::of(times_saturating(elements(*a), dimension(*b, 1)));
}

// [batch, n, k] x [batch, k, m]
Formula batched_product(const OperatorCall& call, const OperatorRow& row) {
  const Shape* a = call.shape(row.a);
  const Shape* b = call.shape(row.b);
  if (a == nullptr || b == nullptr || a->size() != 3 || b->size() != 3 || (*a)[0] != (*b)[0] ||
      (*a)[2] != (*b)[1])
    return Formula::none(kMismatch);
  return Formula::of(times_saturating(elements(*a), dimension(*b, 1)));
}

// One product for each group; a dimension that groups share is dealt out to them, whole:
// [t, k] x [groups, k, m], [groups, n, k] x [k, t], [n, t] x [t, m], or a batch.
Formula grouped_product(const OperatorCall& call, const OperatorRow& row) {
  const Shape* a = call.shape(row.a);
  const Shape* b = call.shape(row.b);
  const bool fits = a != nullptr && b != nullptr && (a->size() == 2 || a->size() == 3) &&
                    (b->size() == 2 || b->size() == 3) && dimension(*a, 1) == dimension(*b, 2) &&
                    (a->size() + b->size() != 6 || (*a)[0] == (*b)[0]);
  if (!fits) return Formula::none(kMismatch);
  if (a->size() == 3 && b->size() == 2)
    return Formula::of(
        times_saturating(times_saturating(dimension(*a, 2), dimension(*a, 1)), dimension(*b, 1)));
  return Formula::of(times_saturating(elements(*a), dimension(*b, 1)));
}

// torch.matmul: vectors are rows and columns, leading dimensions broadcast.
Formula general_product(const OperatorCall& call, const OperatorRow& row) {
  const Shape* first = call.shape(row.a);
  const Shape* second = call.shape(row.b);
  if (first == nullptr || second == nullptr || first->empty() || second->empty())
    return Formula::none(kMismatch);
  Shape a = *first, b = *second;
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
  const Shape* a = call.shape(row.a);
  const Shape* b = call.shape(row.b);
  if (a == nullptr || b == nullptr || a->size() < 2 || b->size() < 2) return std::nullopt;
  return ProductGradients{2, 0};
}

// [..., k] x [m, k] transposed
Formula linear(const OperatorCall& call, const OperatorRow& row) {
  const Shape* x = call.shape(row.a);
  const Shape* weight = call.shape(row.b);
  if (x == nullptr || weight == nullptr || x->empty() || weight->empty() || weight->size() > 2 ||
      x->back() != weight->back())
    return Formula::none(kMismatch);
  return Formula::of(
      times_saturating(elements(*x), weight->size() == 2 ? dimension(*weight, 2) : 1));
}

// [n, k] x [k], or [k] x [k]
Formula vector_product(const OperatorCall& call, const OperatorRow& row) {
  const Shape* a = call.shape(row.a);
  const Shape* b = call.shape(row.b);
  if (a == nullptr || b == nullptr || a->empty() || a->size() > 2 || b->size() != 1 ||
      a->back() != (*b)[0])
    return Formula::none(kMismatch);
  return Formula::of(elements(*a));
}

// [n] x [m]: single multiplications, or multiply-adds where the product is added to something.
Formula outer_product(const OperatorCall& call, const OperatorRow& row) {
  const Shape* a = call.shape(row.a);
  const Shape* b = call.shape(row.b);
  if (a == nullptr || b == nullptr || a->size() != 1 || b->size() != 1)
    return Formula::none(kMismatch);
  const u128 cells = times_saturating(elements(*a), elements(*b));
  Formula formula = Formula::of(row.c != 0 ? cells : 0);
  if (row.c == 0) formula.flop->arithmetic = cells;
  return formula;
}

// Each of three gradients has a product as large as the weights with the rows; forward has a small
// one beside that, by the result with the second operand: rows x o x j to rows x o x i x j
// (aten/src/ATen/native/Linear.cpp, _trilinear).
std::optional<ProductGradients> three_gradients(const OperatorCall& call, const OperatorRow& row) {
  const Shape* a = call.shape(row.a);
  if (a == nullptr || a->empty()) return std::nullopt;
  const auto inner = static_cast<double>(a->back());
  const double each = inner / (inner + 1);
  return ProductGradients{3 * each, 2 * each, true};
}

// [..., i] and [..., j] with weights [o, i, j]: the first with the weights, the result with the
// second.
Formula bilinear(const OperatorCall& call, const OperatorRow& row) {
  const Shape* a = call.shape(row.a);
  const Shape* b = call.shape(row.b);
  const Shape* weight = call.shape(row.c);
  if (a == nullptr || b == nullptr || weight == nullptr || a->empty() || a->size() != b->size() ||
      weight->size() != 3 || a->back() != (*weight)[1] || b->back() != (*weight)[2])
    return Formula::none(kMismatch);
  u128 rows = 1;
  for (size_t i = 0; i + 1 < a->size(); ++i) {
    if ((*a)[i] != (*b)[i]) return Formula::none(kMismatch);
    rows = times_saturating(rows, static_cast<u128>((*a)[i]));
  }
  u128 each = elements(*weight);
  add_saturating(each, times_saturating(dimension(*weight, 3), dimension(*weight, 1)));
  return Formula::of(times_saturating(rows, each));
}

Formula integer_product(const OperatorCall&, const OperatorRow&) {
  return Formula::none("integer operations are no FLOP");
}

constexpr OperatorRow kProductRows[] = {
    // rows x inner x columns multiply-adds; bias not counted
    {"mm", product, 0, 1, 0, 0, weight_and_input},
    {"addmm _addmm_activation", product, 1, 2, 0, 0, weight_and_input},
    {"_scaled_mm _scaled_mm_v2", product, 0, 1, 0, 0},
    {"bmm", batched_product, 0, 1, 0, 0, two_gradients},
    {"baddbmm addbmm", batched_product, 1, 2, 0, 0, two_gradients},
    {"_grouped_mm", grouped_product, 0, 1, 0, 0, two_gradients},
    {"_scaled_grouped_mm _scaled_grouped_mm_v2", grouped_product, 0, 1, 0, 0},
    {"matmul", general_product, 0, 1, 0, 0, matrix_gradients},
    {"linear", linear, 0, 1, 0, 0, weight_and_input},
    // grad_output and weight are arguments too; input x weight is as large as either gradient.
    {"linear_backward", linear, 0, 2, 0, 2},  // twice the forward product
    // rows x inner x columns multiply-adds; bias not counted
    {"_weight_int8pack_mm", linear, 0, 1, 0, 0},
    // the first operand with the weights, that with the second
    {"bilinear", bilinear, 0, 1, 2, 0, three_gradients},
    // rows x inner x columns multiply-adds; bias not counted
    {"mv dot vdot", vector_product, 0, 1, 0, 0},
    {"addmv", vector_product, 1, 2, 0, 0},
    {"outer ger", outer_product, 0, 1, 0, 0},  // one multiplication per cell
    {"addr", outer_product, 1, 2, 1, 0},       // one multiply-add per cell
    {"_int_mm", integer_product, 0, 0, 0, 0},
};

}  // namespace

std::span<const OperatorRow> product_operators() { return kProductRows; }

}  // namespace flopinj::reduce
