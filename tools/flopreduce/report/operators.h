// Operators: what the hardware executed, what the formula says, and why the two differ; and the same
// by layer.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/model.h"
#include "model/operator_calls.h"
#include "model/operators.h"
#include "model/phases.h"
#include "model/totals.h"
#include "report/causes.h"
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

 private:
  struct KernelSum {
    uint64_t launches = 0;
    u128 flop = 0;
  };
  // One operator range in one phase.
  struct Place {
    Work work;
    bool tensor = false;
    std::string reason;
    std::map<std::pair<uint32_t, uint32_t>, KernelSum> kernels;  // (path, kernel name)
  };
  using Share = std::pair<uint32_t, uint64_t>;  // forward path, launches

  void add_layer(const Row& row, const Work& work, const std::string& phase);
  LayerWork& layer(const std::string& name);
  const std::string& layer_name(uint32_t path);
  void find_first_layer();
  bool in_first_layer(uint32_t path);
  const std::vector<Share>* forwards_of(uint32_t backward) const;
  const Shape* result_shape(const Place& place) const;
  // Calls, and whether sequence numbers count them.
  std::pair<uint64_t, bool> calls_of(const Place& place, const Formula& formula) const;
  OperatorFacts facts_of(uint32_t path, const std::string& phase, const Place& place);
  void add_formula(uint32_t path, const std::string& phase, u128 formula);
  void add_types();
  void finish_layers();

  const Model& model_;
  const PhaseRules& rules_;
  const OperatorMap& operators_;
  const OperatorCalls& calls_;
  const Formulas& formulas_;
  std::map<std::pair<uint32_t, std::string>, Place> places_;       // (operator's path, phase)
  std::unordered_map<uint32_t, std::vector<Share>> forwards_;      // by backward path
  std::unordered_map<uint32_t, std::vector<uint32_t>> backwards_;  // by forward path
  std::unordered_map<uint32_t, std::string> layer_names_;          // by layer's path
  std::unordered_map<std::string, size_t> layer_index_;
  std::vector<uint32_t> layer_first_path_;  // parallel to report_.layers
  std::string first_layer_;
  OperatorsReport report_;
};

}  // namespace flopinj::reduce
