// Handles of kernels as calls of the driver give them.
#pragma once
#include <cuda.h>

#include <cstddef>

namespace flopinj {

// The driver's, or the program's: valid until the EXIT callback of the call returns.
struct GivenHandles {
  const CUfunction* functions = nullptr;
  const CUkernel* kernels = nullptr;
  size_t count = 0;  // of the one that is not null
  // The driver may have them from the program, as parameters of a graph's node: they are new only
  // where they are not known.
  bool repeated = false;
};

}  // namespace flopinj
