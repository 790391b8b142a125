// The mixing step of our tables in memory: multiplication by 2^64 over the golden ratio, and
// folding. What is written to a trace has hashes of its own (fingerprint.h, signature_table.h).
#pragma once
#include <cstdint>

namespace flopinj {

constexpr uint64_t hash_mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E37'79B9'7F4A'7C15U;
  return hash ^ (hash >> 32);
}

constexpr uint64_t hash_pair(uint32_t high, uint32_t low) { return uint64_t{high} << 32 | low; }

}  // namespace flopinj
