// Tells an image of ours from other bytes, and a damaged one from a whole one. Not cryptographic.
#pragma once
#include <cstdint>
#include <span>

namespace simgpu::cupti {

// FNV-1a, 64 bits.
constexpr uint64_t checksum(std::span<const uint8_t> bytes) {
  uint64_t hash = 14695981039346656037U;
  for (const uint8_t byte : bytes) hash = (hash ^ byte) * 1099511628211U;
  return hash;
}

}  // namespace simgpu::cupti
