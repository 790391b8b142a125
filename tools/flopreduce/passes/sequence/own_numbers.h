// Operators inside of autograd nodes that have sequence numbers of their own.
//
// PyTorch gives an operator a number only while gradients are on, and autograd runs nodes with
// gradients off (torch/csrc/autograd/engine.cpp: AutoGradMode grad_mode(graph_task->grad_mode_)).
// So where what a node consists of has no numbers, operators in it that have some run forward
// again: non-reentrant checkpointing turns gradients on for them. Where all in the node have
// numbers, the gradient itself is to be differentiated (create_graph=True), and nothing runs again.
// What runs without a number before these runs again too, such as a teacher's part under no_grad: a
// node computes what it saved before its own work.
// Inside of the program's own functions (torch.autograd.Function) gradients are off in forward too:
// that operators in one have no number tells nothing of the node. What runs in a module's range in
// such a node runs again, too: a hook that measures something.
// Known failure: both at once, a checkpointed model under create_graph, is taken for a gradient.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "phases/operators.h"

namespace flopinj::reduce {

class OwnNumbers {
 public:
  static constexpr size_t kMaxInNode = 256;  // operators with numbers in one run of a node

  // What a launch in a node is a part of.
  enum class Of : uint8_t {
    kNode,       // no other range with a number is around it
    kEvaluated,  // a node that this one evaluates
    kFunction,   // a function of the program's own
    kLayer,      // a range that is around forward work, too, and no operator's: a module's
  };
  // A launch without a number of its own.
  struct Without {
    uint32_t path = 0;
    Of of = Of::kNode;
    size_t owns = 0;  // as Lane::owns, before it
  };
  // What a thread launches on a stream: the launches of the node that runs there.
  struct Lane {
    uint32_t node = 0;   // its outermost range; PathTable::kRoot outside of all
    bool plain = false;  // something in it has no number of its own
    std::vector<uint32_t> own;
    uint64_t number = 0;     // of the node, plus 1; 0 while nothing has told it
    size_t owns = 0;         // launches with numbers of their own
    size_t owns_before = 0;  // of them those of other runs
    std::vector<Without> without;
  };
  // Must outlive this.
  explicit OwnNumbers(const OperatorMap& operators) : operators_(operators) {}

  // A launch inside of a node, in the order of its lane. `node`: OperatorMap::outermost_node_of()
  // its path; `own`: OperatorMap::own_number_of() it; `number`: plus 1, of kNode without an own one
  // the node's.
  void launch(Lane& lane, uint32_t node, uint32_t own, uint32_t path, Of of, uint64_t number) {
    const bool of_node = own == kNoIndex && of == Of::kNode;
    if (node != lane.node)
      end_node(lane, lane.without.size());
    else if (of_node && lane.number != 0 && number != lane.number)
      end_run(lane);
    // What a node saved is computed again before its own work: after that the next run begins.
    if (node != lane.node || (lane.plain && own != kNoIndex)) end(lane, node);
    if (own == kNoIndex) {
      lane.plain = lane.plain || !in_a_call(of);
      if (of_node) lane.number = number;
      if (lane.without.size() < kMaxInNode) lane.without.push_back({path, of, lane.owns});
      return;
    }
    ++lane.owns;
    if (lane.own.empty() || lane.own.back() != own) add(lane, own);
  }
  // One outside of all, or none any more.
  void outside(Lane& lane) {
    if (lane.node == 0) return;
    end_node(lane, lane.without.size());
    end(lane, 0);
  }
  // By path: whether its launches run forward again, as far as is known; after all launches.
  std::vector<bool> take(size_t paths) const;

 private:
  struct Runs {
    uint64_t again = 0, gradient = 0;
  };
  using RunsOf = std::unordered_map<uint32_t, Runs>;
  static bool in_a_call(Of of) { return of == Of::kFunction || of == Of::kLayer; }
  static bool again(const RunsOf& runs, uint32_t of);
  void end_node(Lane& lane, size_t launches);
  void end_run(Lane& lane);
  void add(Lane& lane, uint32_t own);
  void end(Lane& lane, uint32_t next) {
    if (!lane.own.empty()) count(lane);
    if (lane.node != next) {
      lane.number = 0;
      lane.owns_before = lane.owns;
    }
    lane.node = next;
    lane.plain = false;
  }
  void count(Lane& lane);

  const OperatorMap& operators_;
  RunsOf runs_;     // by OperatorMap::own_number_of()
  RunsOf without_;  // launches without such a number, by path
};

}  // namespace flopinj::reduce
