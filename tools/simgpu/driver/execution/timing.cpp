#include "driver/execution/timing.h"

#include <algorithm>

namespace simgpu {
namespace {

constexpr double kLaunchNs = 1500;
constexpr double kCopyStartNs = 1000;
constexpr double kHostLinkBytesPerNs = 55;

double sum(const Counts& counts, std::initializer_list<Count> kinds) {
  uint64_t total = 0;
  for (const Count kind : kinds) total += counts[kind];
  return static_cast<double>(total);
}

}  // namespace

uint64_t kernel_duration_ns(const Chip& chip, const Counts& c) {
  const double sm_cycles_per_ns = chip.sm_count * 1e-3 * chip.clock_mhz;
  const double fp32_per_ns = sm_cycles_per_ns * chip.fp32_lanes_per_sm;
  const double fp64_per_ns = sm_cycles_per_ns * chip.fp64_lanes_per_sm;
  const double tensor_per_ns = chip.tensor_gflops;
  double arithmetic = 0;
  arithmetic += sum(c, {Count::kFadd, Count::kFmul, Count::kFfma}) / fp32_per_ns;
  arithmetic += sum(c, {Count::kHadd, Count::kHmul, Count::kHfma, Count::kHaddOne, Count::kHmulOne,
                        Count::kHfmaOne}) /
                fp32_per_ns;
  arithmetic += sum(c, {Count::kDadd, Count::kDmul, Count::kDfma}) / fp64_per_ns;
  arithmetic += sum(c, {Count::kTensorFp16, Count::kTensorFp16ToFp16, Count::kTensorBf16,
                        Count::kGroupFp16, Count::kGroupBf16}) /
                tensor_per_ns;
  arithmetic += sum(c, {Count::kTensorTf32, Count::kGroupTf32}) / (tensor_per_ns / 2);
  arithmetic += sum(c, {Count::kTensorFp8, Count::kTensorInt8, Count::kTensorInt8Sparse,
                        Count::kGroupFp8, Count::kGroupInt8}) /
                (tensor_per_ns * 2);
  arithmetic += sum(c, {Count::kTensorFp64}) / (fp64_per_ns * 2);
  const double memory = sum(c, {Count::kDramReadBytes, Count::kDramWriteBytes}) / chip.memory_gb_s;
  return static_cast<uint64_t>(kLaunchNs + std::max(arithmetic, memory));
}

uint64_t copy_duration_ns(const Chip& chip, uint64_t bytes, bool within_device) {
  const double rate = within_device ? chip.memory_gb_s / 2.0 : kHostLinkBytesPerNs;
  return static_cast<uint64_t>(kCopyStartNs + static_cast<double>(bytes) / rate);
}

}  // namespace simgpu
