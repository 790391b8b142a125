// What sequence numbers show: how often an operator was called, and which forward operator a
// backward one belongs to.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace flopinj::reduce {

// In which training steps launches are by operators, of traces that have their steps one by one.
class StepNames {
 public:
  // Some launches of a step, counted from 1: whether any is by an operator.
  void note(uint32_t trace, uint32_t step, bool named) {
    std::vector<uint8_t>& steps = steps_[trace];
    if (step >= steps.size()) steps.resize(step + 1);
    steps[step] |= named ? kNamed : kThere;
  }
  // When all are noted: `counts(trace, step)` says whether it is one that ended. Steps of traces
  // that have no other kind are of no interest.
  template <class Counts>
  void finish(Counts&& counts) {
    std::erase_if(steps_, [&](const auto& entry) {
      uint64_t with = 0, all = 0;
      for (uint32_t step = 1; step < entry.second.size(); ++step)
        if (entry.second[step] != 0 && counts(entry.first, step)) {
          ++all;
          with += (entry.second[step] & kNamed) != 0 ? 1 : 0;
        }
      if (with == 0 || with == all) return true;
      with_ += with;
      all_ += all;
      return false;
    });
  }
  bool any() const { return !steps_.empty(); }
  bool without(uint32_t trace, uint32_t step) const {
    const auto found = steps_.find(trace);
    return found != steps_.end() && step < found->second.size() && found->second[step] == kThere;
  }
  // Of traces that have both kinds.
  uint64_t with() const { return with_; }
  uint64_t all() const { return all_; }

 private:
  static constexpr uint8_t kThere = 1, kNamed = 2;
  std::unordered_map<uint32_t, std::vector<uint8_t>> steps_;
  uint64_t with_ = 0, all_ = 0;
};

struct OperatorCalls {
  StepNames steps;
  // By range path: changes of the sequence number among its launches on one thread; 0 where a
  // launch has none, came from a graph (which repeats its numbers), or was not kept apart.
  std::vector<uint64_t> calls;
  // The recorders say which launches are the first of a call (LaunchBatch.call_run).
  bool recorded = false;
  // What a backward path has of a forward one: launches, the calls that began with these, and
  // numbers, each of them one node and one call of the forward operator.
  struct Joined {
    uint64_t launches = 0, calls = 0, numbers = 0;
  };
  // By forward path: its calls that backward work has the numbers of.
  std::unordered_map<uint32_t, uint64_t> differentiated;
  static uint64_t key(uint32_t backward, uint32_t forward) {
    return static_cast<uint64_t>(backward) << 32 | forward;
  }
  static uint32_t backward_of(uint64_t key) { return static_cast<uint32_t>(key >> 32); }
  static uint32_t forward_of(uint64_t key) { return static_cast<uint32_t>(key); }
  // By key(). A forward path is outside of all autograd nodes, or inside of one that runs operators
  // again and then their gradients (a reentrant checkpoint).
  std::unordered_map<uint64_t, Joined> joined;
  // Forward paths of functions that have one node for several operators inside (CompiledFunction of
  // torch.compile): all below ran forward, and no operator has the backward work for itself.
  std::unordered_set<uint32_t> functions;
  // Launches with a number inside of autograd nodes: each is in one of these. Operators that
  // checkpointing runs again are in none.
  uint64_t joined_launches = 0;
  uint64_t without_forward = 0;  // nobody's forward had that number
  // The node is of none of the operators with that number, as far as names say, or perhaps of one
  // without a number behind them.
  uint64_t other_operator = 0;
  uint64_t ambiguous = 0;      // operators of several threads fit
  uint64_t out_of_window = 0;  // too far behind, or a table was full
  // Those that found no forward operator, by backward path.
  std::unordered_map<uint32_t, uint64_t> unjoined;
};

}  // namespace flopinj::reduce
