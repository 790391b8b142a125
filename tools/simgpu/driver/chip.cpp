#include "driver/chip.h"

namespace simgpu {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint32_t kMiB = 1U << 20;
constexpr uint32_t kKiB = 1U << 10;

// Units, clocks and bandwidths: NVIDIA's architecture white papers (V100 v1.1, Turing v1.1, A100
// v1.0, GA102 v2.1, Ada v2.1, H100 v1.04) and the HGX B200 data sheet. Shared memory and threads
// per SM: CUDA C++ Programming Guide, table "Technical Specifications per Compute Capability".
constexpr Chip kChips[] = {
    {"GV100", "GV100", "V100 SXM2 32GB", 7, 0, 80, 1530, 900, 877, 4096, 32 * kGiB, 64, 32, 125000,
     6 * kMiB, 96 * kKiB, 96 * kKiB, 2048, 32},
    {"TU102", "TU102", "Quadro RTX 6000", 7, 5, 72, 1770, 672, 7001, 384, 24 * kGiB, 64, 2, 130000,
     6 * kMiB, 64 * kKiB, 64 * kKiB, 1024, 16},
    {"GA100", "GA100", "A100 SXM4 80GB", 8, 0, 108, 1410, 2039, 1593, 5120, 80 * kGiB, 64, 32,
     312000, 40 * kMiB, 164 * kKiB, 163 * kKiB, 2048, 32},
    {"GA102", "GA102", "GeForce RTX 3090", 8, 6, 82, 1695, 936, 9751, 384, 24 * kGiB, 128, 2, 71000,
     6 * kMiB, 100 * kKiB, 99 * kKiB, 1536, 16},
    {"AD102", "AD102", "GeForce RTX 4090", 8, 9, 128, 2520, 1008, 10501, 384, 24 * kGiB, 128, 2,
     165000, 72 * kMiB, 100 * kKiB, 99 * kKiB, 1536, 24},
    {"GH100", "GH100", "H100 SXM5 80GB", 9, 0, 132, 1980, 3352, 2619, 5120, 80 * kGiB, 128, 64,
     989000, 50 * kMiB, 228 * kKiB, 227 * kKiB, 2048, 32},
    {"GB100", "GB100", "B200 SXM 180GB", 10, 0, 148, 1965, 8000, 3996, 8192, 180 * kGiB, 128, 64,
     2250000, 126 * kMiB, 228 * kKiB, 227 * kKiB, 2048, 32},
    // No product: so small that a model as small as the trainer's GPT keeps it busy.
    {"SG4", "GH100", "none", 9, 0, 4, 100, 10, 1250, 32, 1 * kGiB, 64, 2, 205, 1 * kMiB, 228 * kKiB,
     227 * kKiB, 2048, 32},
};

}  // namespace

std::span<const Chip> chips() { return kChips; }

const Chip* find_chip(std::string_view name) {
  for (const Chip& chip : kChips)
    if (name == chip.name) return &chip;
  return nullptr;
}

}  // namespace simgpu
