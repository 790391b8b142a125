// Members of two objects, as tuples of references, in pairs.
#pragma once
#include <cstddef>
#include <tuple>
#include <utility>

#include "support/wide.h"

namespace flopinj::reduce {

// Calls visit(member of `to`, member of `from`) for each pair.
template <typename To, typename From, typename Visit>
void for_each_pair(const To& to, const From& from, Visit&& visit) {
  static_assert(std::tuple_size_v<To> == std::tuple_size_v<From>);
  [&]<size_t... i>(std::index_sequence<i...>) { (visit(std::get<i>(to), std::get<i>(from)), ...); }
  (std::make_index_sequence<std::tuple_size_v<To>>{});
}

// add_saturating() for each pair: false when a sum was held at the largest value.
template <typename To, typename From>
bool add_each(const To& to, const From& from) {
  bool fits = true;
  for_each_pair(to, from, [&](auto& a, const auto& b) { fits = add_saturating(a, b) && fits; });
  return fits;
}

}  // namespace flopinj::reduce
