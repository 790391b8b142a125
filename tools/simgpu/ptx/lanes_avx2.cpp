#include <cstdint>
#include <type_traits>

#include "ptx/lanes.h"
#include "ptx/machine.h"
#include "ptx/narrow.h"

namespace simgpu::ptx {
#include "ptx/lanes.inc"

void add_rows_avx2(Rows& rows) { fill(rows); }

}  // namespace simgpu::ptx
