// NVTX ranges as their kernels lie on the GPU: a range reaches from the start of its first kernel
// to the end of its last, on one track of kernels that do not overlap. Ranges of unlike training
// steps are apart, though they have one path.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flopinj::reduce {

class ProjectedRanges {
 public:
  struct Level {
    uint32_t name = 0;  // for the caller
    uint32_t step = 0;
    bool operator==(const Level&) const = default;
  };

  // A kernel inside of `around`, the outermost first. Calls end(ns) for each range that it is not
  // in any more, the innermost first, then begin(level, ns) for each that it is the first in.
  template <typename Begin, typename End>
  void kernel(std::span<const Level> around, uint64_t start_ns, uint64_t end_ns, Begin&& begin,
              End&& end) {
    size_t common = 0;
    while (common < std::min(open_.size(), around.size()) && open_[common].level == around[common])
      ++common;
    close(common, end);
    for (size_t i = common; i < around.size(); ++i) {
      open_.push_back({around[i], end_ns});
      begin(around[i], start_ns);
    }
    for (Open& range : open_) range.end_ns = end_ns;
  }
  // Ends all but the outermost `left`.
  template <typename End>
  void close(size_t left, End&& end) {
    for (; open_.size() > left; open_.pop_back()) end(open_.back().end_ns);
  }

 private:
  struct Open {
    Level level;
    uint64_t end_ns = 0;
  };
  std::vector<Open> open_;
};

}  // namespace flopinj::reduce
