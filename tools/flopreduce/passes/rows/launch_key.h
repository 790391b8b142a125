// What launches of one recording have in common that are added up, by the recording's own ids.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>

#include "reader/number_tells.h"

namespace flopinj::reduce {

// In order by thread, stream, range path, signature, windowed, in a step, and number_tells. Packed,
// because it is compared once for each launch.
class LaunchKey {
 public:
  struct Place {
    uint32_t thread = 0, stream = 0, range_path = 0, signature = 0;
  };
  LaunchKey(const Place& p, NumberTells tells, bool windowed = false, bool in_step = false)
      : thread_stream_(uint64_t{p.thread} << 32 | p.stream),
        path_signature_(uint64_t{p.range_path} << 32 | p.signature),
        kind_(uint64_t{windowed} << 9 | uint64_t{in_step} << 8 | static_cast<uint64_t>(tells)) {}

  uint32_t thread() const { return static_cast<uint32_t>(thread_stream_ >> 32); }
  uint32_t stream() const { return static_cast<uint32_t>(thread_stream_); }
  uint32_t range_path() const { return static_cast<uint32_t>(path_signature_ >> 32); }
  uint32_t signature() const { return static_cast<uint32_t>(path_signature_); }
  bool windowed() const { return (kind_ >> 9 & 1) != 0; }
  bool in_step() const { return (kind_ >> 8 & 1) != 0; }
  NumberTells number_tells() const { return static_cast<NumberTells>(kind_ & 0xFF); }

  auto operator<=>(const LaunchKey&) const = default;
  struct Hash {
    size_t operator()(const LaunchKey& key) const {
      constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;
      const uint64_t hash = ((key.thread_stream_ ^ key.kind_ << 56) * kPrime) ^ key.path_signature_;
      return static_cast<size_t>((hash ^ hash >> 32) * kPrime >> 8);
    }
  };

 private:
  uint64_t thread_stream_, path_signature_, kind_;
};

}  // namespace flopinj::reduce
