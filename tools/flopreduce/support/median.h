// The one median of this program.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

namespace flopinj::reduce {

// Half-way between two numbers, of which the first is no larger; integers are rounded down.
template <typename Number>
Number half_way(Number low, Number high) {
  return low + (high - low) / 2;
}

// Of an even number of values, half-way between the two in the middle. `values` is not empty, and
// is in another order afterwards.
template <typename Number>
Number median(std::vector<Number>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return half_way(*std::max_element(values.begin(), middle), *middle);
}

}  // namespace flopinj::reduce
