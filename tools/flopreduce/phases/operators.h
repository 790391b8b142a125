// Operators among range paths: which range says what operator a launch belongs to, and which layer.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analytic/operator_name.h"
#include "phases/given_formulas.h"
#include "tables/id_map.h"

namespace flopinj::reduce {

struct TraceTables;
class PhaseMap;

// A node of autograd's graph, as ranges show it: autograd::engine::evaluate_function, and inside of
// it the node.
struct AutogradNode {
  // The function that its name says it is the gradient of, as a number; 0 where the name does not
  // say. PyTorch names nodes for functions (tools/autograd/load_derivatives.py, _create_op_prefix):
  // _scaled_dot_product_flash_attention has ScaledDotProductFlashAttentionBackward0,
  // nll_loss_forward NllLossBackward0, class MyFunction(torch.autograd.Function)
  // MyFunctionBackward. A node of C++ (torch::autograd::CppNode<...>) has the name of its type.
  uint32_t function = 0;
  uint32_t range = 0;  // its outermost range
  // The node that evaluates this one as part of itself: its range, or PathTable::kRoot.
  uint32_t inside = 0;
  // AccumulateGrad: it adds to a leaf's gradient, has no number, and belongs to no operator. A
  // number among its launches is that of a node around it.
  bool of_a_leaf = false;
  // torch::autograd::CppNode<...>: of a C++ function outside of PyTorch, whose own operators have
  // nodes with names.
  bool of_library = false;
};

// What a range's name says.
struct NamedOperator {
  std::optional<OperatorName> parsed;  // nothing where it names no operator
  // The function that a range is of, or a node's gradient is of; empty where the name does not say.
  std::string function;
};
NamedOperator read_operator(std::string_view name);  // views point into the name
// Whether it is a function of the program's own (torch.autograd.Function): named for its class.
// PyTorch's dispatcher has two such names for what it calls under a mode, and of a subclass.
bool is_program_function(const OperatorName& name);

// The same, kept from one recording to the next: ranks of a job have the same names. Of one thread.
class KnownOperators {
 public:
  // Stays where it is until make_room(); null where there is no room.
  const NamedOperator* find(std::string_view name);
  // Between two recordings.
  void make_room();

 private:
  static constexpr size_t kMostBytes = 16U << 20;  // about; beyond, all is forgotten

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };
  std::unordered_map<std::string, NamedOperator, Hash, std::equal_to<>> names_;
  size_t bytes_ = 0;
};

// What a launch multiplies: nothing that is known, matrices of which none may be weights, or some
// that may be.
enum class Multiplies : uint8_t { kNothing, kProducts, kWeights };

class OperatorMap {
 public:
  // The tables must be joined, and all must outlive the map.
  OperatorMap(const TraceTables& tables, const PhaseMap& phases, KnownOperators* known = nullptr,
              const GivenFormulas* given = nullptr);

  // Whether any range names an operator.
  bool any() const { return any_; }
  // The range that names the operator that launches in this path belong to, or kNoIndex: of the
  // functions called by each other down to this path the outermost that has a formula; if none has,
  // the outermost; without a function, the autograd node.
  uint32_t operator_of(uint32_t path) const { return operator_[path]; }
  // kNoIndex of the outermost ranges.
  uint32_t parent_of(uint32_t path) const;
  // Whether a call of the range of this path is what recorders call one (LaunchBatch.call_run): no
  // other operator is around it, up to the next node.
  bool is_call(uint32_t path) const;
  // What the range of this path says of an operator, or nullptr.
  const OperatorName* name_of(uint32_t path) const;
  // What the program gave to the range of this path as its FLOP, all calls together; nothing where
  // it gave none.
  struct GivenFlop {
    u128 total = 0;
    uint64_t calls = 0;
  };
  std::optional<GivenFlop> flop_given(uint32_t path) const;
  // Settings of the innermost range at or above a path that has them, or is a module's; or nullptr.
  const OperatorSettings* settings_of(uint32_t path) const;
  // Whether a function or node at or above a path is of sparse operands: sizes do not say how much
  // work that is.
  bool sparse(uint32_t path) const { return sparse_[path]; }
  // Whether a product that the path is inside of has an operand that may be weights.
  bool has_weights(uint32_t path) const;
  Multiplies multiplies(uint32_t path) const;
  // Whether a function at or above a path, up to the next node, is none of PyTorch's own.
  bool of_library(uint32_t path) const;
  // The innermost function of the program's own (torch.autograd.Function) at or above a path, up to
  // the next node, as in AutogradNode; 0: none.
  uint32_t program_function_of(uint32_t path) const;
  // Of a path inside of a node: whether that function was called outside of all nodes, too, with
  // operands of these sizes, which are known. So checkpointing runs it again: gradients have other
  // sizes. Known failure: a function that computes its own gradient, of square matrices.
  bool calls_as_forward(uint32_t path) const;
  // Whether the innermost function at or above a path has no gradient: it counts, compares or makes
  // values, so that no node is its own.
  bool without_gradient(uint32_t path) const;
  // The innermost range at or above a path that is no operator; PathTable::kRoot where there is
  // none.
  uint32_t layer_of(uint32_t path) const { return layer_[path]; }
  // The phase's rule that ranges around the operators of a path decide, or kNoIndex.
  uint32_t rule_around(uint32_t path) const;
  // Whether operators' own names decide another rule, inside of ranges that have one.
  bool name_decides(uint32_t path) const;
  // Of the layer: its ranges below the outermost one whose name tells the phase, "/" between; the
  // same for forward and backward. Empty where no range is a layer.
  std::string layer_name(uint32_t path) const;
  // The innermost autograd node that a path is inside of, or nullptr.
  const AutogradNode* node_of(uint32_t path) const {
    return node_[path] == kNoIndex ? nullptr : &nodes_[node_[path]];
  }
  // The outermost operator around a path, up to the next node, that has a sequence number of its
  // own inside of that node; kNoIndex where there is none.
  uint32_t own_number_of(uint32_t path) const { return own_number_[path]; }
  // The outermost autograd node around a path: its range, or PathTable::kRoot.
  uint32_t outermost_node_of(uint32_t path) const { return outermost_node_[path]; }
  // The innermost range around a path, up to the next node, of the function that a node is named
  // for; kNoIndex where there is none.
  uint32_t function_of(uint32_t path, const AutogradNode& node) const;

 private:
  // What a name says.
  struct Known {
    uint32_t name = kNoIndex, function = 0;  // of names_, and as in AutogradNode
    bool own_number = false;
  };
  const Known& read_name(uint32_t name);
  const OperatorName* read_given(const std::string& text, const OperatorName* parsed);
  void find_flop_given();
  void find_operator(uint32_t path);
  uint32_t program_call_of(uint32_t path) const;
  void find_node(uint32_t path);
  void find_own_number(uint32_t path, bool own);

  const TraceTables& tables_;
  const PhaseMap& phases_;
  KnownOperators* known_operators_;
  const GivenFormulas* given_;
  std::unordered_map<uint32_t, GivenFlop> flop_given_;  // by path
  std::unordered_set<uint32_t> program_calls_;  // names of such functions' ranges outside of nodes
  bool any_ = false;
  std::vector<std::optional<Known>> known_;  // by index in TraceTables::names
  std::unordered_map<std::string, uint32_t> functions_{{"", 0}};
  size_t shapes_ = 0;
  std::vector<const OperatorName*> names_;
  std::deque<OperatorName> own_names_;  // names that KnownOperators does not hold
  std::vector<uint32_t> name_;          // by path: index in names_, or kNoIndex
  std::vector<uint32_t> operator_, layer_;
  std::vector<AutogradNode> nodes_;
  std::vector<uint32_t> node_;      // by path: index in nodes_, or kNoIndex
  std::vector<uint32_t> function_;  // by path: as in AutogradNode
  std::vector<uint32_t> own_number_, outermost_node_;
  std::vector<bool> sparse_;  // by path
};

}  // namespace flopinj::reduce
