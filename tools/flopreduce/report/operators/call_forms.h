// One operator range may be of calls that differ, since no name has stride and padding: layers
// alike but for their stride. What autograd's nodes tell of the results tells such calls apart.
#pragma once
#include <cstdint>
#include <vector>

#include "analytic/formula.h"
#include "phases/operators.h"
#include "report/operators/operator_facts.h"
#include "report/operators/operator_join.h"

namespace flopinj::reduce {

class CallForms {
 public:
  // Both must outlive the object.
  CallForms(const OperatorMap& operators, const OperatorJoin& join)
      : operators_(operators), join_(join) {}

  // The operator of range `path`, which launches in these paths: each formula that a call may have,
  // and how many calls backward work says to have it (0 where there is none). Never empty.
  // Gradients whose node is named for a part of the operator that is no such work, as a cast is of
  // a convolution, say nothing.
  std::vector<CallForm> of(uint32_t path, const std::vector<uint32_t>& launching) const;

 private:
  // What the nodes of some calls say.
  struct Told {
    const OperatorName* gradient = nullptr;  // whose first size is the result's
    uint32_t function = kNoIndex;            // the range of the function that the node is named for
    uint64_t calls = 0;
  };
  std::vector<Told> told(uint32_t path, const std::vector<uint32_t>& launching) const;
  const OperatorName* gradient_in(uint32_t backward, uint32_t node) const;
  // Of a backward operator: the forward one's name and its module's settings, where all that it
  // belongs to agree.
  void add_forward(const std::vector<uint32_t>& launching, OperatorCall& call) const;
  Formula formula_of(uint32_t path, const OperatorCall& call, const Told& told) const;

  const OperatorMap& operators_;
  const OperatorJoin& join_;
};

// Adds the calls of a form to those of the same formula.
void add_form(std::vector<CallForm>& forms, const CallForm& form);
// Deals `calls` out to the forms, by what each has so far; the last ones get what rounding leaves.
void deal_calls(std::vector<CallForm>& forms, uint64_t calls);

}  // namespace flopinj::reduce
