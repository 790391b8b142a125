// The loops over lanes for this processor.
#include "ptx/lanes.h"

namespace simgpu::ptx {
namespace {

struct Best {
  Rows rows;
  AddressLoop addresses;

  Best() {
#ifdef SIMGPU_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      addresses = add_rows_avx2(rows);
      return;
    }
#endif
    addresses = add_rows(rows);
  }
};
const Best& best() {
  static const auto* const made = new Best;
  return *made;
}

}  // namespace

const Rows& rows() { return best().rows; }
AddressLoop address_loop() { return best().addresses; }

}  // namespace simgpu::ptx
