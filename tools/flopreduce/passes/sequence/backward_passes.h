// Backward passes, by the order in which autograd runs its nodes: the highest number first. A
// number above all before it begins another pass, on each thread and stream by itself.
//
// Operators that run inside of nodes may have numbers of their own, counted by that thread: those
// of non-reentrant checkpointing, and of gradients that are differentiated again. They are no nodes
// of this pass, and nothing in the trace says so; but they are lower, since the thread that runs
// nodes makes fewer of them than forward did, and what is not above the pass before is left out. A
// pass ends at numbers whose nodes are joined to operators by name. Known failure: a thread that
// makes more nodes inside of nodes than forward makes may join two passes; what lies between them
// then counts as forward.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "phases/forward_numbers.h"

namespace flopinj::reduce {

class BackwardPasses {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr size_t kMaxPasses = 1U << 20;

  // What a thread launches on a stream.
  struct Lane {
    uint32_t trace = 0;
    uint32_t pass = kNone;
    uint64_t before = 0;  // the highest number of the passes before
    uint64_t highest = 0;
  };
  // A launch of a node that no other node evaluates, in order. Its pass, or kNone.
  uint32_t node(Lane& lane, uint64_t number) {
    if (number > lane.highest) begin(lane, number);
    return number > lane.before ? lane.pass : kNone;
  }
  // The operator that a node is of: its thread, OperatorMap::operator_of() and function_of().
  struct Own {
    uint32_t thread = 0;
    uint32_t of = kNoIndex;  // none
    uint32_t function = kNoIndex;
    bool known = false;
    bool several = false;  // calls of that operator have the node's number
  };
  void joined(uint32_t pass, uint64_t number, const Own& own) {
    if (pass == kNone || own.of == kNoIndex) return;
    Found& found = found_[pass];
    if (number < found.pass.first || found.thread != own.thread) begins(found, number, own);
    found.pass.last = std::max(found.pass.last, number);
  }
  ForwardNumbers take();

 private:
  void begin(Lane& lane, uint64_t number);
  struct Found {
    uint32_t trace = 0;
    uint32_t thread = 0;
    bool several = false;  // threads: their numbers are not one order
    ForwardNumbers::Pass pass{.first = UINT64_MAX};
  };
  static void begins(Found& found, uint64_t number, const Own& own);

  std::vector<Found> found_;
};

}  // namespace flopinj::reduce
