// What is known of an operator's launches in one phase: what causes and gradients are taken from.
#pragma once
#include <cstdint>
#include <optional>
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
  kUnknown,   // nothing shows it
  kBoth,      // by input and by weights
  kNoInput,   // by weights only
  kNoWeight,  // by input only: the weights are frozen
  kNone,      // none: backward has nothing of this operator
};
struct GradientEvidence {
  Gradients found = Gradients::kUnknown;
  std::string text;  // what it is taken from; of kUnknown, what is missing
  // Shares of the calls that had each, where some calls of one range had only one: both, by their
  // number. Nothing where `found` says it of all.
  struct Shares {
    double input = 1, weight = 1;
  };
  std::optional<Shares> shares;
  // It is taken from backward's FLOP, so it is no expectation of them.
  bool by_flop = false;
};

// Calls of an operator that do the same work.
struct CallForm {
  Formula formula;  // of one call
  uint64_t calls = 0;
};

struct OperatorFacts {
  const OperatorName* name = nullptr;
  std::string phase;
  Formula formula;  // of one call, of the first form; without FLOP where any form has none
  std::vector<CallForm> forms;  // one, but for layers that share a range
  uint64_t calls = 0;           // of all forms
  bool calls_counted = false;   // by sequence numbers; else the launches of the busiest kernel
  int fma = 2;
  Work work;
  bool tensor = false;                  // tensor cores did some of it
  std::vector<OperatorKernel> kernels;  // most FLOP first
  std::string unmeasured_reason;
  GradientEvidence gradients;  // of an operator that computes both of a product's

  // FLOP by formula of all calls, nothing left out for what was not computed; only where there is
  // a formula. What is computed again does not count.
  u128 formula_flop() const {
    OperatorFlop sum;
    for (const CallForm& form : forms) sum.add(form.formula.needed().times(form.calls));
    return sum.flop(fma);
  }
  // The same of all that the algorithm executes.
  OperatorFlop algorithm() const {
    OperatorFlop sum;
    for (const CallForm& form : forms) sum.add(form.formula.flop->times(form.calls));
    return sum;
  }
};

}  // namespace flopinj::reduce
