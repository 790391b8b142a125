// Columns that several tables have, each said once; and what is simulated.
#pragma once
#include "sections/parts/columns.h"

namespace flopinj::reduce::said {

inline constexpr Column kFlop{
    "flop", "FLOP", Kind::kFlop, Worth::kUsual,
    "floating-point operations executed; one fused multiply-add counts 2 (--fma)"};
inline constexpr Column kFlopOrFormula{
    "flop_or_formula", "FLOP, or by formula", Kind::kFlop, Worth::kUsual,
    "flop where all launches have a count; else an estimate, with the FLOP of their operators' "
    "formulas for those that have none, and at least so much where some have no formula"};
inline constexpr Column kUtilizationOrFormula{
    "utilization_or_formula", "of peak, or by formula", Kind::kShare, Worth::kUsual,
    "flop_or_formula / (GPU time x peak); from one number to another where names of kernels and "
    "types of operands leave several precisions"};
inline constexpr Column kFlopShare{"flop_share", "share", Kind::kShare, Worth::kUsual,
                                   "share of the FLOP of the whole run"};
inline constexpr Column kOperations{"op", "OP", Kind::kOperations, Worth::kUsual,
                                    "integer operations of tensor cores, a multiply-add being two "
                                    "whatever --fma says; they are in no FLOP figure"};
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
inline constexpr Column kBandwidth{"byte_per_s", "memory", Kind::kBandwidth, Worth::kUsual,
                                   "DRAM traffic / GPU time"};
inline constexpr Column kUtilization{
    "utilization", "of peak", Kind::kShare, Worth::kUsual,
    "FLOP / (GPU time x peak), each precision against its own peak"};
inline constexpr Column kRoofShare{"roof_share", "of roof", Kind::kShare, Worth::kUsual,
                                   "share of the roofline that is reached: the least time that "
                                   "peak FLOP/s and DRAM bandwidth allow / GPU time"};
inline constexpr Column kBoundBy{
    "bound_by", "bound by", Kind::kText, Worth::kUsual,
    "what limits the kernel: the nearer roof (memory, or a precision's peak) where it reaches 60 % "
    "of it, else latency; null where a roof or the time is not known, or latency is not certain "
    "(gpu_time_windowed_launches)"};
inline constexpr Column kNearerRoof{
    "nearer_roof", "nearer roof", Kind::kText, Worth::kUsual,
    "the roof that allows the least: memory, or the precision that takes most of the time at peak"};
inline constexpr Column kDramBytes{
    "dram_bytes", "DRAM", Kind::kBytes, Worth::kUsual,
    "read and written, as measured when kernels ran alone; null where a launch has none"};
inline constexpr Column kMangled{"mangled", "mangled", Kind::kText, Worth::kUsual,
                                 "which kernel it is: several may look alike demangled"};
inline constexpr Column kProcess{"process", "process", Kind::kText, Worth::kUsual,
                                 "name of the process: processes.name"};
inline constexpr Column kSession{"session", "session", Kind::kText, Worth::kUsual,
                                 "the recording, by 16 hexadecimal digits"};
inline constexpr Column kRank{"rank", "rank", Kind::kCount, Worth::kUsual,
                              "of the process in its job; null where no launcher said it"};
inline constexpr Column kSimulatedClock{"simulated_clock", "simulated clock", Kind::kFlag,
                                        Worth::kUsual,
                                        "times are of the simulated GPU's clock, which calls and "
                                        "kernels move by a model, and real time does not"};
inline constexpr Column kPtxCounts{"ptx_counts", "PTX counts", Kind::kFlag, Worth::kUsual,
                                   "FLOP are of PTX's instructions: machine code also counts "
                                   "divisions, both sides of short branches, and some moves"};
// " (simulated clock, PTX counts)", where both are.
inline std::string simulation_words(bool clock, bool ptx) {
  std::string words = clock ? kSimulatedClock.heading : "";
  if (ptx) words += std::string(words.empty() ? "" : ", ") + kPtxCounts.heading;
  return words.empty() ? "" : " (" + words + ")";
}
inline constexpr Column kEnergy{
    "energy_j", "energy", Kind::kRatio, Worth::kUsual,
    "joules that the GPU took from the recorder's first reading of NVML's energy counter to its "
    "last one; null where it has none, or others use the GPU, too"};
inline constexpr Column kHost{"hostname", "host"};
inline constexpr Column kPid{"pid", "pid", Kind::kCount};
inline constexpr Column kOrdinal{"ordinal", "device", Kind::kCount, Worth::kUsual,
                                 "CUDA's number of the device in the process"};
inline constexpr Column kWall{"wall_ns", "wall", Kind::kNanoseconds, Worth::kUsual,
                              "how long the recording took"};
inline constexpr Column kOwnCost{
    "own_ns", "own cost", Kind::kNanoseconds, Worth::kUsual,
    "time that the profiler took from the program: callbacks, reading counters, start"};
inline constexpr Column kStarted{
    "start_skew_ns", "started", Kind::kNanoseconds, Worth::kUsual,
    "how long after the first process this one began, by the hosts' clocks"};
inline constexpr Column kProcessNumber{"trace", "process", Kind::kCount, Worth::kUsual,
                                       "number of the process, from 0: processes.process"};
inline constexpr Column kNumberOf{"process", "process", Kind::kCount, Worth::kUsual,
                                  "number of the process, from 0"};
inline constexpr Column kStableHash{"stable_hash", "hash", Kind::kText, Worth::kUsual,
                                    kStableHashMeaning};

// The same under another heading, where a table has two alike or little room.
constexpr Column headed(Column column, const char* heading) {
  column.heading = heading;
  return column;
}

}  // namespace flopinj::reduce::said
