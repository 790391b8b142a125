#include "ptx/lanes.h"

#include <cstdint>
#include <type_traits>

#include "ptx/machine.h"
#include "ptx/narrow.h"

namespace simgpu::ptx {
#include "ptx/lanes.inc"

void add_rows(Rows& rows) { fill(rows); }

const Rows& rows() {
  static const Rows* const made = [] {
    auto* const all = new Rows;
#ifdef SIMGPU_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      add_rows_avx2(*all);
      return all;
    }
#endif
    add_rows(*all);
    return all;
  }();
  return *made;
}

}  // namespace simgpu::ptx
