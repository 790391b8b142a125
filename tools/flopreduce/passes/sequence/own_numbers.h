// Operators inside of autograd nodes that have sequence numbers of their own.
//
// PyTorch gives an operator a number only while gradients are on, and autograd runs nodes with
// gradients off (torch/csrc/autograd/engine.cpp: AutoGradMode grad_mode(graph_task->grad_mode_)).
// So where what a node consists of has no numbers, operators in it that have some run forward
// again: non-reentrant checkpointing turns gradients on for them. Where all in the node have
// numbers, the gradient itself is to be differentiated (create_graph=True), and nothing runs again.
// Known failure: both at once, a checkpointed model under create_graph, is taken for a gradient.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "phases/operators.h"

namespace flopinj::reduce {

class OwnNumbers {
 public:
  static constexpr size_t kMaxInNode = 256;  // operators with numbers in one run of a node

  // What a thread launches on a stream: the launches of the node that runs there.
  struct Lane {
    uint32_t node = 0;   // its outermost range; PathTable::kRoot outside of all
    bool plain = false;  // something in it has no number of its own
    std::vector<uint32_t> own;
  };
  // Must outlive this.
  explicit OwnNumbers(const OperatorMap& operators) : operators_(operators) {}

  // A launch inside of a node, in the order of its lane. `node`: OperatorMap::outermost_node_of()
  // its path; `own`: OperatorMap::own_number_of() it.
  void launch(Lane& lane, uint32_t node, uint32_t own) {
    // What a node saved is computed again before its own work: after that the next run begins.
    if (node != lane.node || (lane.plain && own != kNoIndex)) end(lane, node);
    if (own == kNoIndex)
      lane.plain = true;
    else if (lane.own.empty() || lane.own.back() != own)
      add(lane, own);
  }
  // One outside of all, or none any more.
  void outside(Lane& lane) {
    if (lane.node != 0) end(lane, 0);
  }
  // Whether what an operator with a number of its own launches runs forward again, as far as is
  // known. `own`: OperatorMap::own_number_of() of a path.
  bool runs_again(uint32_t own) const;
  // By path: runs_again(), after all launches.
  std::vector<bool> take(size_t paths) const;

 private:
  struct Runs {
    uint64_t again = 0, gradient = 0;
  };
  void add(Lane& lane, uint32_t own);
  void end(Lane& lane, uint32_t next) {
    if (!lane.own.empty()) count(lane);
    lane.node = next;
    lane.plain = false;
  }
  void count(Lane& lane);

  const OperatorMap& operators_;
  std::unordered_map<uint32_t, Runs> runs_;  // by OperatorMap::own_number_of()
};

}  // namespace flopinj::reduce
