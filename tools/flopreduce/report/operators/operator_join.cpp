#include "report/operators/operator_join.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

template <class Paths>
const typename Paths::mapped_type* entry_of(const Paths& paths, uint32_t path) {
  const auto found = paths.find(path);
  return found == paths.end() ? nullptr : &found->second;
}

// By their names: each call of them does the same.
bool are_alike(const OperatorMap& operators, uint32_t a, uint32_t b) {
  const uint32_t of_a = operators.operator_of(a), of_b = operators.operator_of(b);
  if (of_a == of_b) return true;
  if (of_a == kNoIndex || of_b == kNoIndex) return false;
  const OperatorName &first = *operators.name_of(of_a), &second = *operators.name_of(of_b);
  return first.name == second.name && first.has_sizes && second.has_sizes &&
         first.sizes == second.sizes;
}

}  // namespace

OperatorJoin::OperatorJoin(const OperatorCalls& calls, const OperatorMap& operators)
    : calls_(calls) {
  for (const auto& [key, joined] : calls.joined) {
    const uint32_t backward = OperatorCalls::backward_of(key),
                   forward = OperatorCalls::forward_of(key);
    forwards_[backward].push_back({forward, joined.launches});
    backwards_[forward].push_back({backward, joined});
  }
  for (auto& [path, shares] : forwards_) {
    std::sort(shares.begin(), shares.end());
    const uint32_t first = shares.front().first;
    if (std::ranges::any_of(
            shares, [&](const Share& share) { return !are_alike(operators, first, share.first); }))
      unlike_.insert(path);
  }
  for (auto& [path, backwards] : backwards_) std::ranges::sort(backwards, {}, &Calls::first);
}

const std::vector<OperatorJoin::Share>* OperatorJoin::forwards_of(uint32_t backward) const {
  return entry_of(forwards_, backward);
}

const std::vector<OperatorJoin::Calls>* OperatorJoin::backwards_of(uint32_t forward) const {
  return entry_of(backwards_, forward);
}

}  // namespace flopinj::reduce
