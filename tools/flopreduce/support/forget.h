// Lists that are not needed any more.
#pragma once
#include <vector>

namespace flopinj::reduce {

// Frees its memory, which assigning {} keeps.
template <class T>
void forget(std::vector<T>& all) {
  std::vector<T>().swap(all);
}

}  // namespace flopinj::reduce
