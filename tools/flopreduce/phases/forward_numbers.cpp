#include "phases/forward_numbers.h"

#include <algorithm>

namespace flopinj::reduce {

void ForwardNumbers::sort() {
  for (auto& [thread, passes] : passes_) {
    // Of two that begin together the longer one first, so that it holds the other.
    std::sort(passes.begin(), passes.end(), [](const Pass& a, const Pass& b) {
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

void NumberReader::find(uint64_t number) {
  const auto after =
      std::upper_bound(passes_->begin(), passes_->end(), number,
                       [](uint64_t n, const ForwardNumbers::Pass& p) { return n < p.first; });
  pass_ = after == passes_->begin() ? ForwardNumbers::Pass{} : *(after - 1);
  next_first_ = after == passes_->end() ? UINT64_MAX : after->first;
}

}  // namespace flopinj::reduce
