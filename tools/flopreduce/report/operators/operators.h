// Operators: what the hardware executed, what the formula says, and why the two differ.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "peaks/precisions.h"
#include "report/build_report.h"
#include "report/operators/forward_backward.h"
#include "report/operators/operator_join.h"

namespace flopinj::reduce {

// One operator range may be of calls that differ, since no name has stride and padding: layers
// alike but for their stride. What autograd's nodes tell of the results tells such calls apart.
// The operator of range `path`, which launches in these paths: each formula that a call may have,
// and how many calls backward work says to have it (0 where there is none). Never empty. Gradients
// whose node is named for a part of the operator that is no such work, as a cast is of a
// convolution, say nothing.
std::vector<CallForm> call_forms(const OperatorMap& operators, const OperatorJoin& join,
                                 uint32_t path, const std::vector<uint32_t>& launching);
// Adds the calls of a form to those of the same formula.
void add_form(std::vector<CallForm>& forms, const CallForm& form);
// Calls that come to `total` together: all of them to the same, or to one more.
std::vector<CallForm> even_forms(u128 total, uint64_t calls);
// Deals `calls` out to the forms, by what each has so far; the last ones get what rounding leaves.
void deal_calls(std::vector<CallForm>& forms, uint64_t calls);

class OperatorsBuilder {
 public:
  // The sources' formulas are done: every signature was evaluated.
  explicit OperatorsBuilder(const ReportSources& from)
      : from_(from),
        tables_(from.tables),
        operators_(from.operators),
        calls_(from.calls),
        join_(from.calls, from.operators),
        forward_backward_(from.tables, from.operators, join_) {}
  // Takes one row of the totals. `tensor`: it ran on tensor cores. `reason`: why it is unmeasured,
  // where it is.
  void add(const Row& row, const Work& work, bool tensor, const std::string& reason);
  // `report` has the rows, their homes and the phases.
  OperatorsReport build(const Report& report);
  // Launches of the row may be a gradient that no node computed: PhasePart::kGradients. When the
  // report is built.
  bool may_be_gradient(const Row& row, const Work& work) const;
  // Of launches of that row which lack a count: each row once, when the report is built.
  ByFormula by_formula(const Row& row, uint64_t incomplete);

  const OperatorJoin& join() const { return join_; }
  const ForwardBackwardBuilder& forward_backward() const { return forward_backward_; }

 private:
  // One operator range in one phase.
  struct Place {
    Work work;
    uint64_t calls = 0, graph = 0;  // recorded ones; launches from graphs, which say none
    u128 product = 0;  // matrix FLOP of a launch that has any, and whether all have as many
    bool products_alike = true;
    bool tensor = false;  // some ran on tensor cores
    std::string reason;
    const GivenFormula* given = nullptr;  // of a kernel; its launches came to `given_flop`
    u128 given_flop = 0;
    std::map<std::pair<uint32_t, uint32_t>, KernelSum> kernels;  // (path, kernel name)
    std::vector<uint32_t> launching() const;
    uint64_t products() const;
  };
  // Of operators that run again, which have no gradients: those of the same name in forward.
  void add_forms_again(std::map<const Place*, std::vector<CallForm>>& forms) const;
  // Of an operator: matrix FLOP, and calls that were recorded.
  std::pair<u128, uint64_t> in_all_phases(uint32_t path) const;
  bool ran_forward_beside(uint32_t path, const std::string& phase) const;
  bool is_sparse(const Place& place) const;
  void add_unclear(const Row& row, const Work& work, bool tensor);
  bool no_training(uint32_t rule) const;
  std::pair<uint64_t, bool> calls_here(const Place& place, uint32_t path) const;
  // Calls, and whether they are counted: by the recorder, or by sequence numbers.
  std::pair<uint64_t, bool> calls_of(uint32_t path, const Place& place) const;
  // Of a range that the program gave its FLOP; nothing where these are of other launches, too.
  std::optional<OperatorMap::GivenFlop> given_here(uint32_t path, const Place& place) const;
  std::vector<CallForm> forms_of(uint32_t path, const Place& place) const;
  // The user's formula of a kernel that is in no operator with one (kNoIndex: in none), or null.
  const GivenFormula* given_for(uint32_t path, uint32_t kernel);
  const OperatorName* name_of_kernel(uint32_t kernel, const GivenFormula* given);
  void set_kernels(const Place& place, OperatorFacts& facts);
  void add_outside();
  std::unordered_set<uint32_t> gradients_of_attention();
  const std::optional<AttentionKernel>& attention_of(uint32_t kernel);
  OperatorFacts facts_of(uint32_t path, const std::string& phase, const Place& place,
                         std::vector<CallForm> forms);
  void add_place(uint32_t path, const Place& place, const OperatorFacts& facts);
  void add_by_formula(const Place& place, const OperatorFacts& facts, OperatorReport& report);
  const KernelPrecisions& kernel_precisions(uint32_t name);
  bool without_products(const Place& place);
  PrecisionSet precisions_of(const Place& place);
  void add_types();
  void add_model();

  const ReportSources& from_;
  const TraceTables& tables_;
  const OperatorMap& operators_;
  const OperatorCalls& calls_;
  OperatorJoin join_;
  ForwardBackwardBuilder forward_backward_;
  std::map<std::pair<uint32_t, std::string>, Place> places_;  // (operator's path, phase)
  // (path, phase, kernel's name where it has a formula, or kNoIndex): of no operator with one.
  std::map<std::tuple<uint32_t, std::string, uint32_t>, Place> outside_;
  std::deque<std::string> kernel_texts_;
  std::deque<OperatorName> kernel_names_;  // of kernels with a formula
  std::unordered_map<uint32_t, std::optional<AttentionKernel>> attention_kernels_;  // by name
  std::unordered_map<uint32_t, KernelPrecisions> kernel_precisions_;                // likewise
  std::unordered_map<uint32_t, const GivenFormula*> given_;                         // likewise
  AttentionWork attention_;
  bool formulas_ = false;  // some operator has one: without, attention alone would be the model
  // By path, phase and kernel: what by_formula() has not handed out yet.
  std::map<std::tuple<uint32_t, std::string, uint32_t>, ByFormula> by_formula_;
  std::unordered_map<uint32_t, uint64_t> launches_;  // by path, in all phases
  std::unordered_set<uint32_t> products_;            // paths that do matrix work, or may
  std::map<std::string, ModelFlop> models_;          // by phase
  // By phase: of launches in phases that do not count, which may have run forward.
  std::map<std::string, ModelFlop> unclear_;
  OperatorsReport report_;
};

}  // namespace flopinj::reduce
