// Which sectors of a device's memory a launch has used: its ideal cache.
#pragma once
#include <cstdint>

namespace simgpu {

inline constexpr uint32_t kSectorBytes = 32;
inline constexpr uint64_t kChunkSectors = 64;
inline constexpr uint64_t kChunkBytes = kChunkSectors * kSectorBytes;

// Of one chunk of device memory, those that the launch `launch` has used.
struct SectorChunk {
  uint64_t launch;
  uint64_t read, written;  // one bit per sector
};

// A chunk for every kChunkBytes of the device's memory. Addresses outside (shared memory, host
// memory) are not DRAM and are not counted.
struct SectorMap {
  uint64_t base, bytes;
  SectorChunk* chunks;
  uint64_t launch;  // unique per launch: a chunk that names another launch is empty
};

}  // namespace simgpu
