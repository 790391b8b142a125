#include <collector/identity/sass.h>

#include <cstring>
#include <limits>

namespace flopinj {
namespace {

constexpr size_t kInstructionBytes = 16;
constexpr uint32_t kZeroRegister = 255;  // RZ
constexpr uint32_t kSetMaxRegisters = 0x1c8, kSetMaxRegistersSince = 90;

enum class Kind : uint8_t {
  kNotCounted,
  kSum,        // second operand at 32
  kDoubleSum,  // second operand at 64 where it is a register
  kPlain,      // nothing of it is less than all
  kMultiplyAdd,
  kDoubleMultiplyAdd,
  kHalfMultiplyAdd,
};

struct Encoding {
  Kind kind = Kind::kNotCounted;
  SassOperation operation{};
};
using Encodings = std::array<Encoding, 512>;  // by operation number

constexpr Encodings encodings(bool half_on_tensor_pipe, bool pairs, bool uniform) {
  using enum SassOperation;
  Encodings table{};
  table[0x020] = {Kind::kPlain, kFmul};
  table[0x021] = {Kind::kSum, kFadd};          // FHADD too
  table[0x023] = {Kind::kMultiplyAdd, kFfma};  // FHFMA too
  table[0x028] = {Kind::kPlain, kDmul};
  table[0x029] = {Kind::kDoubleSum, kDadd};
  table[0x02b] = {Kind::kDoubleMultiplyAdd, kDfma};
  table[0x030] = {Kind::kSum, kHadd};
  table[0x031] = {Kind::kHalfMultiplyAdd, kHfma};
  table[0x032] = {Kind::kPlain, kHmul};
  if (half_on_tensor_pipe) table[0x035] = {Kind::kHalfMultiplyAdd, kHfma};  // HFMA2.MMA
  if (pairs) {
    table[0x049] = {Kind::kPlain, kFfma2};
    table[0x04a] = {Kind::kPlain, kFmul2};
    table[0x04b] = {Kind::kPlain, kFadd2};
  }
  // One value for a warp. That the metrics leave these out is not established, so they are taken to
  // be counted.
  if (uniform) {
    table[0x054] = {Kind::kPlain, kFadd};  // UFADD
    table[0x055] = {Kind::kPlain, kFfma};  // UFFMA
    table[0x056] = {Kind::kPlain, kFmul};  // UFMUL
  }
  return table;
}

// Null where the encoding is not known.
const Encodings* encodings_of(uint32_t capability) {
  static constexpr Encodings kTuring = encodings(false, false, false);  // 7.5
  static constexpr Encodings kAmpere = encodings(true, false, false);   // 8.0 to 9.0
  static constexpr Encodings kPairs = encodings(false, true, true);     // 10.0 and 10.3
  static constexpr Encodings kBlackwell = encodings(false, false, true);
  if (capability < 75 || capability > 121) return nullptr;
  if (capability < 80) return &kTuring;
  if (capability <= 90) return &kAmpere;
  return capability <= 103 ? &kPairs : &kBlackwell;
}

struct Instruction {
  uint64_t low = 0, high = 0;

  uint32_t form() const { return low >> 9 & 7; }
  bool a_is_zero() const { return (low >> 24 & 0xff) == kZeroRegister; }
  bool a_is_negated() const { return (high >> 8 & 1) != 0; }
  bool at_32_is_zero() const { return form() == 1 && (low >> 32 & 0xff) == kZeroRegister; }
  bool at_32_is_negated() const { return (low >> 63 & 1) != 0; }
  bool at_64_is_zero() const { return (high & 0xff) == kZeroRegister; }
  bool at_64_is_negated() const { return (high >> 11 & 1) != 0; }
  bool half_at_64_is_negated() const { return (high >> 20 & 1) != 0; }
  uint32_t immediate() const { return static_cast<uint32_t>(low >> 32); }

  // Of multiply-adds: forms 2, 3 and 7 have the second factor at 64, others the summand.
  bool factor_at_64() const { return form() == 2 || form() == 3 || form() == 7; }
  bool factor_is_zero() const { return factor_at_64() ? at_64_is_zero() : at_32_is_zero(); }
};

// 1 or -1, as the operation's immediate has it.
bool is_one(Kind kind, const Instruction& i) {
  constexpr uint32_t kSigns = 0x8000'8000, kSign = 0x8000'0000;
  if (i.form() != 4) return false;
  if (kind == Kind::kMultiplyAdd) return (i.immediate() & ~kSign) == 0x3f80'0000;
  if (kind == Kind::kDoubleMultiplyAdd) return (i.immediate() & ~kSign) == 0x3ff0'0000;
  const bool bf16 = (i.high >> 21 & 1) != 0;
  return (i.immediate() & ~kSigns) == (bf16 ? 0x3f80'3f80 : 0x3c00'3c00);
}

uint32_t& of_sum(InstructionCounts& counts, const Instruction& i, bool second_is_minus_zero) {
  return (i.a_is_zero() && i.a_is_negated()) || second_is_minus_zero ? counts.none : counts.all;
}

uint32_t& of_multiply_add(InstructionCounts& counts, Kind kind, const Instruction& i) {
  if (i.a_is_zero() && i.factor_is_zero()) return counts.none;
  const bool negated =
      kind == Kind::kHalfMultiplyAdd ? i.half_at_64_is_negated() : i.at_64_is_negated();
  if (!i.factor_at_64() && i.at_64_is_zero() && negated) return counts.one;
  return is_one(kind, i) ? counts.one : counts.all;
}

uint32_t& place_of(InstructionCounts& counts, Kind kind, const Instruction& i) {
  switch (kind) {
    case Kind::kSum:
      return of_sum(counts, i, i.at_32_is_zero() && i.at_32_is_negated());
    case Kind::kDoubleSum:
      return of_sum(counts, i, i.form() == 1 && i.at_64_is_zero() && i.at_64_is_negated());
    case Kind::kMultiplyAdd:
    case Kind::kDoubleMultiplyAdd:
    case Kind::kHalfMultiplyAdd:
      return of_multiply_add(counts, kind, i);
    default:
      return counts.all;
  }
}

void add_held(uint32_t& to, uint32_t more) {
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  to = to > kMost - more ? kMost : to + more;
}

}  // namespace

void InstructionMix::add(const InstructionMix& other) {
  known = known && other.known;
  moves_registers = moves_registers || other.moves_registers;
  for (size_t i = 0; i < kSassOperations; ++i) {
    add_held(counts[i].none, other.counts[i].none);
    add_held(counts[i].one, other.counts[i].one);
    add_held(counts[i].all, other.counts[i].all);
  }
}

InstructionMix read_sass(std::span<const unsigned char> code, uint32_t capability) noexcept {
  InstructionMix mix;
  const Encodings* const encodings = encodings_of(capability);
  if (encodings == nullptr) return mix;
  mix.known = true;
  for (size_t at = 0; code.size() - at >= kInstructionBytes; at += kInstructionBytes) {
    Instruction i;
    std::memcpy(&i.low, code.data() + at, 8);
    if ((i.low & 0x1ff) == kSetMaxRegisters && capability >= kSetMaxRegistersSince)
      mix.moves_registers = true;
    const Encoding encoding = (*encodings)[i.low & 0x1ff];
    if (encoding.kind == Kind::kNotCounted) continue;
    std::memcpy(&i.high, code.data() + at + 8, 8);
    ++place_of(mix[encoding.operation], encoding.kind, i);
  }
  return mix;
}

}  // namespace flopinj
