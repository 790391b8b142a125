#include "ptx/lanes.h"

#include <cstdint>
#include <type_traits>

#include "ptx/machine.h"
#include "ptx/narrow.h"

namespace simgpu::ptx {
#include "ptx/lanes.inc"

AddressLoop add_rows(Rows& rows) { return fill(rows); }

}  // namespace simgpu::ptx
