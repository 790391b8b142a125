// When the kernels of training steps ran, of launches as they are read.
#pragma once
#include <algorithm>
#include <cstddef>

#include "passes/rows/busy_interval.h"
#include "passes/rows/launch_consumer.h"
#include "tables/step_times.h"

namespace flopinj::reduce {

// Of a piece in a step. Its launches are of one stream as a rule.
inline void add_kernels(const RowTable& rows, const LaunchPiece& piece, StepKernels& kernels) {
  KernelExtent extent;
  uint32_t device = kNoIndex;
  bool untimed = false;
  const auto give = [&] {
    if (extent.any()) kernels.ran(device, piece.step, extent);
    extent = {};
  };
  for (size_t i = 0; i < piece.size; ++i) {
    const uint64_t start_ns = piece.start_ns[i], ns = piece.duration_ns[i];
    if (ns == LaunchPiece::kNoTime || !BusyInterval::has_place(start_ns, ns)) {
      untimed = true;
      continue;
    }
    if (const uint32_t its = rows.info(piece.row[i]).device; its != device) {
      give();
      device = its;
    }
    extent.add(KernelExtent::of(start_ns, ns));
  }
  give();
  if (untimed) kernels.untimed(piece.step);
}

}  // namespace flopinj::reduce
