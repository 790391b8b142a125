#include "passes/sequence/backward_passes.h"

namespace flopinj::reduce {

void BackwardPasses::begin(Lane& lane, uint64_t number) {
  lane.before = lane.highest;
  lane.highest = number;
  lane.pass = kNone;
  if (found_.size() >= kMaxPasses) return;
  lane.pass = static_cast<uint32_t>(found_.size());
  found_.push_back({.trace = lane.trace});
}

void BackwardPasses::begins(Found& found, uint64_t number, const Own& own) {
  found.several = found.several || (found.pass.last != 0 && found.thread != own.thread);
  found.thread = own.thread;
  if (number < found.pass.first)
    found.pass = {number, found.pass.last, own.of, own.function, own.several};
}

ForwardNumbers BackwardPasses::take() {
  ForwardNumbers numbers;
  for (const Found& found : found_)
    if (found.pass.last != 0 && !found.several) numbers.add(found.trace, found.thread, found.pass);
  numbers.sort();
  return numbers;
}

}  // namespace flopinj::reduce
