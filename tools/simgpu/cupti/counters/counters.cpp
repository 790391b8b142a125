#include "counters/counters.h"

#include <algorithm>

namespace simgpu::cupti {
namespace {

// Warp-level instructions are counted without their kind; they are shared out by operations, the
// rest being HMMA.
void share_instructions(const Counts& counts, CounterValues& out) {
  const uint64_t all = counts[Count::kTensorInstructions];
  const uint64_t fp64 = counts[Count::kTensorFp64], int8 = counts[Count::kTensorInt8],
                 fp8 = counts[Count::kTensorFp8];
  const uint64_t operations = counts[Count::kTensorFp16] + counts[Count::kTensorBf16] +
                              counts[Count::kTensorTf32] + fp64 + int8 + fp8;
  const auto part = [&](uint64_t some) {
    return operations == 0
               ? 0
               : static_cast<uint64_t>(static_cast<double>(all) * static_cast<double>(some) /
                                       static_cast<double>(operations));
  };
  const auto set = [&](Counter counter, uint64_t value) {
    out[static_cast<size_t>(counter)] = value;
  };
  set(Counter::kInstTensor, all);
  set(Counter::kInstDmma, part(fp64));
  set(Counter::kInstImma, part(int8));
  set(Counter::kInstGmma, part(fp8));  // fp8 exists as QGMMA only, which op_hmma includes
  set(Counter::kInstHmma, all - part(fp64) - part(int8));
}

}  // namespace

uint32_t weight(Counter counter) {
  switch (counter) {
    case Counter::kHmmaBf16:
    case Counter::kHmmaFp16ToFp32:
    case Counter::kHmmaTf32:
      return 8;
    case Counter::kPipeFma:
      return 7;
    case Counter::kHmmaFp16ToFp16:
    case Counter::kImma:
    case Counter::kImmaSecond:
      return 5;
    case Counter::kPipeFp64:
    case Counter::kInstTensor:
      return 4;
    case Counter::kDmma:
    case Counter::kInstHmma:
    case Counter::kInstHalf:
    case Counter::kInstGmma:
    case Counter::kInstDmma:
    case Counter::kInstImma:
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
  // The simulated matrix instructions are warp-level (HMMA, DMMA, IMMA) with fp32 accumulators,
  // never HGMMA.
  set(Counter::kHmmaBf16, counts[Count::kTensorBf16]);
  set(Counter::kHmmaFp16ToFp32, counts[Count::kTensorFp16]);
  set(Counter::kHmmaTf32, counts[Count::kTensorTf32]);
  set(Counter::kDmma, counts[Count::kTensorFp64]);
  set(Counter::kImma, counts[Count::kTensorInt8]);
  set(Counter::kFp8, counts[Count::kTensorFp8]);
  share_instructions(counts, out);
  const uint64_t half = counts[Count::kHadd] + counts[Count::kHmul] + counts[Count::kHfma];
  // The fma pipe also runs integer multiply-add: one per thread for its index, so that it is an
  // upper bound of the floating-point work here too and not equal to it.
  set(Counter::kPipeFma, counts[Count::kFadd] + counts[Count::kFmul] + counts[Count::kFfma] + half +
                             counts[Count::kThreads]);
  set(Counter::kPipeFp64, counts[Count::kDadd] + counts[Count::kDmul] + counts[Count::kDfma]);
  set(Counter::kPipeFp16, half);
  set(Counter::kDramRead, counts[Count::kDramReadBytes]);
  set(Counter::kDramWrite, counts[Count::kDramWriteBytes]);
  set(Counter::kTime, run.end_ns - run.start_ns);
  const uint64_t blocks = uint64_t{run.grid[0]} * run.grid[1] * run.grid[2];
  set(Counter::kSmCycles, run.cycles);
  set(Counter::kGpcCycles, run.cycles);
  set(Counter::kSmActive, run.cycles * std::min<uint64_t>(blocks, kSms));
  return out;
}

}  // namespace simgpu::cupti
