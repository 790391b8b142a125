// What is done to range names before they are interned, so that loops do not grow the tables for
// ever. The rules are in proto/FORMAT.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flopinj {

inline constexpr uint32_t kMaxNameBytes = 1'024;  // longer names are cut

// A range name as it is interned, and what was cut out of it.
struct RangeName {
  std::string key;               // name without such fields, at most kMaxNameBytes
  uint64_t sequence_plus_1 = 0;  // autograd sequence number + 1; 0 where the name has none
};
// PyTorch's emit_nvtx form is a name and fields: `aten::mul, seq = 3, op_id = 7, sizes = [[64],
// []], input_op_ids = [(5,0), (6,0)]`, in any order, seq = -1 meaning none. seq, op_id and
// input_op_ids change with every call and are cut out. Any other name is kept as it is.
RangeName parse_range_name(std::string_view name);

// The same without allocation: `key` views `name` or the buffer.
struct RangeNameBuffer {
  char bytes[kMaxNameBytes + 1];  // one more to see whether a UTF-8 sequence goes on
};
struct RangeNameView {
  std::string_view key;
  uint64_t sequence_plus_1 = 0;
};
RangeNameView parse_range_name(std::string_view name, RangeNameBuffer& buffer) noexcept;

// Runs of decimal digits become '#', "0x" and the hexadecimal digits after it "0x#". Generalising
// twice changes nothing more.
std::string generalise(std::string_view name);

// At most `bytes` of `text`, never ending inside a UTF-8 sequence.
std::string_view cut_utf8(std::string_view text, size_t bytes) noexcept;

}  // namespace flopinj
