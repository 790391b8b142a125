#include "passes/rows/number_split.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

// kNoIndex where it is not known.
uint32_t path_of(const NumberSource& source, uint32_t trace, uint32_t id) {
  return id == 0 ? PathTable::kRoot : source.tables.traces[trace].paths.get(id);
}

// One call of an operator, or what runs inside of one call of a function.
bool is_of(const NumberSource& source, const ForwardNumbers::Pass& pass, uint32_t path) {
  if (path == kNoIndex || pass.several) return false;
  if (source.operators.operator_of(path) == pass.first_operator) return true;
  // Paths have higher numbers than what is around them.
  if (pass.first_function == kNoIndex) return false;
  while (path > pass.first_function) path = source.tables.paths[path].parent;
  return path == pass.first_function;
}

// Of ranges around passes; and none.
std::set<uint32_t> rules_around(const OperatorMap& operators,
                                const ForwardNumbers::Passes& passes) {
  std::set<uint32_t> rules{kNoIndex}, seen;
  for (const auto& pass : passes)
    for (uint32_t at = pass.first_operator; at != kNoIndex && seen.insert(at).second;
         at = operators.parent_of(at))
      rules.insert(operators.rule_around(at));
  return rules;
}

// A numbered launch before others.
struct Before {
  uint64_t number = 0;  // none yet
  NumberTells tells = NumberTells::kNothing;
  ForwardNumbers::Pass pass;
};

// Of launches without numbers behind one numbered launch and before another. `most`: what any of
// them multiplies.
NumberTells between(const Before& before, const Before& after, Multiplies most) {
  const bool same = before.tells == NumberTells::kBetween && before.pass.first == after.pass.first;
  const bool begins = after.tells != NumberTells::kNothing && after.number == after.pass.first;
  // What its weights are made of (spectral norm). Another model has weights itself.
  if (begins && !same && most == Multiplies::kProducts) return NumberTells::kUnclear;
  if (after.tells != NumberTells::kBetween) return NumberTells::kNothing;
  if (before.number == 0)
    return after.number > after.pass.first ? NumberTells::kUnclear : NumberTells::kNothing;
  if (!same) return NumberTells::kNothing;
  return most == Multiplies::kWeights ? NumberTells::kUnclear : NumberTells::kBetween;
}

NumberTells behind(const Before& before) {
  const bool inside = before.tells == NumberTells::kBetween && before.number < before.pass.last;
  return inside ? NumberTells::kUnclear : NumberTells::kNothing;
}

}  // namespace

void NumberSplit::add(const Cut& cut) {
  if (!cuts_.empty() && cuts_.back().tells == cut.tells && cuts_.back().settled == cut.settled)
    cuts_.back().end = cut.end;
  else
    cuts_.push_back(cut);
}

// Whether launches of the path may have run forward: where ranges decide for their phase, only if
// these are around a pass too. Optimizers that change parameters with gradients on have numbers as
// data has.
bool NumberSplit::may_run_forward(const ForwardNumbers::Passes& passes, uint32_t path) {
  const auto [entry, fresh] = around_.try_emplace(&passes);
  if (fresh) entry->second = rules_around(source_->operators, passes);
  return path == kNoIndex || entry->second.contains(source_->operators.rule_around(path));
}

// As OperatorMap::program_function_of().
uint32_t NumberSplit::function_of(uint32_t path) {
  if (path == kNoIndex) return 0;
  const auto [known, fresh] = functions_.try_emplace(path, 0);
  if (fresh) known->second = source_->operators.program_function_of(path);
  return known->second;
}

// Whether the number is that of a node which is not the function's own.
bool NumberSplit::may_lack_node(uint32_t trace, uint32_t path, uint64_t number) {
  const uint32_t function = function_of(path);
  return function != 0 && source_->numbers.program_nodes.lacks(trace, function, number);
}

bool NumberSplit::any_functions() {
  if (any_functions_) return *any_functions_;
  bool any = false;
  for (uint32_t path = PathTable::kLost + 1; path < source_->tables.paths.size() && !any; ++path)
    any = source_->operators.program_function_of(path) != 0;
  any_functions_ = any;
  return any;
}

// Of each call of a batch: whether it tells by its number that gradients are on. Functions of a
// program's own show one whatever is on: where what runs directly before and behind them has none,
// and no node is known to be theirs, gradients are off.
void NumberSplit::find_numbered(uint32_t trace, std::span<const LaunchCall> calls) {
  const bool any = any_functions();
  numbered_.assign(calls.size(), false);
  bool before = true;  // whether the last one outside of functions has a number
  size_t first = 0;    // of the calls in functions behind it
  const auto settle = [&](size_t end, bool off) {
    for (; first < end; ++first) {
      const LaunchCall& call = calls[first];
      const uint32_t function = function_of(path_of(*source_, trace, call.path));
      numbered_[first] = !off || source_->numbers.program_nodes.has(trace, function, call.sequence);
    }
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool has_number = calls[i].sequence != 0 && !calls[i].graph;
    if (any && has_number && function_of(path_of(*source_, trace, calls[i].path)) != 0) continue;
    settle(i, !before && !has_number);
    numbered_[i] = before = has_number;
    first = i + 1;
  }
  settle(calls.size(), false);
}

// Products count where no range decides for their phase, weights in any.
Multiplies NumberSplit::multiplies(uint32_t path) {
  if (path == kNoIndex) return Multiplies::kNothing;
  const auto [known, fresh] = multiplies_.try_emplace(path);
  if (fresh) {
    known->second = source_->operators.multiplies(path);
    if (known->second == Multiplies::kProducts && source_->operators.rule_around(path) != kNoIndex)
      known->second = Multiplies::kNothing;
  }
  return known->second;
}

// Where no number says anything, the launches are not looked at.
const std::vector<NumberSplit::Cut>& NumberSplit::of(uint32_t trace,
                                                     const LaunchBatchReader& batch) {
  cuts_.clear();
  const ForwardNumbers::Passes* const passes =
      source_ == nullptr ? nullptr : source_->numbers.of(trace, batch.thread());
  if (passes == nullptr) {
    cuts_.push_back({batch.size()});
    return cuts_;
  }
  NumberReader reader(passes);
  const auto numbered = [&](uint64_t number, uint32_t path, bool open) {
    Before at{number, {}, {}};
    at.tells = reader.tells(
        number, [&](const ForwardNumbers::Pass& pass) { return is_of(*source_, pass, path); });
    at.pass = reader.pass();
    if (at.tells == NumberTells::kBetween && may_lack_node(trace, path, number))
      at.tells = NumberTells::kUnclear;
    if (at.tells == NumberTells::kUnclear && !open) at.tells = NumberTells::kNothing;
    return at;
  };
  // In another batch.
  const auto beyond = [&](const BatchEdges::Numbered& launch) {
    if (launch.number == 0) return Before{};
    return numbered(launch.number, launch.path, may_run_forward(*passes, launch.path));
  };
  const auto most_of = [&](const BatchEdges::Gap& gap) {
    may_run_forward(*passes, kNoIndex);
    const bool weights = std::ranges::any_of(
        gap.rules_of_weights, [&](uint32_t rule) { return around_.at(passes).contains(rule); });
    if (weights) return Multiplies::kWeights;
    return gap.products ? Multiplies::kProducts : Multiplies::kNothing;
  };
  const BatchEdges::Ends ends = source_->numbers.edges().of(trace, batch.packet());
  Before before = ends.first != nullptr ? beyond(ends.first->before) : Before{};
  size_t end = 0;
  size_t waiting = SIZE_MAX;  // the first of the last cuts, which have no number
  Multiplies most =
      ends.first != nullptr ? most_of(*ends.first) : Multiplies::kNothing;  // of these
  const auto settle = [&](NumberTells tells) {
    for (; waiting < cuts_.size(); ++waiting)
      if (!cuts_[waiting].settled && tells != NumberTells::kNothing) cuts_[waiting].tells = tells;
    waiting = SIZE_MAX;
    most = Multiplies::kNothing;
  };
  const PatternTable& patterns = source_->tables.traces[trace].patterns;
  if (!pattern_calls_ || &pattern_calls_->patterns() != &patterns) pattern_calls_.emplace(patterns);
  const std::span<const LaunchCall> calls = batch.calls(*pattern_calls_, calls_);
  find_numbered(trace, calls);
  for (size_t i = 0; i < calls.size(); ++i) {
    const LaunchCall& call = calls[i];
    end += call.launches;
    const uint32_t path = path_of(*source_, trace, call.path);
    const bool open = !call.graph && may_run_forward(*passes, path);
    if (!numbered_[i]) {
      // A layer in a step that ran a forward pass, by a name that no optimizer's update has.
      const bool layer = open && path != kNoIndex && source_->operators.name_decides(path);
      add({end, layer ? NumberTells::kUnclear : NumberTells::kNothing, !open});
      if (open && waiting == SIZE_MAX) waiting = cuts_.size() - 1;
      if (open) most = std::max(most, multiplies(path));
      continue;
    }
    const Before now = numbered(call.sequence, path, open);
    settle(between(before, now, most));
    before = now;
    add({end, now.tells, true});
  }
  if (ends.last != nullptr && ends.last->after.number != 0)
    settle(between(before, beyond(ends.last->after), std::max(most, most_of(*ends.last))));
  else
    settle(behind(before));
  if (cuts_.empty()) cuts_.push_back({});
  return cuts_;
}

}  // namespace flopinj::reduce
