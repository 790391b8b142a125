// Adds to a counter that has one writer: no locked instruction on the launch path.
#pragma once
#include <atomic>
#include <cstdint>

namespace flopinj {

inline void bump(std::atomic<uint64_t>& counter, uint64_t by = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace flopinj
