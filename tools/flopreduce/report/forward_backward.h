// Forward and backward work side by side: by layer, and by the operator that forward called.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analytic/formula.h"
#include "model/model.h"
#include "model/operators.h"
#include "report/operator_join.h"
#include "report/report.h"

namespace flopinj::reduce {

class ForwardBackwardBuilder {
 public:
  // All must outlive the builder.
  ForwardBackwardBuilder(const Model& model, const OperatorMap& operators,
                         const OperatorJoin& join);
  // Takes the work of one range path in one phase.
  void add(uint32_t path, const std::string& phase, const Work& work);
  // After all work. Of one operator in one phase: its formula, or nothing where it has none, and the
  // paths that it launches in.
  void add_formula(uint32_t path, const std::string& phase, std::optional<u128> formula,
                   const std::vector<uint32_t>& launching);
  void finish(OperatorsReport& report);

  // Empty where the path is in no layer.
  const std::string& layer_name(uint32_t path);
  // The row of a path's work that belongs to `home`, one of OperatorJoin::for_each_home: the function
  // that forward called, or the autograd node that found none; empty where it is in no row.
  std::string row_name(uint32_t path, uint32_t home, const std::string& phase) const;
  // Whether the path's forward operators are all in the layer entered first that does matrix work.
  // After all work.
  bool in_first_layer(uint32_t path);

 private:
  // Rows by name, in the order in which names came.
  struct Rows {
    std::vector<ForwardBackward> rows;
    std::unordered_map<std::string, size_t> index;
    ForwardBackward& at(const std::string& name);
  };
  // Matrix work of one operator in forward, and what its gradients take by theory.
  struct Theory {
    double matrix = 0, gradients = 0, by_input = 0;
    bool known = true;
  };

  void add_to_layer(uint32_t path, const std::string& phase, const Work& work);
  void add_theory(uint32_t path, const std::string& type, const Work& work);
  bool is_forward(uint32_t path, const std::string& phase) const;
  std::string operator_name(uint32_t path) const;
  std::string node_name(uint32_t path) const;
  std::optional<ProductGradients> gradients_of(uint32_t path) const;
  void find_first_layer();
  std::optional<double> expected_of(const std::string& type);
  static void set_ratio(ForwardBackward& row);
  static void set_share(ForwardBackward& row, const Work& pass);

  const Model& model_;
  const OperatorMap& operators_;
  const OperatorJoin& join_;
  std::unordered_set<uint32_t> joined_;  // paths of operators whose number a backward one has
  Rows layers_, types_;
  Work layers_pass_, types_pass_;  // the forward work that rows are shares of
  std::unordered_map<uint32_t, std::string> layer_names_;     // by layer's path
  std::unordered_map<std::string, uint32_t> first_path_;      // of a layer, in forward
  std::optional<std::string> first_layer_;                    // empty: there is none
  std::map<std::string, std::map<uint32_t, Theory>> theory_;  // by type and operator's path
};

}  // namespace flopinj::reduce
