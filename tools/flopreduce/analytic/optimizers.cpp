#include "analytic/optimizers.h"

#include "analytic/tables.h"

namespace flopinj::reduce {
namespace {

// The fused operators take lists of tensors, one list after the other and flattened: parameters,
// gradients, states. Elements of one list where there are `lists` of them, alike; 0 where not.
u128 parameters_of(const std::vector<Shape>& sizes, size_t lists) {
  std::vector<const Shape*> tensors;
  for (const Shape& shape : sizes)
    if (!shape.empty()) tensors.push_back(&shape);  // step counters are scalars
  if (tensors.empty() || tensors.size() % lists != 0) return 0;
  const size_t each = tensors.size() / lists;
  u128 sum = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (*tensors[i] != *tensors[i % each]) return 0;
    if (i < each) add_saturating(sum, elements(*tensors[i]));
  }
  return sum;
}

Formula step(Optimizer optimizer, u128 parameters) {
  if (parameters == 0) return Formula::none("the lists of tensors do not fit together");
  Formula formula = Formula::of(0);
  formula.flop = optimizer_step(optimizer, parameters);
  return formula;
}

Formula adam(const OperatorCall& call, const OperatorRow& row) {
  return step(row.a == 0 ? Optimizer::kAdam : Optimizer::kAdamW, parameters_of(*call.sizes, 4));
}

// With or without a list of velocities.
Formula sgd(const OperatorCall& call, const OperatorRow&) {
  if (const u128 parameters = parameters_of(*call.sizes, 3))
    return step(Optimizer::kSgdMomentum, parameters);
  return step(Optimizer::kSgd, parameters_of(*call.sizes, 2));
}

constexpr OperatorRow kRows[] = {
    {"_fused_adam", adam, 0, 0, 0, 0, "per parameter: see optimizers.h"},
    {"_fused_adamw", adam, 1, 0, 0, 0, "per parameter: see optimizers.h"},
    {"_fused_sgd", sgd, 0, 0, 0, 0, "per parameter: see optimizers.h"},
};

}  // namespace

std::span<const OperatorRow> optimizer_operators() { return kRows; }

OperatorFlop optimizer_step(Optimizer optimizer, u128 parameters) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return OperatorFlop{1, 0, 0}.times(parameters);
    case Optimizer::kSgdMomentum:
      return OperatorFlop{2, 0, 0}.times(parameters);
    case Optimizer::kAdam:
      return OperatorFlop{3, 6, 1}.times(parameters);
    case Optimizer::kAdamW:
      return OperatorFlop{3, 7, 1}.times(parameters);
  }
  return {};
}

}  // namespace flopinj::reduce
