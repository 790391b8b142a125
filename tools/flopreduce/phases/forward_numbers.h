// Which launches ran in a forward pass, by autograd's sequence numbers.
//
// PyTorch counts the nodes of autograd's graph per thread, and an operator carries the number that
// the next node will get, as long as gradients are on. So an operator whose number lies above that
// of the first node of a backward pass, and not above that of its last one, ran after the first and
// before the last node was made: in the forward pass that they belong to. The first node's own
// operator did too. Other launches with that first number ran at any time since the node before it
// was made: data that needs no gradient (normalised images), layers without gradients (a frozen
// backbone) and evaluation with gradients on look the same. They are unclear, and so are numbers
// between two passes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>
#include <vector>

#include "phases/batch_edges.h"
#include "reader/number_tells.h"
#include "tables/id_map.h"

namespace flopinj::reduce {

// Sequence numbers are those of a trace: plus 1, and 0 for none.
class ForwardNumbers {
 public:
  // The numbers of a backward pass's nodes that are joined to operators of one thread.
  struct Pass {
    uint64_t first = 0, last = 0;
    // Of the first node's operator: OperatorMap::operator_of(), and function_of() or kNoIndex.
    uint32_t first_operator = kNoIndex, first_function = kNoIndex;
    // Several calls of that operator have the number: a target network's layer before it, too.
    bool several = false;
  };
  // Of one thread: in order, and none lies inside of another.
  using Passes = std::vector<Pass>;

  // Adds the passes of all threads, in any order. Those inside of others are parts of backward that
  // ran again, or on a stream of their own.
  void add(uint32_t trace, uint32_t thread, const Pass& pass) {
    passes_[{trace, thread}].push_back(pass);
  }
  // A thread whose numbers are in no pass that is known.
  void add(uint32_t trace, uint32_t thread) { passes_[{trace, thread}]; }
  void sort() {
    for (auto& [thread, passes] : passes_) {
      // Of two that begin together the longer one first, so that it holds the other.
      std::ranges::sort(passes, [](const Pass& a, const Pass& b) {
        return a.first != b.first ? a.first < b.first : a.last > b.last;
      });
      uint64_t last = 0;
      std::erase_if(passes, [&](const Pass& pass) {
        const bool inside = pass.last <= last;
        last = std::max(last, pass.last);
        return inside;
      });
    }
  }
  // Forgets all other threads, given as (trace, thread).
  void keep(const std::set<std::pair<uint32_t, uint32_t>>& threads) {
    std::erase_if(passes_, [&](const auto& entry) { return !threads.contains(entry.first); });
  }
  bool any() const { return !passes_.empty(); }
  // Functions of a program's own (torch.autograd.Function) show the number that the next node will
  // have, also where gradients are off and the node is another's. So where some of a function's
  // nodes are known by their numbers, its calls with other numbers may have run anywhere, and
  // several with one number each; where nothing beside them has numbers, gradients are off
  // (passes/rows/number_split.h). By trace and AutogradNode::function.
  struct NodeNumbers {
    void add(uint32_t trace, uint32_t function, uint64_t number) {
      std::unordered_set<uint64_t>& of = numbers_[{trace, function}];
      if (of.size() < kMost) of.insert(number);
    }
    void several(uint32_t trace, uint32_t function, uint64_t number) {
      std::unordered_set<uint64_t>& of = several_[{trace, function}];
      if (of.size() < kMost) of.insert(number);
    }
    bool has(uint32_t trace, uint32_t function, uint64_t number) const {
      const auto of = numbers_.find({trace, function});
      return of != numbers_.end() && of->second.contains(number);
    }
    bool lacks(uint32_t trace, uint32_t function, uint64_t number) const {
      const auto of = numbers_.find({trace, function});
      if (of == numbers_.end() || of->second.size() == kMost) return false;
      const auto twice = several_.find({trace, function});
      return !of->second.contains(number) ||
             (twice != several_.end() && twice->second.contains(number));
    }

   private:
    static constexpr size_t kMost = 1U << 20;
    std::map<std::pair<uint32_t, uint32_t>, std::unordered_set<uint64_t>> numbers_, several_;
  };
  NodeNumbers program_nodes;

  const BatchEdges& edges() const { return edges_; }
  void set_edges(BatchEdges edges) { edges_ = std::move(edges); }
  // By the trace's index and the thread's id in it; nullptr where no operator of it has gradients.
  const Passes* of(uint32_t trace, uint32_t thread) const {
    const auto found = passes_.find({trace, thread});
    return found == passes_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::pair<uint32_t, uint32_t>, Passes> passes_;
  BatchEdges edges_;
};

// Asks for one number after another of a thread.
class NumberReader {
 public:
  // What ForwardNumbers::of() gave, which must outlive this.
  explicit NumberReader(const ForwardNumbers::Passes* passes) : passes_(passes) {}
  // `is_of(pass)`: whether the launch is of the first node's operator; asked where it matters.
  template <class IsOf>
  NumberTells tells(uint64_t number, IsOf&& is_of) {
    if (number == 0 || passes_ == nullptr) return NumberTells::kNothing;
    if (number < pass_.first || number >= next_.first) find(number);
    if (number > pass_.last) return NumberTells::kUnclear;
    if (number > pass_.first) return NumberTells::kBetween;
    return number == pass_.first && is_of(pass_) ? NumberTells::kBetween : NumberTells::kUnclear;
  }

  // The last one that begins at or before the number that was asked for; all 0 where none does.
  const ForwardNumbers::Pass& pass() const { return pass_; }
  // The one after it, if any.
  const ForwardNumbers::Pass& next() const { return next_; }

 private:
  void find(uint64_t number) {
    const auto after = std::ranges::upper_bound(*passes_, number, {}, &ForwardNumbers::Pass::first);
    pass_ = after == passes_->begin() ? ForwardNumbers::Pass{} : *(after - 1);
    next_ = after == passes_->end() ? ForwardNumbers::Pass{.first = UINT64_MAX} : *after;
  }

  const ForwardNumbers::Passes* passes_;
  ForwardNumbers::Pass pass_;  // the last one that does not begin after the number
  ForwardNumbers::Pass next_;
};

}  // namespace flopinj::reduce
