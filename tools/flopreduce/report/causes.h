// Why the hardware's count of an operator differs from the formula, by evidence.
#pragma once
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
  u128 flop = 0;
};

// What is known of an operator's launches in one phase.
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
  bool first_layer = false;  // of the network: nobody needs the gradient by its input
};

struct Cause {
  std::string cause;     // empty: there is nothing to explain
  std::string evidence;  // what it is taken from
};
Cause cause_of(const OperatorFacts& facts);

}  // namespace flopinj::reduce
