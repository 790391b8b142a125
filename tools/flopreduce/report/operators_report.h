// What is said of operators and layers.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peaks/precisions.h"
#include "report/model_flop.h"
#include "report/ratio.h"
#include "report/work.h"
#include "support/wide.h"

namespace flopinj::reduce {

// How the cause begins where the formula is of real numbers, and the operator's are complex.
inline constexpr std::string_view kComplexNumbers = "complex numbers";

// What attention outside of all operators' ranges is called among operators.
inline constexpr std::string_view kAttentionOutside = "fused attention";

// An operator in one place (its range path) and phase, or all of one function in a phase.
struct OperatorReport {
  std::string name;  // "aten::conv2d"
  // The range that names it, with sizes, or that kAttentionOutside is in; empty for all of a
  // function.
  std::string range;
  std::string layer;  // empty where it is in none, and for all of a function
  uint32_t path = 0;  // TraceTables::paths: of that range; 0 for all of a function
  std::string phase;
  uint64_t calls = 0;
  bool calls_counted = false;  // by the recorder or sequence numbers; else an estimate
  Work work;
  // By formula, of all calls; nothing where there is none.
  std::optional<u128> formula_flop;
  // Of all places of a function: some have none. Of one: complex numbers, counted as real ones.
  bool formula_partial = false;
  bool formula_at_most = false;  // of both gradients, and nothing shows which were computed
  u128 formula_uncounted = 0;    // operations that no FLOP counter counts
  // Of formula_flop what the model needed: without gradients that nobody computed, without what a
  // mask leaves out. Of fused attention without a formula by what was executed.
  ModelFlop model;
  bool of_model = false;  // its phase counts for the model, and what the model needs is known
  // Of one with launches without a count: in which it may have run, by its kernels' names and its
  // operands' types. Empty where these leave it open.
  PrecisionSet precisions;
  // Executed / formula where both are known and the formula is not 0.
  std::optional<double> ratio;
  std::string cause, evidence;
  std::string given;  // where a formula of the user's own is from; empty: it is flopinj's
};

// All that is done for one layer, or by one operator of forward. Backward work belongs to them by
// the sequence number of its forward operator; a layer's else by the ranges around it.
struct ForwardBackward {
  std::string
      name;  // of the layer; "aten::linear"; "MmBackward" where no forward operator was found
  Work forward, backward, recompute;
  ModelFlop forward_model, backward_model;
  bool forward_at_least = false;   // launches of PhasePart::kUnclear are of this operator or layer
  bool backward_at_least = false;  // of PhasePart::kGradients may be its
  std::optional<double> ratio;     // backward / forward, matrix FLOP
  std::optional<ExpectedRatio> expected;  // the same by theory; nothing where there is none
  // Executed FLOP of forward / those of the whole forward pass; nothing where some are not known.
  std::optional<double> forward_share;
};

struct OperatorsReport {
  std::vector<OperatorReport> types;        // by function and phase, most FLOP first
  std::vector<OperatorReport> places;       // by range path and phase, most FLOP first
  std::vector<ForwardBackward> layers;      // most FLOP first, then in the order of forward
  std::vector<ForwardBackward> by_forward;  // by forward operator, most FLOP first
  // Of all launches that count for the model, those of no operator too; of phase "forward".
  ModelFlop model, forward_model;
  std::map<std::string, ModelFlop> model_by_phase;  // of phases that count, or may hold some of it
  bool has_forward = false;                         // the phase
  // Where nothing says what ran forward, all counts but what is known to be something else.
  bool counts_for_model(std::string_view phase) const {
    if (phase == "forward" || phase == "loss" || phase == "backward") return true;
    return !has_forward && phase != "recompute" && phase != "optimizer" && phase != "communication";
  }
  // Of all products with theory together: forward matrix FLOP, and what backward should be.
  u128 products_matrix_flop = 0;
  u128 beside_products = 0;  // forward matrix FLOP of operators that are known to be no products
  std::optional<ExpectedRatio> products_expected;
  std::string products_missing;  // why nothing is expected of some
  bool unclear_gradients =
      false;  // backward has work of calls of which it is unclear where they ran
  // Backward launches of gradients that are differentiated again (create_graph=True): they have
  // numbers of their own, and no number leads to their forward operator.
  uint64_t differentiated_again = 0;
  Work recompute;  // of operators
  // Operators that run again have numbers as these gradients have: backward may hold some.
  bool recompute_unclear() const { return differentiated_again > 0; }
  // Backward launches with a sequence number, by what became of it.
  uint64_t joined = 0, without_forward = 0, other_operator = 0, ambiguous = 0, out_of_window = 0;
};

}  // namespace flopinj::reduce
