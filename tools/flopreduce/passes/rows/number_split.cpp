#include "passes/rows/number_split.h"

#include "analytic/operator_flop.h"

namespace flopinj::reduce {
namespace {

// kNoIndex where it is not known.
uint32_t path_of(const NumberSource& source, uint32_t trace, uint32_t id) {
  return id == 0 ? PathTable::kRoot : source.tables.traces[trace].paths.get(id);
}

// One call of an operator, or what runs inside of one call of a function.
bool is_of(const NumberSource& source, uint32_t trace, const ForwardNumbers::Pass& pass,
           uint32_t path_id) {
  uint32_t path = path_of(source, trace, path_id);
  if (path == kNoIndex || pass.several) return false;
  if (source.operators.operator_of(path) == pass.first_operator) return true;
  // Paths have higher numbers than what is around them.
  if (pass.first_function == kNoIndex) return false;
  while (path > pass.first_function) path = source.tables.paths[path].parent;
  return path == pass.first_function;
}

// Whether a launch that is in no pass may be of the last one or the next: where ranges decide for
// its phase, only if these are around the pass too. Optimizers that change parameters with
// gradients on have numbers as data has.
bool may_be_of_pass(const NumberSource& source, uint32_t trace, const NumberReader& reader,
                    uint32_t path_id) {
  const uint32_t path = path_of(source, trace, path_id);
  const uint32_t around = path == kNoIndex ? kNoIndex : source.operators.rule_around(path);
  const auto is_around = [&](const ForwardNumbers::Pass& pass) {
    return pass.first_operator != kNoIndex &&
           source.operators.rule_around(pass.first_operator) == around;
  };
  return around == kNoIndex || is_around(reader.pass()) || is_around(reader.next());
}

// Whether the launch is of a layer, by a name that no optimizer's update has, inside of a step that
// ran a forward pass.
bool is_layer_in_step(const NumberSource& source, uint32_t trace,
                      const ForwardNumbers::Passes& passes, uint32_t path_id) {
  const uint32_t path = path_of(source, trace, path_id);
  if (path == kNoIndex || passes.empty() || !source.operators.name_decides(path)) return false;
  const auto is_around = [&](const ForwardNumbers::Pass& pass) {
    return pass.first_operator != kNoIndex &&
           source.operators.rule_around(pass.first_operator) == source.operators.rule_around(path);
  };
  return is_around(passes.front()) || is_around(passes.back());
}

// The last numbered launch of a batch.
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
  if (!cuts_.empty() && cuts_.back().tells == cut.tells && cuts_.back().numbered == cut.numbered)
    cuts_.back().end = cut.end;
  else
    cuts_.push_back(cut);
}

// Whether a product that the path is inside of has an operand that may be weights.
bool NumberSplit::has_weights(uint32_t trace, uint32_t path_id) {
  uint32_t path = path_of(*source_, trace, path_id);
  if (path == kNoIndex) return false;
  const auto [known, fresh] = weights_.try_emplace(path, false);
  if (!fresh) return known->second;
  for (; path != kNoIndex && !known->second; path = source_->operators.parent_of(path)) {
    const OperatorName* const name = source_->operators.name_of(path);
    if (name == nullptr) break;
    const auto gradients = operator_gradients(*name);
    known->second = gradients && gradients->by_input > 0;
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
  Before before;
  size_t end = 0;
  size_t waiting = SIZE_MAX;  // the first of the last cuts, which have no number
  bool weights = false;       // among the operands of these
  const auto settle = [&](NumberTells tells) {
    for (; waiting < cuts_.size(); ++waiting)
      if (!cuts_[waiting].numbered && tells != NumberTells::kNothing) cuts_[waiting].tells = tells;
    waiting = SIZE_MAX;
    weights = false;
  };
  const PatternTable& patterns = source_->tables.traces[trace].patterns;
  for (const LaunchCall& call : batch.calls(patterns, calls_)) {
    end += call.launches;
    if (call.graph || call.sequence == 0) {
      const bool layer = !call.graph && is_layer_in_step(*source_, trace, *passes, call.path);
      add({end, layer ? NumberTells::kUnclear : NumberTells::kNothing, call.graph});
      if (!call.graph && waiting == SIZE_MAX) waiting = cuts_.size() - 1;
      weights = weights || (!call.graph && has_weights(trace, call.path));
      continue;
    }
    Before now{call.sequence, {}, {}};
    now.tells = reader.tells(call.sequence, [&](const ForwardNumbers::Pass& pass) {
      return is_of(*source_, trace, pass, call.path);
    });
    now.pass = reader.pass();
    if (now.tells == NumberTells::kUnclear && !may_be_of_pass(*source_, trace, reader, call.path))
      now.tells = NumberTells::kNothing;
    if (waiting != SIZE_MAX) settle(between(before, now, weights));
    before = now;
    add({end, now.tells, true});
  }
  if (waiting != SIZE_MAX) settle(behind(before));
  if (cuts_.empty()) cuts_.push_back({});
  return cuts_;
}

}  // namespace flopinj::reduce
