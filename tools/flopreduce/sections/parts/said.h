// Columns that several tables have, each said once.
#pragma once
#include "sections/parts/columns.h"

namespace flopinj::reduce::said {

inline constexpr Column kFlop{
    "flop", "FLOP", Kind::kFlop, Worth::kUsual,
    "floating-point operations executed; one fused multiply-add counts 2 (--fma)"};
inline constexpr Column kFlopShare{"flop_share", "share", Kind::kShare, Worth::kUsual,
                                   "share of the FLOP of the whole run"};
inline constexpr Column kMatrixFlop{
    "matrix_flop", "matrix FLOP", Kind::kFlop, Worth::kUsual,
    "of flop: fused multiply-adds and tensor cores, as of matrix products"};
inline constexpr Column kLaunches{"launches", "launches", Kind::kCount, Worth::kUsual,
                                  "how often the kernel was launched, kernels of graphs included"};
inline constexpr Column kUnmeasured{
    "unmeasured_launches", "unmeasured", Kind::kCount, Worth::kUsual,
    "launches without a FLOP count: figures beside them are lower bounds (>=)"};
inline constexpr Column kGpuTime{"gpu_time_ns", "GPU time", Kind::kNanoseconds, Worth::kUsual,
                                 "sum of the durations of these kernels on the GPU"};
inline constexpr Column kGpuTimeShare{"gpu_time_share", "share", Kind::kShare, Worth::kUsual,
                                      "share of the GPU time of the whole run"};
inline constexpr Column kEach{"each_ns", "each", Kind::kNanoseconds, Worth::kUsual,
                              "mean GPU time of one launch"};
inline constexpr Column kRate{"flop_per_s", "FLOP/s", Kind::kRate, Worth::kUsual,
                              "FLOP / GPU time"};
inline constexpr Column kIntensity{"flop_per_byte", "FLOP/B", Kind::kRatio, Worth::kUsual,
                                   "arithmetic intensity: FLOP / bytes of DRAM traffic"};
inline constexpr Column kUtilization{
    "utilization", "of peak", Kind::kShare, Worth::kUsual,
    "FLOP / (GPU time x peak), each precision against its own peak"};
inline constexpr Column kBoundBy{
    "bound_by", "bound by", Kind::kText, Worth::kUsual,
    "what limits the kernel: the nearer roof (memory, or a precision's peak) where it reaches "
    "60 % of it, else latency"};
inline constexpr Column kStableHash{"stable_hash", "hash", Kind::kText, Worth::kUsual,
                                    "of a signature: the same in every trace of this program"};

}  // namespace flopinj::reduce::said
