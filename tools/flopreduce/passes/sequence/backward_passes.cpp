#include "passes/sequence/backward_passes.h"

#include <algorithm>

namespace flopinj::reduce {

BackwardPasses::Lane* BackwardPasses::lane(uint32_t trace, uint32_t thread, uint32_t stream) {
  const std::tuple key{trace, thread, stream};
  if (lanes_.size() >= kMaxLanes && !lanes_.contains(key)) return nullptr;
  return &lanes_.try_emplace(key, Lane{.trace = trace}).first->second;
}

void BackwardPasses::begin(Lane& lane, uint64_t number) {
  lane.before = lane.highest;
  lane.highest = number;
  lane.pass = kNone;
  if (found_.size() >= kMaxPasses) return;
  lane.pass = static_cast<uint32_t>(found_.size());
  found_.push_back({.trace = lane.trace, .pass = {}});
}

void BackwardPasses::widen(uint32_t pass, uint64_t number, const Own& own) {
  Found& found = found_[pass];
  const bool fresh = found.pass.first == 0;
  found.several = found.several || (!fresh && found.thread != own.thread);
  found.thread = own.thread;
  if (fresh || number < found.pass.first) {
    found.pass.first = number;
    found.pass.first_operator = own.of;
    found.pass.first_function = own.function;
  }
  found.pass.last = std::max(found.pass.last, number);
}

ForwardNumbers BackwardPasses::take() {
  ForwardNumbers numbers;
  for (const Found& found : found_)
    if (found.pass.first != 0 && !found.several) numbers.add(found.trace, found.thread, found.pass);
  numbers.sort();
  return numbers;
}

}  // namespace flopinj::reduce
