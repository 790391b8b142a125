// Fuzzed traces with right check sums, so that what is inside their packets gets read.
#pragma once
#include <cstddef>
#include <cstdint>

#include "crc32c.h"

namespace flopinj::test {

inline constexpr uint8_t kPacketTag = 0x0a;
inline constexpr uint8_t kCheckSumTag = 0x7d;
inline constexpr size_t kCheckSumBytes = 5;

// Reads a varint at `at` and moves on. False at the end of the data.
inline bool read_length(const uint8_t* data, size_t size, size_t& at, uint64_t& length) {
  length = 0;
  for (unsigned shift = 0; shift < 64 && at < size; shift += 7) {
    const uint8_t byte = data[at++];
    length |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Gives every packet that is still framed a right check sum, so that what is inside gets read.
inline void mend_check_sums(uint8_t* data, size_t size) {
  size_t at = 0;
  uint64_t length = 0;
  while (at < size && data[at] == kPacketTag) {
    ++at;
    if (!read_length(data, size, at, length) || length > size - at) return;
    if (length >= kCheckSumBytes) {
      const size_t body = static_cast<size_t>(length) - kCheckSumBytes;
      const uint32_t sum = flopinj::crc32c(data + at, body);
      data[at + body] = kCheckSumTag;
      for (unsigned i = 0; i < 4; ++i) {
        data[at + body + 1 + i] = static_cast<uint8_t>(sum >> (8 * i));
      }
    }
    at += static_cast<size_t>(length);
  }
}

}  // namespace flopinj::test
