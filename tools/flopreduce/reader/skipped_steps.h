// What --skip-steps leaves out of a trace: the launches of its first training steps, and those of
// no step that began before the first step that counts.
#pragma once
#include <algorithm>
#include <cstdint>

namespace flopinj::reduce {

struct SkippedSteps {
  uint32_t first = 0;     // number of the first step that counts; 0: all do
  uint64_t begin_ns = 0;  // when it began, on the trace's clock; 0: not known

  bool any() const { return first != 0; }
  bool has(uint32_t step, uint64_t start_ns) const {
    return step != 0 ? step < first : start_ns < begin_ns;
  }
};

// Of one device: how many were left out, and when the last of them ended; 0: not known.
struct SkippedLaunches {
  uint64_t launches = 0, end_ns = 0;
  void add(const SkippedLaunches& o) {
    launches += o.launches;
    end_ns = std::max(end_ns, o.end_ns);
  }
};

}  // namespace flopinj::reduce
