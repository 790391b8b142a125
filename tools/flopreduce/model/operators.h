// Operators among range paths: which range says what operator a launch belongs to, and which layer.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "analytic/operator_name.h"
#include "model/id_map.h"

namespace flopinj::reduce {

struct Model;
class PhaseMap;

class OperatorMap {
 public:
  // The model must be joined, and both must outlive the map.
  OperatorMap(const Model& model, const PhaseMap& phases);

  // Whether any range names an operator.
  bool any() const { return any_; }
  // The range that names the operator that launches in this path belong to, or kNoIndex: of the
  // functions called by each other down to this path the outermost that has a formula; if none has,
  // the outermost; without a function, the autograd node.
  uint32_t operator_of(uint32_t path) const { return operator_[path]; }
  // What the range of this path says of an operator, or nullptr.
  const OperatorName* name_of(uint32_t path) const;
  // Settings of the innermost module around a path, or nullptr.
  const ModuleSettings* settings_of(uint32_t path) const;
  // The innermost range at or above a path that is no operator; PathTable::kRoot where there is none.
  uint32_t layer_of(uint32_t path) const { return layer_[path]; }
  // Of the layer: its ranges below the outermost one whose name tells the phase, "/" between; the same
  // for forward and backward. Empty where no range is a layer.
  std::string layer_name(uint32_t path) const;
  // The node of autograd that a path is inside of, in lower case without "backward": "addmm"; empty
  // where it is inside of none.
  std::string autograd_node(uint32_t path) const;
  // Whether one of the functions around a path is that which an autograd node is named for.
  bool is_function_of(uint32_t path, const std::string& node) const;

 private:
  void find_operator(uint32_t path);

  const Model& model_;
  const PhaseMap& phases_;
  bool any_ = false;
  std::vector<OperatorName> names_;
  std::vector<uint32_t> name_;  // by path: index in names_, or kNoIndex
  std::vector<uint32_t> operator_, layer_;
};

}  // namespace flopinj::reduce
