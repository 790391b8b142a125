#include "peaks/simulated.h"

#include <array>

namespace flopinj::reduce {
namespace {

// The figures of the model, as in tools/simgpu/driver/chip.cpp; a test compares the two.
struct Simulated {
  std::string_view name, chip;
  uint32_t multiprocessors, clock_mhz, memory_gb_s;
  uint32_t fp32_lanes, fp64_lanes;  // of one multiprocessor
  uint32_t tensor_tflops;           // 16-bit sources
};
constexpr std::array kModels = {
    Simulated{"simgpu GV100 (simulated)", "GV100", 80, 1530, 900, 64, 32, 125},
    Simulated{"simgpu TU102 (simulated)", "TU102", 72, 1770, 672, 64, 2, 130},
    Simulated{"simgpu GA100 (simulated)", "GA100", 108, 1410, 2039, 64, 32, 312},
    Simulated{"simgpu GA102 (simulated)", "GA102", 82, 1695, 936, 128, 2, 71},
    Simulated{"simgpu AD102 (simulated)", "AD102", 128, 2520, 1008, 128, 2, 165},
    Simulated{"simgpu GH100 (simulated)", "GH100", 132, 1980, 3352, 128, 64, 989},
    Simulated{"simgpu GB100 (simulated)", "GB100", 148, 1965, 8000, 128, 64, 2250},
};

// An instruction takes one lane for one cycle, a packed half instruction too; a fused multiply-add
// is two operations, a packed one four. tf32 runs at half the rate of 16-bit sources, 8-bit ones at
// twice, fp64 products at that of fp64 instructions.
Gpu device(const Simulated& m) {
  const double cycles = 1e-6 * m.multiprocessors * m.clock_mhz;  // 1e12 per second
  const double fp32 = 2 * cycles * m.fp32_lanes;
  const double fp64 = 2 * cycles * m.fp64_lanes;
  const double tensor = m.tensor_tflops;
  return {.name = m.name,
          .chip = m.chip,
          .cuda_names = m.name,
          .multiprocessors = m.multiprocessors,
          .clock_mhz = static_cast<double>(m.clock_mhz),
          .tensor_clock_mhz = static_cast<double>(m.clock_mhz),
          .memory_gb_s = static_cast<double>(m.memory_gb_s),
          .dense = {fp64, fp32, 2 * fp32, fp64, tensor / 2, tensor, tensor, 2 * tensor, 0, 0,
                    2 * tensor},
          .sparsity = 0,
          .sparse_fp4 = 0,
          .printed = Printed::kDense,
          .rates = nullptr,
          .source = "simgpu's time model (simulated: no hardware's peak)",
          .note = ""};
}

template <size_t... I>
std::array<Gpu, sizeof...(I)> devices(std::index_sequence<I...>) {
  return {device(kModels[I])...};
}

}  // namespace

bool is_simulated_device(std::string_view cuda_name) { return cuda_name.starts_with("simgpu "); }

std::span<const Gpu> simulated_gpus() {
  static const auto kDevices = devices(std::make_index_sequence<kModels.size()>());
  return kDevices;
}

}  // namespace flopinj::reduce
