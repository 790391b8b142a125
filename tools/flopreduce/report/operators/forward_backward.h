// Forward and backward work side by side: by layer, and by the operator that forward called; and
// what their ratio should be.
//
// An expectation comes from theory and from evidence, operator by operator: all gradients that the
// formula knows, without those of which report/operators/gradients.h says that they were not
// computed. Evidence by FLOP is left out here, since FLOP are what the expectation is to judge.
// Without other evidence the first operator that has gradients gets the range with and without its
// input's gradient, and any other is assumed to have all; the basis says so, and a mark.
//
// A layer without operators that have a theory (plain ranges) has the names of its backward kernels
// as evidence: named for both gradients in equal numbers, both; all matrix work by kernels named
// for one of them, that one. Otherwise the first layer that has backward work gets the range from
// one gradient to both, and any other is assumed to have both.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analytic/operator_flop.h"
#include "phases/operators.h"
#include "report/operators/gradients.h"
#include "report/operators/operator_join.h"
#include "report/report.h"
#include "tables/trace_tables.h"

namespace flopinj::reduce {

// ExpectedRatio::lacks, where nothing shows the gradients of this part of its matrix work.
inline std::string lacks_gradients(double part) {
  if (part <= 0) return {};
  if (part >= 1) return "both gradients are assumed";
  return "both gradients are assumed of " +
         std::to_string(std::max(1, static_cast<int>(part * 100))) + " % of its matrix work";
}

// Of the forward pass, whose loss is a part of it.
inline bool is_forward(const std::string& phase) { return phase == "forward" || phase == "loss"; }

// Phases that layers have rows of.
inline bool has_layers(const std::string& phase) {
  return phase == "forward" || phase == "backward" || phase == "recompute";
}

class ForwardBackwardBuilder {
 public:
  // All must outlive the builder.
  ForwardBackwardBuilder(const TraceTables& tables, const OperatorMap& operators,
                         const OperatorJoin& join)
      : tables_(tables), operators_(operators), join_(join) {}
  // Takes one kernel's work in one range path and phase. `kernel`: its name in TraceTables::names.
  void add(uint32_t path, const std::string& phase, uint32_t kernel, const Work& work);
  // When it has taken all work, which is that of the report's rows: by layer, and by operator.
  void add_up(const Report& report);
  // Of one operator in one phase, or of launches in none: what counts for the model, and the paths
  // that it launches in.
  void add_model(uint32_t path, const std::string& phase, const ModelFlop& model,
                 const std::vector<uint32_t>& launching);
  // `more`: it executed several times its formula, and nothing says why.
  void add_calls(uint32_t path, const OperatorFacts& facts, bool more);
  // Launches of a path may have run forward, and nothing decides it.
  void add_unclear(uint32_t path);
  // Of launches in no phase of training: they may be gradients that no node computed. Of one kernel
  // with one shape.
  void add_outside(uint32_t path, const Work& work);
  void finish(const GradientFinder& gradients, OperatorsReport& report);
  // Of what add_outside() took, when it is finished.
  bool may_be_gradient(uint32_t path, const Work& work) const;

  // Empty where the path is in no layer.
  const std::string& layer_name(uint32_t path);
  // The row of a path's work that belongs to `home`, one of OperatorJoin::for_each_home: the
  // function that forward called, or the autograd node that found none; empty where it is in no
  // row.
  std::string row_name(uint32_t path, uint32_t home, const std::string& phase) const;

 private:
  // Rows by name, in the order in which names came.
  struct Rows {
    std::vector<ForwardBackward> rows;
    std::unordered_map<std::string, size_t> index;
    Work pass;                                // the forward work that rows are shares of
    std::unordered_set<std::string> unclear;  // launches may be of these
    std::unordered_set<std::string> lacking;  // gradients of these may be outside of backward
    ForwardBackward& at(const std::string& name);
    void finish();
  };
  // Matrix work of one operator in forward, and what theory says of its gradients.
  struct Theory {
    std::string type, layer;
    u128 matrix = 0;
    double gradients = 0, by_input = 0;  // multiply-adds times `matrix`
    bool known = true;
    bool no_product = false;  // a formula says so
    double more = 0;          // it executed so many times its formula, and nothing says why
    bool uncounted = false;   // a product, and not all of its launches have a count
    ForwardCalls calls;
  };
  // Kernels of a layer's backward work, by the gradient that their names say they compute.
  struct LayerKernels {
    uint64_t input = 0, weight = 0;  // launches
    u128 named = 0, matrix = 0;      // matrix FLOP: of these, of all
    bool measured = true;
    // `first`: of the first layer that has backward work.
    ExpectedRatio expected(bool first) const;
  };
  // Expectations of several operators.
  struct Sum {
    double matrix = 0, least = 0, most = 0;
    double assumed = 0;  // of `matrix`: nothing shows which gradients were computed
    bool known = true;
    bool again = false;  // several backward passes went over one graph
    bool uncounted = false;
    std::vector<std::string> basis;
    void add(const Sum& other);
    std::optional<ExpectedRatio> ratio() const;
  };

  void add_kernels_of_layers(const Report& report);
  void add_theory(uint32_t path, const std::string& type, const Work& work,
                  std::string_view kernel);
  Sum expected_of(uint32_t path, const Theory& theory, const GradientFinder& gradients,
                  const ExpectedBackward& backward) const;
  std::unordered_map<uint32_t, ExpectedBackward> expected_of_functions(
      const GradientFinder& gradients) const;
  uint32_t first_product() const;
  void set_expected(const GradientFinder& gradients, OperatorsReport& report);
  void find_gradients_outside();
  void set_expected_of_layers();
  std::string operator_name(uint32_t path) const;
  std::string node_name(uint32_t path) const;
  std::optional<ProductGradients> gradients_of(uint32_t path, std::string_view kernel) const;

  const TraceTables& tables_;
  const OperatorMap& operators_;
  const OperatorJoin& join_;
  Rows layers_, types_;
  std::unordered_map<uint32_t, std::string> layer_names_;  // by layer's path
  std::unordered_map<std::string, uint32_t> first_path_;   // of a layer, in forward
  std::unordered_map<std::string, LayerKernels> layer_kernels_;
  std::map<uint32_t, Theory> theory_;  // by forward operator's path
  // Of add_outside(): paths of operators, and of launches by none the sizes of their matrix work;
  // which of them may be of gradients.
  std::set<uint32_t> outside_, gradient_paths_;
  std::set<int> bare_, gradient_sizes_;
  // Of products whose node computed one gradient or none, by weights' sizes: the operators.
  std::map<MatrixSizes, std::vector<const Theory*>> lacking_;
};

}  // namespace flopinj::reduce
