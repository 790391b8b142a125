#include "counters/counters.h"

#include <algorithm>
#include <initializer_list>

namespace simgpu::cupti {
namespace {

uint64_t sum(const Counts& counts, std::initializer_list<Count> kinds) {
  uint64_t total = 0;
  for (const Count kind : kinds) total += counts[kind];
  return total;
}

// Warp-level instructions are counted without their kind; they are shared out by operations, the
// rest being HMMA, or HGMMA and QGMMA of groups.
void share_instructions(const Counts& counts, CounterValues& out) {
  const auto part = [&](Count all, uint64_t some, uint64_t operations) {
    return operations == 0
               ? 0
               : static_cast<uint64_t>(static_cast<double>(counts[all]) *
                                       static_cast<double>(some) / static_cast<double>(operations));
  };
  const auto set = [&](Counter counter, uint64_t value) {
    out[static_cast<size_t>(counter)] = value;
  };
  const uint64_t int8 = sum(counts, {Count::kTensorInt8, Count::kTensorInt8Sparse});
  const uint64_t warps =
      int8 + sum(counts, {Count::kTensorFp16, Count::kTensorFp16ToFp16, Count::kTensorBf16,
                          Count::kTensorTf32, Count::kTensorFp64, Count::kTensorFp8});
  const uint64_t groups = sum(counts, {Count::kGroupFp16, Count::kGroupBf16, Count::kGroupTf32,
                                       Count::kGroupFp8, Count::kGroupInt8});
  const uint64_t dmma = part(Count::kTensorInstructions, counts[Count::kTensorFp64], warps);
  const uint64_t imma = part(Count::kTensorInstructions, int8, warps);
  const uint64_t igmma = part(Count::kGroupInstructions, counts[Count::kGroupInt8], groups);
  const uint64_t of_warps = counts[Count::kTensorInstructions],
                 of_groups = counts[Count::kGroupInstructions];
  set(Counter::kInstTensor, of_warps + of_groups);
  set(Counter::kInstDmma, dmma);
  set(Counter::kInstImma, imma + igmma);
  set(Counter::kInstGmma, of_groups);
  set(Counter::kInstHmma, of_warps - dmma - imma + of_groups - igmma);
}

}  // namespace

uint32_t weight(Counter counter, uint32_t family) {
  const bool before_ampere = family < kGa100;  // all sources of their tensor cores in two passes
  switch (counter) {
    case Counter::kHmmaBf16:
    case Counter::kHmmaFp16ToFp32:
    case Counter::kHmmaTf32:
      return before_ampere ? 2 : 8;
    case Counter::kPipeFma:
      return family == kGa100 ? 3 : 7;
    case Counter::kImma:
    case Counter::kImmaSecond:
      return before_ampere ? 2 : family >= kFirstBlackwell ? 4 : 5;
    case Counter::kHmmaFp16ToFp16:
      return before_ampere ? 2 : 5;
    case Counter::kPipeFp64:
    case Counter::kInstTensor:
      return 4;
    case Counter::kDmma:
    case Counter::kInstHmma:
    case Counter::kInstHalf:
    case Counter::kInstGmma:
    case Counter::kInstDmma:
    case Counter::kInstImma:
    case Counter::kInstFma:
    case Counter::kInstFp64:
    case Counter::kInstFp16:
      return 2;
    case Counter::kPipeFp16:
      return 1;
    default:
      return 0;
  }
}

CounterValues observe(const KernelRun& run) {
  CounterValues out{};
  const Counts& counts = run.counts;
  const auto set = [&](Counter counter, uint64_t value) {
    out[static_cast<size_t>(counter)] = value;
  };
  set(Counter::kSassFadd, counts[Count::kFadd]);
  set(Counter::kSassFmul, counts[Count::kFmul]);
  set(Counter::kSassFfma, counts[Count::kFfma]);
  set(Counter::kSassDadd, counts[Count::kDadd]);
  set(Counter::kSassDmul, counts[Count::kDmul]);
  set(Counter::kSassDfma, counts[Count::kDfma]);
  set(Counter::kSassHadd, counts[Count::kHadd]);
  set(Counter::kSassHmul, counts[Count::kHmul]);
  set(Counter::kSassHfma, counts[Count::kHfma]);
  set(Counter::kHaddOne, counts[Count::kHaddOne]);
  set(Counter::kHmulOne, counts[Count::kHmulOne]);
  set(Counter::kHfmaOne, counts[Count::kHfmaOne]);
  set(Counter::kDivF32, counts[Count::kDivF32]);
  set(Counter::kDivF64, counts[Count::kDivF64]);
  set(Counter::kRcpF32, counts[Count::kRcpF32]);
  set(Counter::kRcpF64, counts[Count::kRcpF64]);
  set(Counter::kSqrtF32, counts[Count::kSqrtF32]);
  set(Counter::kSqrtF64, counts[Count::kSqrtF64]);
  set(Counter::kApproxDivF32, counts[Count::kApproxDivF32]);
  set(Counter::kFullDivF32, counts[Count::kFullDivF32]);
  set(Counter::kApproxRcpF32, counts[Count::kApproxRcpF32]);
  set(Counter::kApproxSinCosF32, counts[Count::kApproxSinCosF32]);
  set(Counter::kSharedAddF32, counts[Count::kSharedAddF32]);
  set(Counter::kSharedAddF64, counts[Count::kSharedAddF64]);
  set(Counter::kHmmaBf16, counts[Count::kTensorBf16]);
  set(Counter::kHmmaFp16ToFp32, counts[Count::kTensorFp16]);
  set(Counter::kHmmaTf32, counts[Count::kTensorTf32]);
  set(Counter::kDmma, counts[Count::kTensorFp64]);
  set(Counter::kHmmaFp16ToFp16, counts[Count::kTensorFp16ToFp16]);
  set(Counter::kImma, counts[Count::kTensorInt8]);
  set(Counter::kImmaSecond, counts[Count::kTensorInt8Sparse]);
  set(Counter::kHgmmaBf16, counts[Count::kGroupBf16]);
  set(Counter::kHgmmaFp16, counts[Count::kGroupFp16]);
  set(Counter::kHgmmaTf32, counts[Count::kGroupTf32]);
  set(Counter::kIgmma, counts[Count::kGroupInt8]);
  set(Counter::kFp8, counts[Count::kTensorFp8] + counts[Count::kGroupFp8]);
  share_instructions(counts, out);
  const uint64_t half = sum(counts, {Count::kHadd, Count::kHmul, Count::kHfma, Count::kHaddOne,
                                     Count::kHmulOne, Count::kHfmaOne});
  // The fma pipe also runs integer multiply-add: one per thread for its index, so that it is an
  // upper bound of the floating-point work here too and not equal to it.
  const uint64_t single = counts[Count::kFadd] + counts[Count::kFmul] + counts[Count::kFfma] +
                          half + counts[Count::kThreads];
  const uint64_t fp64 = counts[Count::kDadd] + counts[Count::kDmul] + counts[Count::kDfma];
  set(Counter::kPipeFma, single);
  set(Counter::kPipeFp64, fp64);
  set(Counter::kPipeFp16, half);
  // As if all threads of a warp always ran together: a GPU has more of them.
  const auto warps = [](uint64_t threads) { return (threads + 31) / 32; };
  set(Counter::kInstFma, warps(single));
  set(Counter::kInstFp64, warps(fp64));
  set(Counter::kInstFp16, warps(half));
  set(Counter::kDramRead, counts[Count::kDramReadBytes]);
  set(Counter::kDramWrite, counts[Count::kDramWriteBytes]);
  set(Counter::kTime, run.end_ns - run.start_ns);
  const uint64_t blocks = uint64_t{run.grid[0]} * run.grid[1] * run.grid[2];
  set(Counter::kSmCycles, run.cycles);
  set(Counter::kGpcCycles, run.cycles);
  set(Counter::kSmActive, run.cycles * std::min<uint64_t>(blocks, run.sm_count));
  return out;
}

}  // namespace simgpu::cupti
