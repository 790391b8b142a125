// The columns of a batch, read side by side without unpacking them into memory first.
#pragma once
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <protozero/data_view.hpp>
#include <protozero/varint.hpp>

namespace flopinj::reduce {

// Columns are read a word at a time: so many bytes after the last one must be readable (their
// values do not matter). PacketReader and BatchFields see to it.
inline constexpr size_t kReadAhead = 16;

// Number of varints in a packed column; nothing where one is too long or unfinished. After this
// check that many values can be taken from the column, and they are all there is.
inline std::optional<size_t> count_varints(protozero::data_view packed) {
  constexpr auto kLongest = static_cast<size_t>(protozero::max_varint_length);
  const auto* p = reinterpret_cast<const uint8_t*>(packed.data());
  const size_t size = packed.size();
  if (size == 0) return 0;
  if (p[size - 1] >= 0x80) return std::nullopt;
  size_t count = 0;
  size_t at = 0;
  // Of kLongest bytes in a row that go on, four in a row are in one block, or in the rest after it.
  unsigned four_go_on = 0;
#if defined(__x86_64__)
  constexpr size_t kBlock = sizeof(__m128i);
  constexpr size_t kMostRounds = 255;  // of a counter of one byte
  while (size - at >= kBlock) {
    const size_t end = at + kBlock * std::min((size - at) / kBlock, kMostRounds);
    __m128i ends = _mm_setzero_si128();  // in each place of the blocks, bytes that do not go on
    for (; at != end; at += kBlock) {
      const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at));
      ends = _mm_sub_epi8(ends, _mm_cmpgt_epi8(block, _mm_set1_epi8(-1)));
      const auto goes_on = static_cast<unsigned>(_mm_movemask_epi8(block));
      const unsigned two_go_on = goes_on & goes_on >> 1;
      four_go_on |= two_go_on & two_go_on >> 2;
    }
    const __m128i sums = _mm_sad_epu8(ends, _mm_setzero_si128());
    count += static_cast<size_t>(_mm_cvtsi128_si64(sums)) +
             static_cast<size_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(sums, sums)));
  }
#endif
  size_t run = 0;
  for (; at < size; ++at) {
    run = p[at] < 0x80 ? 0 : run + 1;
    count += run == 0 ? 1 : 0;
    four_go_on |= run >= 4 ? 1 : 0;
  }
  if (four_go_on == 0) return count;
  for (at = run = 0; at < size; ++at) {
    run = p[at] < 0x80 ? 0 : run + 1;
    if (run >= kLongest) return std::nullopt;
  }
  return count;
}

// One packed column of checked varints. Reading past the end gives 0.
class PackedColumn {
 public:
  PackedColumn() = default;
  explicit PackedColumn(protozero::data_view packed)
      : at_(reinterpret_cast<const uint8_t*>(packed.data())), end_(at_ + packed.size()) {}

  bool empty() const { return at_ == end_; }
  uint64_t next() { return at_ == end_ ? 0 : next_there(); }
  // For who knows that there is one more. Short values, which most are, take no branch on their
  // length: it changes from one to the next, and a wrong guess costs more than the value.
  uint64_t next_there() {
    uint32_t word = 0;
    std::memcpy(&word, at_, sizeof word);
    const uint32_t stops = ~word & 0x80808080;
    if (stops == 0) [[unlikely]]
      return next_long();
    word &= stops ^ (stops - 1);  // up to the first byte that does not go on
    at_ += (static_cast<unsigned>(std::countr_zero(stops)) >> 3) + 1;
    const uint32_t pairs = (word & 0x007F007F) | (word >> 1 & 0x3F803F80);
    return (pairs & 0x3FFF) | (pairs >> 2 & 0xFFFC000);
  }
  uint32_t next32() { return static_cast<uint32_t>(next()); }
  int64_t next_signed() { return protozero::decode_zigzag64(next()); }
  int64_t next_signed_there() { return protozero::decode_zigzag64(next_there()); }

  // For who reads on by other means: the first byte of the next number.
  const uint8_t* at() const { return at_; }
  void move_to(const uint8_t* at) { at_ = at; }

 private:
  uint64_t next_long() {
    uint64_t value = 0;
    for (unsigned shift = 0; at_ != end_; shift += 7) {
      const uint64_t byte = *at_++;
      if (shift < 64) value |= (byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }

  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
};

// A column written as runs: value, length, value, length, ... An absent column is one endless run
// of 0.
class RunColumn {
 public:
  RunColumn() = default;
  explicit RunColumn(protozero::data_view packed) : column_(packed), absent_(packed.empty()) {}

  // True when the runs' lengths add up to n.
  static bool covers(protozero::data_view packed, size_t n) {
    if (packed.empty()) return true;
    PackedColumn column(packed);
    uint64_t total = 0;
    while (!column.empty()) {
      column.next();
      if (column.empty()) return false;  // a value without its length
      const uint64_t length = column.next();
      if (length > n - total) return false;
      total += length;
    }
    return total == n;
  }

  uint64_t next() {
    const uint64_t value = peek();
    skip(1);
    return value;
  }
  // The value of the next element, and how many of them follow, at least 1 and at most `most`.
  uint64_t peek() {
    while (!absent_ && left_ == 0 && !column_.empty()) {
      value_ = column_.next();
      left_ = column_.next();
    }
    return value_;
  }
  size_t run(size_t most) {
    peek();
    return absent_ || left_ == 0 ? most : static_cast<size_t>(std::min<uint64_t>(left_, most));
  }
  void skip(size_t count) { left_ -= std::min<uint64_t>(left_, count); }

 private:
  PackedColumn column_;
  uint64_t value_ = 0;
  uint64_t left_ = 0;
  bool absent_ = true;
};

}  // namespace flopinj::reduce
