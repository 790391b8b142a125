// What is done to range names before they are interned, so that loops do not grow the tables for
// ever. The rules are in proto/FORMAT.md.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flopinj {

// Of a name in the trace; longer ones are cut. A fused optimizer's has the sizes of hundreds of
// tensors: four lists of 400 are 25,000 bytes.
inline constexpr uint32_t kMaxNameBytes = 32'768;
// Of a name as the program gives it: what is beyond is not read. With fields that are cut out, a
// name may be longer than its key.
inline constexpr uint32_t kMaxScannedBytes = 2 * kMaxNameBytes;

// A range name as it is interned, and what was cut out of it.
struct RangeName {
  std::string key;               // name without such fields, at most kMaxScannedBytes
  uint64_t sequence_plus_1 = 0;  // autograd sequence number + 1; 0 where the name has none
};
// PyTorch's emit_nvtx form is a name and fields: `aten::mul, seq = 3, op_id = 7, sizes = [[64],
// []], input_op_ids = [(5,0), (6,0)]`, in any order, seq = -1 meaning none. seq, op_id and
// input_op_ids change with every call and are cut out. Any other name is kept as it is.
RangeName parse_range_name(std::string_view name);

// The same into a key whose memory is used again; the sequence number + 1.
uint64_t parse_range_name(std::string_view name, std::string& key);

// Whether `key` is the range of autograd's engine around a node:
// `autograd::engine::evaluate_function: AddmmBackward0`. PyTorch gives it no sequence number. What
// runs beside the node belongs to it all the same (the sum of a bias gradient, the sum of gradients
// that meet), so it takes the node's.
bool evaluates_node(std::string_view key) noexcept;
// Whether `key` is the node that the range around it evaluates.
bool is_node_of(std::string_view key, std::string_view evaluating) noexcept;

// Marks the key of an operator that has a sequence number of its own inside of an autograd node:
// "aten::mul, seq = #, sizes = [[64]]". PyTorch gives operators a number only while gradients are
// on, and runs what a node itself consists of with gradients off; so the number shows that the
// operator runs again (checkpointing), or that the gradient is to be differentiated again.
void mark_own_number(std::string& key);
// Whether `key`, marked or not, is of a range called `name`, itself a key.
bool is_range_name(std::string_view key, std::string_view name) noexcept;

// Runs of decimal digits become '#', "0x" and the hexadecimal digits after it "0x#". Generalising
// twice changes nothing more.
std::string generalise(std::string_view name);

// At most `bytes` of `text`, never ending inside a UTF-8 sequence.
std::string_view cut_utf8(std::string_view text, size_t bytes) noexcept;

}  // namespace flopinj
