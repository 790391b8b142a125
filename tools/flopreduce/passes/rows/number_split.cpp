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

// Of launches without numbers behind one numbered launch and before another. `weights`: some have.
NumberTells between(const Before& before, const Before& after, bool weights) {
  if (after.tells != NumberTells::kBetween) return NumberTells::kNothing;
  if (before.number == 0)
    return after.number > after.pass.first ? NumberTells::kUnclear : NumberTells::kNothing;
  const bool same = before.tells == NumberTells::kBetween && before.pass.first == after.pass.first;
  if (!same) return NumberTells::kNothing;
  return weights ? NumberTells::kUnclear : NumberTells::kBetween;
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

bool NumberSplit::has_weights(uint32_t path) {
  if (path == kNoIndex) return false;
  const auto [known, fresh] = weights_.try_emplace(path, false);
  if (fresh) known->second = source_->operators.has_weights(path);
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
    if (at.tells == NumberTells::kUnclear && !open) at.tells = NumberTells::kNothing;
    return at;
  };
  // In another batch.
  const auto beyond = [&](const BatchEdges::Numbered& launch) {
    if (launch.number == 0) return Before{};
    return numbered(launch.number, launch.path, may_run_forward(*passes, launch.path));
  };
  const auto may_have_weights = [&](const BatchEdges::Gap& gap) {
    may_run_forward(*passes, kNoIndex);
    return std::ranges::any_of(gap.rules_of_weights,
                               [&](uint32_t rule) { return around_.at(passes).contains(rule); });
  };
  const BatchEdges::Ends ends = source_->numbers.edges().of(trace, batch.packet());
  Before before = ends.first != nullptr ? beyond(ends.first->before) : Before{};
  size_t end = 0;
  size_t waiting = SIZE_MAX;  // the first of the last cuts, which have no number
  // Among the operands of these.
  bool weights = ends.first != nullptr && may_have_weights(*ends.first);
  const auto settle = [&](NumberTells tells) {
    for (; waiting < cuts_.size(); ++waiting)
      if (!cuts_[waiting].settled && tells != NumberTells::kNothing) cuts_[waiting].tells = tells;
    waiting = SIZE_MAX;
    weights = false;
  };
  const PatternTable& patterns = source_->tables.traces[trace].patterns;
  for (const LaunchCall& call : batch.calls(patterns, calls_)) {
    end += call.launches;
    const uint32_t path = path_of(*source_, trace, call.path);
    const bool open = !call.graph && may_run_forward(*passes, path);
    if (call.graph || call.sequence == 0) {
      // A layer in a step that ran a forward pass, by a name that no optimizer's update has.
      const bool layer = open && path != kNoIndex && source_->operators.name_decides(path);
      add({end, layer ? NumberTells::kUnclear : NumberTells::kNothing, !open});
      if (open && waiting == SIZE_MAX) waiting = cuts_.size() - 1;
      weights = weights || (open && has_weights(path));
      continue;
    }
    const Before now = numbered(call.sequence, path, open);
    settle(between(before, now, weights));
    before = now;
    add({end, now.tells, true});
  }
  if (ends.last != nullptr && ends.last->after.number != 0)
    settle(between(before, beyond(ends.last->after), weights || may_have_weights(*ends.last)));
  else
    settle(behind(before));
  if (cuts_.empty()) cuts_.push_back({});
  return cuts_;
}

}  // namespace flopinj::reduce
