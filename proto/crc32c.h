// CRC-32C (Castagnoli), the check sum of every trace packet. Polynomial 0x1EDC6F41, reflected,
// initial value and final XOR 0xFFFFFFFF: RFC 3720, appendix B.4. Check value of "123456789":
// 0xE3069283.
//
// x86-64 processors since 2008 have an instruction for it (SSE4.2); whether this one has it is
// asked once, at run time.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace flopinj {
namespace crc32c_detail {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78U : 0U);
    t[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t k = 1; k < 8; ++k) t[k][i] = (t[k - 1][i] >> 8) ^ t[0][t[k - 1][i] & 0xFF];
  return t;
}
inline constexpr Tables kTables = make_tables();

// Both take and give the register, which is the check sum inverted.
inline uint32_t by_table(const unsigned char* p, size_t size, uint32_t c) {
  const auto& t = kTables;
  for (; size >= 8; size -= 8, p += 8) {
    uint32_t lo = 0;
    uint32_t hi = 0;
    std::memcpy(&lo, p, 4);  // all platforms of this project are little-endian
    std::memcpy(&hi, p + 4, 4);
    lo ^= c;
    c = t[7][lo & 0xFF] ^ t[6][(lo >> 8) & 0xFF] ^ t[5][(lo >> 16) & 0xFF] ^ t[4][lo >> 24] ^
        t[3][hi & 0xFF] ^ t[2][(hi >> 8) & 0xFF] ^ t[1][(hi >> 16) & 0xFF] ^ t[0][hi >> 24];
  }
  for (; size > 0; --size, ++p) c = (c >> 8) ^ t[0][(c ^ *p) & 0xFF];
  return c;
}

// What kStride zero bytes make of a register, one table per byte of it: joins sums of neighbouring
// stretches.
inline constexpr size_t kStride = 1024;
using Shift = std::array<std::array<uint32_t, 256>, 4>;
constexpr uint32_t after_zeros(uint32_t c, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) c = (c >> 8) ^ kTables[0][c & 0xFF];
  return c;
}
constexpr Shift make_shift() {
  std::array<uint32_t, 32> bit{};  // linear: the rest follows from single bits
  for (size_t i = 0; i < 32; ++i) bit[i] = after_zeros(1U << i, kStride);
  Shift s{};
  for (size_t byte = 0; byte < 4; ++byte)
    for (uint32_t value = 0; value < 256; ++value)
      for (size_t i = 0; i < 8; ++i)
        if ((value >> i & 1U) != 0) s[byte][value] ^= bit[8 * byte + i];
  return s;
}
inline uint32_t shifted(uint32_t c) {
  static constexpr Shift kShift = make_shift();
  return kShift[0][c & 0xFF] ^ kShift[1][(c >> 8) & 0xFF] ^ kShift[2][(c >> 16) & 0xFF] ^
         kShift[3][c >> 24];
}

inline uint64_t word_at(const unsigned char* p) {
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof word);
  return word;
}

#if defined(__x86_64__)
// The instruction takes three cycles and a new one can start in each: three stretches side by side.
__attribute__((target("sse4.2"))) inline uint32_t by_instruction(const unsigned char* p,
                                                                 size_t size, uint32_t c) {
  for (; size >= 3 * kStride; size -= 3 * kStride, p += 3 * kStride) {
    uint64_t a = c;
    uint64_t b = 0;
    uint64_t d = 0;
    for (size_t i = 0; i < kStride; i += 8) {
      a = __builtin_ia32_crc32di(a, word_at(p + i));
      b = __builtin_ia32_crc32di(b, word_at(p + kStride + i));
      d = __builtin_ia32_crc32di(d, word_at(p + 2 * kStride + i));
    }
    c = shifted(shifted(static_cast<uint32_t>(a)) ^ static_cast<uint32_t>(b)) ^
        static_cast<uint32_t>(d);
  }
  for (; size >= 8; size -= 8, p += 8)
    c = static_cast<uint32_t>(__builtin_ia32_crc32di(c, word_at(p)));
  for (; size > 0; --size, ++p) c = __builtin_ia32_crc32qi(c, *p);
  return c;
}

inline bool has_instruction() { return __builtin_cpu_supports("sse4.2") != 0; }
#endif

}  // namespace crc32c_detail

// CRC of `size` bytes. To continue over a second piece, pass the first piece's result as `crc`.
inline uint32_t crc32c(const void* data, size_t size, uint32_t crc = 0) {
  const auto* p = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  if (crc32c_detail::has_instruction()) return ~crc32c_detail::by_instruction(p, size, ~crc);
#endif
  return ~crc32c_detail::by_table(p, size, ~crc);
}

}  // namespace flopinj
