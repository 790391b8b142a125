// What a simulated kernel did, counted while it ran. The vocabulary of both simgpu libraries.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace simgpu {

// One entry per kind of work. The first twelve are thread-level instructions. A packed half2
// operation is one instruction (two operations for add and mul, four for fma); half instructions of
// a single value, which hardware's SASS counters cannot tell from these, have entries of their own.
// Two single-precision operations in one instruction (f32x2) count as two. Tensor entries are
// operations with a fused multiply-add counted as two, as sm__ops_path_tensor_* does, by source
// precision.
enum class Count : uint32_t {
  // clang-format off
  kFadd, kFmul, kFfma,
  kDadd, kDmul, kDfma,
  kHadd, kHmul, kHfma,
  kHaddOne, kHmulOne, kHfmaOne,     // fp16 and bf16
  kTensorFp16, kTensorBf16, kTensorTf32, kTensorFp64, kTensorFp8, kTensorInt8,
  kTensorFp16ToFp16,                // with sums in fp16
  kTensorInt8Sparse,
  kTensorInstructions,              // of the kinds above, of a warp
  kGroupFp16, kGroupBf16, kGroupTf32, kGroupFp8, kGroupInt8,  // of groups of four warps
  kGroupInstructions,               // of these, of each warp
  // Each 32-byte sector once per launch and direction: an ideal cache.
  kDramReadBytes, kDramWriteBytes,
  // Thread instructions of PTX that machine code makes several of, or scales: they count nothing
  // themselves. The first six are rounded correctly, the others approximate. A sine and a cosine
  // of the same value count once: they share the product with 1 / 2 pi.
  kDivF32, kDivF64, kRcpF32, kRcpF64, kSqrtF32, kSqrtF64,
  kApproxDivF32, kFullDivF32, kApproxRcpF32, kApproxSqrtF32, kApproxRsqrtF32, kApproxEx2F32,
  kApproxLg2F32, kApproxSinCosF32,
  // Atomic sums in shared memory: machine code adds, and again if another thread came between.
  kSharedAddF32, kSharedAddF64,
  // clang-format on
  kThreads,  // threads that ran
  kCountKinds
};

struct Counts {
  std::array<uint64_t, static_cast<size_t>(Count::kCountKinds)> value{};

  uint64_t& operator[](Count c) { return value[static_cast<size_t>(c)]; }
  uint64_t operator[](Count c) const { return value[static_cast<size_t>(c)]; }
  Counts& operator+=(const Counts& o) {
    for (size_t i = 0; i < value.size(); ++i) value[i] += o.value[i];
    return *this;
  }
};

}  // namespace simgpu
