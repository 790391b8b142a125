// Which launches may be made with instrumented code: it needs registers, and a launch that does not
// find them fails, which is the program's failure.
#pragma once
#include <collector/identity/launch.h>
#include <collector/identity/signature_table.h>
#include <injector/counters/profiler/planner.h>

#include <algorithm>
#include <cstdint>

namespace flopinj {

// Of every GPU since Volta (CUDA programming guide, technical specifications), and what one thread
// may have at most.
inline constexpr uint64_t kRegistersOfBlock = 65'536;
inline constexpr uint64_t kMostRegistersOfThread = 255;
inline constexpr uint64_t kRegisterUnit = 8;  // of a thread, as they are given out
// How many more instrumented code takes is not documented. A block of 512 threads has room for so
// many beside 64 of its own; one of 1,024 never has.
inline constexpr uint64_t kInstrumentedRegisters = 64;

// What is not known is 0: the registers of a kernel whose handle nothing explains, which may be as
// many as a thread can have; the block of a launch by the old calls, which is never instrumented.
inline bool fits_instrumented(uint32_t registers_of_thread, const LaunchShape& shape) {
  const auto round_up = [](uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; };
  const uint64_t threads = round_up(uint64_t{shape.block[0]} * shape.block[1] * shape.block[2], 32);
  const uint64_t registers =
      registers_of_thread == 0
          ? kMostRegistersOfThread
          : std::min(registers_of_thread + kInstrumentedRegisters, kMostRegistersOfThread);
  return threads != 0 && threads * round_up(registers, kRegisterUnit) <= kRegistersOfBlock;
}

// Where warps hand registers to others, a split that instrumented code makes too large would not
// fail but hang: a kernel that does so is instrumented only where that was shown to work. Of a
// kernel whose registers are not known that is not known either.
inline bool fits_instrumented(const Signature& signature, const ShownToWork& shown) {
  const auto& info = signature.function->info;
  if (info.instructions.moves_registers) return shown.handed_on;
  return (shown.without_room && info.registers_per_thread != 0) ||
         fits_instrumented(info.registers_per_thread, signature.shape);
}

}  // namespace flopinj
