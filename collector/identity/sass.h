// What a kernel's machine code (SASS) holds of the instructions that CUPTI's
// smsp__sass_thread_inst_executed_op_* metrics count, by what each of them computes.
//
// Not all of them do arithmetic. ptxas loads constants and moves values with the floating-point
// pipes: adding -0, or multiplying 0 by 0 and adding a value, changes no value but a zero's sign, a
// denormal or a NaN. And it writes plain additions and products as multiply-adds.
//
//   no operation   x + -RZ      FADD, DADD, HADD2     moves, negation, |x|, half to float and back
//                  RZ * RZ + x  any multiply-add      constants, moves
//   one operation  x * y + -RZ  any multiply-add      a product
//                  x * 1 + y    any multiply-add      a sum (1 or -1, as an immediate)
//   all            everything else; x + +0 and x * y + +0 too, as programs write them
//
// An instruction is 128 bits, least significant bit first. There is no public specification; these
// fields were found in kernels that nvcc 13.0 compiles for sm_75 to sm_121, and a test compares
// each kernel's counts with nvdisasm's text (tests/unit/collector/identity/sass_test.py).
//
//   0-8    operation           9-11   form: where the operands are
//   24-31  register A          72     A is negated
//   32-63  immediate or constant; in forms 1 and 6 a register (bits 32-39; 63: negated)
//   64-71  register; 75: negated, in HFMA2 bit 84
//   form 1   A, register at 32, register at 64      (DADD: A, register at 64)
//   form 2   A, register at 64, immediate           (sums and products: A, immediate)
//   form 3   A, register at 64, constant            (sums and products: A, constant)
//   form 4   A, immediate, register at 64           form 5   A, constant, register at 64
//   form 6   A, uniform register, register at 64    form 7   A, register at 64, uniform register
//   Register 255 is RZ, which reads 0.
//
// A number may be another operation on another architecture: 0x35 is HFMA2.MMA from 8.0 to 9.0, and
// an integer sum from 10.0 on.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace flopinj {

// As trace::Interned::SassOperation, less 1.
enum class SassOperation : uint8_t {
  kFadd,
  kFmul,
  kFfma,
  kFadd2,
  kFmul2,
  kFfma2,
  kDadd,
  kDmul,
  kDfma,
  kHadd,
  kHmul,
  kHfma,
};
inline constexpr size_t kSassOperations = 12;

// Instructions of one operation, by how many operations each of their lanes computes.
struct InstructionCounts {
  uint32_t none = 0;
  uint32_t one = 0;  // of multiply-adds
  uint32_t all = 0;
  bool operator==(const InstructionCounts&) const = default;
};

struct InstructionMix {
  bool known = false;  // all code that the function may run was read
  // Warps hand registers to others (setmaxnreg of PTX, USETMAXREG in the code: 0x1c8 from 9.0 on).
  bool moves_registers = false;
  std::array<InstructionCounts, kSassOperations> counts{};

  InstructionCounts& operator[](SassOperation o) { return counts[static_cast<size_t>(o)]; }
  const InstructionCounts& operator[](SassOperation o) const {
    return counts[static_cast<size_t>(o)];
  }
  void add(const InstructionMix& other);  // `known` where both are, `moves_registers` where one is
  bool operator==(const InstructionMix&) const = default;
};

// Counts the instructions of a function's code, 16 bytes each, for a compute capability (major * 10
// + minor). Not known for those that are not from 7.5 to 12.1. Pure; any bytes will do.
InstructionMix read_sass(std::span<const unsigned char> code, uint32_t capability) noexcept;

}  // namespace flopinj
