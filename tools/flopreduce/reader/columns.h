// The columns of a batch, read side by side without unpacking them into memory first.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <protozero/data_view.hpp>
#include <protozero/varint.hpp>

namespace flopinj::reduce {

// Columns are read a word at a time: so many bytes after the last one must be readable (their values
// do not matter). PacketReader and read_packed() see to it.
inline constexpr size_t kReadAhead = 16;

// Number of varints in a packed column; nothing where one is too long or unfinished. After this
// check that many values can be taken from the column, and they are all there is.
inline std::optional<size_t> count_varints(protozero::data_view packed) {
  constexpr auto kLongest = static_cast<size_t>(protozero::max_varint_length);
  constexpr uint64_t kGoesOn = 0x8080808080808080;
  const auto* p = reinterpret_cast<const uint8_t*>(packed.data());
  const size_t size = packed.size();
  if (size == 0) return 0;
  if (p[size - 1] >= 0x80) return std::nullopt;
  size_t count = 0;
  size_t at = 0;
  bool long_ones = false;  // a varint of more than kLongest bytes fills a word wherever it starts
  for (; at + 8 <= size; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, p + at, sizeof word);
    const uint64_t goes_on = word & kGoesOn;
    count += 8 - static_cast<size_t>((goes_on >> 7) * 0x0101010101010101 >> 56);  // bits set
    // Of kLongest + 1 bytes in a row, four at an end of a word go on at least.
    long_ones |= (goes_on & 0x80808080) == 0x80808080 || (goes_on >> 32) == 0x80808080;
  }
  for (; at < size; ++at) count += p[at] < 0x80 ? 1 : 0;
  if (!long_ones) return count;
  size_t run = 0;
  for (at = 0; at < size; ++at) {
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
    uint64_t word = 0;
    std::memcpy(&word, at_, sizeof word);
    const uint64_t stops = ~word & 0x80808080;
    if (stops == 0) [[unlikely]]
      return next_long();
    word &= stops ^ (stops - 1);  // up to the first byte that does not go on
    at_ += (static_cast<unsigned>(std::countr_zero(stops)) >> 3) + 1;
    return (word & 0x7F) | (word >> 1 & 0x3F80) | (word >> 2 & 0x1FC000) | (word >> 3 & 0xFE00000);
  }
  uint32_t next32() { return static_cast<uint32_t>(next()); }
  int64_t next_signed() { return protozero::decode_zigzag64(next()); }
  int64_t next_signed_there() { return protozero::decode_zigzag64(next_there()); }

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
