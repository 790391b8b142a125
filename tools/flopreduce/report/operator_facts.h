// What is known of an operator's launches in one phase: what causes and gradients are taken from.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analytic/formula.h"
#include "analytic/operator_name.h"
#include "report/report.h"

namespace flopinj::reduce {

// A kernel among an operator's launches.
struct OperatorKernel {
  std::string name;  // mangled
  uint64_t launches = 0;
  u128 flop = 0, matrix_flop = 0;
};

// Which gradients backward computed of a product with weights.
enum class Gradients : uint8_t {
  kUnknown,   // nothing tells
  kBoth,      // by input and by weights
  kNoInput,   // by weights alone
  kNoWeight,  // by input alone: the weights are frozen
  kNone,      // none: backward has nothing of this operator
};
struct GradientEvidence {
  Gradients found = Gradients::kUnknown;
  std::string text;  // what it is taken from; of kUnknown, what is missing
};

struct OperatorFacts {
  const OperatorName* name = nullptr;
  std::string phase;
  Formula formula;  // of one call
  uint64_t calls = 0;
  bool calls_counted = false;  // by sequence numbers; else the launches of the busiest kernel
  int fma = 2;
  Work work;
  bool tensor = false;                  // tensor cores did some of it
  std::vector<OperatorKernel> kernels;  // most FLOP first
  std::string unmeasured_reason;
  GradientEvidence gradients;  // of an operator that computes both of a product's

  // FLOP by formula of all calls, nothing left out for what was not computed; only where there is
  // a formula. What is computed again does not count.
  u128 formula_flop() const { return formula.needed().times(calls).flop(fma); }
  // The same of all that the algorithm executes.
  u128 algorithm_flop() const { return formula.flop->times(calls).flop(fma); }
};

}  // namespace flopinj::reduce
