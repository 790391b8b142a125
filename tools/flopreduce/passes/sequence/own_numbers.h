// Operators inside of autograd nodes that have sequence numbers of their own.
//
// PyTorch gives an operator a number only while gradients are on, and autograd runs nodes with
// gradients off (torch/csrc/autograd/engine.cpp: AutoGradMode grad_mode(graph_task->grad_mode_)).
// So where what a node consists of has no numbers, operators in it that have some run forward
// again: non-reentrant checkpointing turns gradients on for them. Where all in the node have
// numbers, the gradient itself is to be differentiated (create_graph=True), and nothing runs again.
// What runs without a number before these runs again too, such as a teacher's part under no_grad: a
// node computes what it saved before its own work.
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

  // What a thread launches on a stream: the launches of the node that runs there.
  struct Lane {
    uint32_t node = 0;   // its outermost range; PathTable::kRoot outside of all
    bool plain = false;  // something in it has no number of its own
    std::vector<uint32_t> own;
    uint64_t number = 0;  // of the node
    size_t owns = 0;      // launches with numbers of their own
    // Launches without: their paths, and `owns` before them.
    std::vector<std::pair<uint32_t, size_t>> without;
  };
  // Must outlive this.
  explicit OwnNumbers(const OperatorMap& operators) : operators_(operators) {}

  // A launch inside of a node, in the order of its lane. `node`: OperatorMap::outermost_node_of()
  // its path; `own`: OperatorMap::own_number_of() it; `number`: the node's where there is no own.
  void launch(Lane& lane, uint32_t node, uint32_t own, uint32_t path, uint64_t number) {
    const bool other = node != lane.node || (own == kNoIndex && number != lane.number);
    if (other && !lane.without.empty()) end_node(lane);
    // What a node saved is computed again before its own work: after that the next run begins.
    if (node != lane.node || (lane.plain && own != kNoIndex)) end(lane, node);
    if (own == kNoIndex) {
      lane.plain = true;
      lane.number = number;
      if (lane.without.size() < kMaxInNode) lane.without.emplace_back(path, lane.owns);
      return;
    }
    ++lane.owns;
    if (lane.own.empty() || lane.own.back() != own) add(lane, own);
  }
  // One outside of all, or none any more.
  void outside(Lane& lane) {
    if (lane.node == 0) return;
    end_node(lane);
    end(lane, 0);
  }
  // By path: whether its launches run forward again, as far as is known; after all launches.
  std::vector<bool> take(size_t paths) const;

 private:
  struct Runs {
    uint64_t again = 0, gradient = 0;
  };
  using RunsOf = std::unordered_map<uint32_t, Runs>;
  static bool again(const RunsOf& runs, uint32_t of);
  void end_node(Lane& lane);
  void add(Lane& lane, uint32_t own);
  void end(Lane& lane, uint32_t next) {
    if (!lane.own.empty()) count(lane);
    lane.node = next;
    lane.plain = false;
  }
  void count(Lane& lane);

  const OperatorMap& operators_;
  RunsOf runs_;     // by OperatorMap::own_number_of()
  RunsOf without_;  // launches without such a number, by path
};

}  // namespace flopinj::reduce
