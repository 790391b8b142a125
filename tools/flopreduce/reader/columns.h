// The columns of a batch, read side by side without unpacking them into memory first.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <protozero/data_view.hpp>
#include <protozero/varint.hpp>
#include <string_view>

namespace flopinj::reduce {

// Number of varints in a packed column; nothing where one is too long or unfinished. After this
// check Column::next() cannot leave the column.
inline std::optional<size_t> count_varints(protozero::data_view packed) {
  size_t count = 0;
  size_t run = 0;
  for (const char c : std::string_view(packed.data(), packed.size())) {
    ++run;
    if (static_cast<uint8_t>(c) < 0x80) {
      ++count;
      run = 0;
    } else if (run >= static_cast<size_t>(protozero::max_varint_length)) {
      return std::nullopt;
    }
  }
  if (run != 0) return std::nullopt;
  return count;
}

// One packed column of checked varints. Reading past the end gives 0.
class Column {
 public:
  Column() = default;
  explicit Column(protozero::data_view packed)
      : at_(reinterpret_cast<const uint8_t*>(packed.data())), end_(at_ + packed.size()) {}

  bool empty() const { return at_ == end_; }
  uint64_t next() {
    if (at_ == end_) return 0;
    uint64_t byte = *at_++;
    if (byte < 0x80) return byte;
    uint64_t value = byte & 0x7F;
    for (unsigned shift = 7; at_ != end_; shift += 7) {
      byte = *at_++;
      if (shift < 64) value |= (byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  uint32_t next32() { return static_cast<uint32_t>(next()); }
  int64_t next_signed() { return protozero::decode_zigzag64(next()); }

 private:
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
    Column column(packed);
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
    if (absent_) return 0;
    while (left_ == 0 && !column_.empty()) {
      value_ = column_.next();
      left_ = column_.next();
    }
    if (left_ > 0) --left_;
    return value_;
  }

 private:
  Column column_;
  uint64_t value_ = 0;
  uint64_t left_ = 0;
  bool absent_ = true;
};

}  // namespace flopinj::reduce
