// Published peaks of GPUs: data, in peaks.tsv. A GPU that is missing gets a row there.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj::reduce {

// What a peak is of, named as in the report: "fp16" is packed arithmetic outside the tensor cores,
// "tensor_..." dense work of the tensor cores by source format; fp16 and fp8 with an fp32
// accumulator.
inline constexpr std::array<std::string_view, 11> kPrecisionNames = {
    "fp64",        "fp32",       "fp16",       "tensor_fp64", "tensor_tf32", "tensor_fp16",
    "tensor_bf16", "tensor_fp8", "tensor_fp6", "tensor_fp4",  "tensor_int8"};

// One CUDA device, in the order of the table's columns. Numbers are 0 where the source has none.
struct Gpu {
  std::string_view name;
  std::string_view chip;        // as CUPTI names it; empty where that is not known
  std::string_view cuda_names;  // as the driver names it, without "NVIDIA "; '|' between several
  uint32_t multiprocessors = 0;
  double clock_mhz = 0;         // boost clock behind fp64, fp32, fp16 and tensor_fp64
  double tensor_clock_mhz = 0;  // behind the others; some sources compute the two at two clocks
  double memory_gb_s = 0;       // 1e9 bytes per second
  // 1e12 operations per second, a fused multiply-add counted as two, as the source prints them.
  std::array<double, kPrecisionNames.size()> dense = {};
  double sparse_fp4 = 0;     // with 2:4 sparsity; of other formats that is twice the dense figure
  std::string_view printed;  // what the source prints for the tensor cores: "dense and sparse"
  std::string_view units;    // architecture whose rates per multiprocessor these are
  std::string_view source;   // title of NVIDIA's document
  std::string_view note;
};

// 1e12 operations per second by a precision's name as in the report, or with "_sparse" behind it; 0
// where there is none. A name for several formats that a chip counts together
// ("tensor_fp4_fp6_fp8") has the highest of theirs.
double published_peak(const Gpu& gpu, std::string_view precision);

// Rows of simgpu's devices have the peaks of its time model ("Times" in
// tools/simgpu/driver/README.md), no hardware's.
bool is_simulated_device(std::string_view name);

// A table like peaks.tsv, whose text must outlive the rows; of a bad one `error`, with its line.
struct PeakTable {
  std::vector<Gpu> gpus;
  std::string error;
};
PeakTable read_peaks(std::string_view text);

// The built-in table.
const std::vector<Gpu>& gpus();

}  // namespace flopinj::reduce
