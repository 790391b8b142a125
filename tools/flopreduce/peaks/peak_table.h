// Published peaks of GPUs. All of it is data (peak_table.cpp): a GPU that is missing gets a row.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace flopinj::reduce {

// What a peak is of. The names are those of the report's precisions: "fp16" is packed arithmetic
// outside the tensor cores, "tensor_..." dense work of the tensor cores by source format.
enum class Precision : uint8_t {
  kFp64,
  kFp32,
  kFp16,
  kTensorFp64,
  kTensorTf32,
  kTensorFp16,  // with an fp32 accumulator
  kTensorBf16,
  kTensorFp8,  // with an fp32 accumulator
  kTensorFp6,
  kTensorFp4,
  kTensorInt8,
};
inline constexpr std::array<std::string_view, 11> kPrecisionNames = {
    "fp64",        "fp32",       "fp16",       "tensor_fp64", "tensor_tf32", "tensor_fp16",
    "tensor_bf16", "tensor_fp8", "tensor_fp6", "tensor_fp4",  "tensor_int8"};

// One value for each Precision; 0 where there is none.
using ByPrecision = std::array<double, kPrecisionNames.size()>;

// What a source prints for the tensor cores.
enum class Printed : uint8_t {
  kDense,
  kSparse,  // only the figure with 2:4 sparsity: dense is half of it
  kBoth,
};

// What one multiprocessor does in one clock cycle, as fused multiply-adds.
struct UnitRates {
  std::string_view architecture;
  ByPrecision per_clock;
  std::string_view source;
};

// One CUDA device. Peaks are 1e12 operations per second, a fused multiply-add counted as two, as
// its source prints them.
struct Gpu {
  std::string_view name;
  std::string_view chip;        // as CUPTI names it; empty where that is not known
  std::string_view cuda_names;  // as the driver names it, without "NVIDIA "; '|' between several
  uint32_t multiprocessors;     // 0 where the source has none
  double clock_mhz;             // boost clock behind fp64, fp32, fp16; 0 where the source has none
  double tensor_clock_mhz;      // behind the others; some sources compute the two at two clocks
  double memory_gb_s;           // 1e9 bytes per second
  ByPrecision dense;
  double
      sparsity;  // sparse = this times dense, for tensor fp16, bf16, tf32, fp8, fp6, int8; 0: none
  double sparse_fp4;  // 1e12 operations per second, where it is not that
  Printed printed;
  const UnitRates* rates;   // null where they are not known
  std::string_view source;  // title of NVIDIA's document
  std::string_view note;
};

std::span<const Gpu> gpus();

// 1e12 operations per second with 2:4 sparsity; 0 where there is none.
double sparse_peak(const Gpu& gpu, Precision precision);

}  // namespace flopinj::reduce
