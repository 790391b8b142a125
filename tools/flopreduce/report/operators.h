// Operators: what the hardware executed, what the formula says, and why the two differ.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/operator_calls.h"
#include "model/operators.h"
#include "model/phases.h"
#include "model/totals.h"
#include "report/causes.h"
#include "report/forward_backward.h"
#include "report/gradients.h"
#include "report/operator_join.h"
#include "report/report.h"

namespace flopinj::reduce {

class OperatorsBuilder {
 public:
  // All must outlive the builder. `formulas` is done: every signature was evaluated.
  OperatorsBuilder(const Model& model, const PhaseRules& rules, const OperatorMap& operators,
                   const OperatorCalls& calls, const Formulas& formulas);
  // Takes one row of the totals. `reason`: why it is unmeasured, where it is.
  void add(const Row& row, const Work& work, const Flop& flop, const std::string& reason);
  OperatorsReport build();

  const OperatorJoin& join() const { return join_; }
  const ForwardBackwardBuilder& forward_backward() const { return forward_backward_; }

 private:
  struct KernelSum {
    uint64_t launches = 0;
    u128 flop = 0, matrix_flop = 0;
    void add(const KernelSum& other);
  };
  // One operator range in one phase.
  struct Place {
    Work work;
    bool tensor = false;
    std::string reason;
    std::map<std::pair<uint32_t, uint32_t>, KernelSum> kernels;  // (path, kernel name)
  };
  // The backward operator of a forward one, whose first size is the result's; nullptr where it is not
  // known, or several differ.
  const OperatorName* gradient_of(const Place& place) const;
  // Of a backward operator: the forward one's name and its module's settings, where all that it belongs to
  // agree.
  void add_forward(const Place& place, OperatorCall& call) const;
  Formula formula_of(uint32_t path, const Place& place) const;
  // Calls, and whether sequence numbers count them.
  std::pair<uint64_t, bool> calls_of(const Place& place, const Formula& formula) const;
  OperatorFacts facts_of(uint32_t path, const std::string& phase, const Place& place) const;
  void add_place(uint32_t path, const Place& place, const OperatorFacts& facts);
  void add_types();

  const Model& model_;
  const PhaseRules& rules_;
  const OperatorMap& operators_;
  const OperatorCalls& calls_;
  const Formulas& formulas_;
  OperatorJoin join_;
  ForwardBackwardBuilder forward_backward_;
  std::map<std::pair<uint32_t, std::string>, Place> places_;  // (operator's path, phase)
  OperatorsReport report_;
};

}  // namespace flopinj::reduce
