// How long a kernel or a copy takes on the modelled chip. A model, not a measurement:
// deterministic, documented here and in README.md, the same for the same counts.
//
//   kernel = 1500 ns + max(arithmetic, memory)
//     arithmetic: the sum over kinds of instructions / (lanes of that kind x SMs x clock),
//                 tensor operations at the chip's dense 16-bit rate (tf32 at half of it, fp8 and
//                 int8 at twice, fp64 at the fp64 lanes' rate)
//     memory:     (sectors read + sectors written) / DRAM bandwidth
//   copy   = 1000 ns + bytes / rate: half the DRAM bandwidth within a device, else 55 GB/s, as
//            PCIe 5.0 x16 has it (63 GB/s each way by its standard, less the headers of packets)
#pragma once
#include <simgpu/counts.h>

#include <cstdint>

#include "driver/chip.h"

namespace simgpu {

uint64_t kernel_duration_ns(const Chip& chip, const Counts& counts);
uint64_t copy_duration_ns(const Chip& chip, uint64_t bytes, bool within_device);
inline uint64_t cycles(const Chip& chip, uint64_t duration_ns) {
  return duration_ns * chip.clock_mhz / 1000;
}

}  // namespace simgpu
