// The counters that metrics are made of: what each reads from a kernel's observed counts, and what
// it costs in a pass.
#pragma once
#include <simgpu/hooks.h>

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>

namespace simgpu::cupti {

enum class Counter : uint16_t {
  // Counted by patching the kernel's code ("SASS"), per thread with the predicate on.
  kSassFadd,
  kSassFmul,
  kSassFfma,
  kSassDadd,
  kSassDmul,
  kSassDfma,
  kSassHadd,
  kSassHmul,
  kSassHfma,
  // Of this GPU alone: half instructions of one value, and operations of PTX that machine code
  // makes several instructions of (Count has what each is).
  kHaddOne,
  kHmulOne,
  kHfmaOne,
  kDivF32,
  kDivF64,
  kRcpF32,
  kRcpF64,
  kSqrtF32,
  kSqrtF64,
  kApproxDivF32,
  kFullDivF32,
  kApproxRcpF32,
  kApproxSinCosF32,
  kSharedAddF32,
  kSharedAddF64,
  kSassPaired,  // two single-precision operations in one instruction: PTX has them apart
  // Operations of the tensor path, a fused multiply-add being two.
  kHmmaBf16,
  kHmmaFp16ToFp16,
  kHmmaFp16ToFp32,
  kHmmaTf32,
  kDmma,
  kImma,        // dense
  kImmaSecond,  // sparse
  kHgmmaBf16,
  kHgmmaFp16,
  kHgmmaTf32,
  kIgmma,
  kFp8,
  // Warp-level instructions of the tensor pipe.
  kInstTensor,
  kInstHmma,
  kInstHalf,  // packed half arithmetic on the tensor pipe: the simulated kernels have none there
  kInstGmma,
  kInstDmma,
  kInstImma,
  // Instructions of the arithmetic pipes, of threads and of warps.
  kPipeFma,
  kPipeFp64,
  kPipeFp16,
  kInstFma,
  kInstFp64,
  kInstFp16,
  kDramRead,
  kDramWrite,
  kTime,
  kSmCycles,
  kSmActive,
  kGpcCycles,
  kNone,  // always 0: names that exist on the chip, for work the simulated kernels never do
  kCount
};
inline constexpr size_t kCounters = static_cast<size_t>(Counter::kCount);
using CounterValues = std::array<uint64_t, kCounters>;
using CounterSet = std::bitset<kCounters>;

constexpr bool is_sass(Counter counter) { return counter <= Counter::kSassPaired; }

// Hardware counters share slots: a pass holds counters of at most kPassCapacity together. This is
// not how the chip is wired; it is the simplest rule that gives the pass counts of the real host
// API on GH100 (checked against it by tests/unit/simgpu_cupti); of GA100 it knows that all pipes of
// threads fit together, of Blackwell that int8 takes one pass, and of chips before Ampere that
// tensor operations take two in all. Weight 0: fits everywhere.
inline constexpr uint32_t kPassCapacity = 8;
inline constexpr uint32_t kGa100 = 4, kFirstBlackwell = 9;  // families (chips.h)
uint32_t weight(Counter counter, uint32_t family);

// Of GH100. Averages over instances, and sums of what each instance has, take it for every chip.
inline constexpr uint32_t kSms = 132;

// What one run of a kernel adds to each counter. kSmCycles and kGpcCycles are per instance, all
// others are totals.
CounterValues observe(const KernelRun& run);

}  // namespace simgpu::cupti
