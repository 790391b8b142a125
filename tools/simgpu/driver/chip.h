// The chips that can be modelled: what their durations and device attributes are worked out from.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace simgpu {

struct Chip {
  const char* name;
  const char* cupti_name;  // the chip whose counters CUPTI has for it
  const char* product;     // the board whose figures these are
  int compute_major, compute_minor;
  uint32_t sm_count;
  uint32_t clock_mhz;    // boost clock
  uint32_t memory_gb_s;  // DRAM bandwidth, 1e9 bytes per second
  uint32_t memory_clock_mhz, memory_bus_bits;
  uint64_t memory_bytes;
  uint32_t fp32_lanes_per_sm, fp64_lanes_per_sm;
  uint32_t tensor_gflops;  // dense, 16-bit sources, 1e9 operations per second, fused multiply-add
                           // as two
  uint32_t l2_bytes;
  uint32_t shared_per_sm, shared_per_block_optin;  // bytes
  uint32_t threads_per_sm, blocks_per_sm;
};

std::span<const Chip> chips();
const Chip* find_chip(std::string_view name);  // null when not modelled

}  // namespace simgpu
