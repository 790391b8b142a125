// One device's memory: address space reserved once and handed out in pieces. A device address is a
// host address, so copies and kernels use it as it is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "ptx/sectors.h"

namespace simgpu {

class Arena {
 public:
  struct Block {
    uint64_t address, bytes;
    bool managed;  // the program was told that it may use it, too, as it may use all of it here
  };

  // Reserves address space for `bytes`, or for as much as the system grants (half, a quarter, ...).
  // Memory is committed by the system as it is touched.
  explicit Arena(uint64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Aligned to 512 bytes, and from 1 MiB on to 2 MiB; nothing when full.
  std::optional<uint64_t> allocate(uint64_t bytes, bool managed = false);
  bool free(uint64_t address);  // false unless `address` is what allocate() gave
  // The live block around the address.
  std::optional<Block> find(uint64_t address) const;
  uint64_t free_bytes() const;
  uint64_t base() const { return base_; }
  bool in_range(uint64_t address) const { return address - base_ < bytes_; }

  // The sector map over this memory, for the launch with this number.
  SectorMap sectors(uint64_t launch) const { return {base_, bytes_, chunks_, launch}; }

 private:
  mutable std::mutex mutex_;
  void* reserved_ = nullptr;
  uint64_t base_ = 0, bytes_ = 0;
  SectorChunk* chunks_ = nullptr;
  struct Used {
    uint64_t requested, reserved;
    bool managed;
  };
  std::map<uint64_t, uint64_t> free_;  // address -> bytes, both on multiples of the granule
  std::map<uint64_t, Used> used_;
  uint64_t free_bytes_ = 0;
};

}  // namespace simgpu
