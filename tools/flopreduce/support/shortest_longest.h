// The shortest and the longest time of launches, as far as a trace says both.
#pragma once
#include <algorithm>
#include <cstdint>

namespace flopinj::reduce {

struct ShortestLongest {
  uint64_t shortest_ns = UINT64_MAX, longest_ns = 0;
  bool known = true;  // false: some launches are not in it

  bool any() const { return known && shortest_ns <= longest_ns; }
  void add(const ShortestLongest& o) {
    shortest_ns = std::min(shortest_ns, o.shortest_ns);
    longest_ns = std::max(longest_ns, o.longest_ns);
    known = known && o.known;
  }
  static ShortestLongest of_one(uint64_t ns) { return {ns, ns}; }

  // In a tally they are distances from the mean, plus 1; 0 where they are not known.
  static ShortestLongest of_tally(uint64_t timed, uint64_t sum_ns, uint64_t below, uint64_t above) {
    if (timed == 0) return {};
    const uint64_t mean = sum_ns / timed;
    if (timed == 1) return of_one(mean);
    if (below == 0 || above == 0 || below - 1 > mean || above - 1 > sum_ns - mean)
      return {.known = false};
    return {mean - (below - 1), mean + (above - 1)};
  }
  uint64_t below_mean(uint64_t mean) const {
    return any() && shortest_ns <= mean ? mean - shortest_ns + 1 : 0;
  }
  uint64_t above_mean(uint64_t mean) const {
    return any() && longest_ns >= mean ? longest_ns - mean + 1 : 0;
  }
};

}  // namespace flopinj::reduce
