// gpu::mma: products of 16 x 16 tiles, as a warp's tensor core instructions do them, that count.
//
// One call counts 2 * 16 * 16 * 16 operations of its source type (kTensorFp16, kTensorBf16,
// kTensorTf32), whatever the tile holds: padding is work, as sm__ops_path_tensor_* sees it. It
// counts the warp-level instructions (kTensorInstructions) that compute capability 8.0 needs for
// it: 2 HMMA.16816 for 16-bit sources, 4 HMMA.1688 for tf32. No FFMA and no conversion is counted.
#pragma once
#include <simgpu/sim/half.h>

#include <bit>
#include <type_traits>

namespace gpu {

// A float that keeps 7 (bf16) or 10 (tf32) bits of its mantissa, rounded to nearest even. They
// store and convert; arithmetic is mma's.
class bf16 {
 public:
  bf16() = default;
  constexpr explicit bf16(f32 v) : bits_(rounded(float(v))) {}
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits_) << 16);
  }

 private:
  static constexpr uint16_t rounded(float v) {
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    if (v != v) return static_cast<uint16_t>(bits >> 16 | 0x40U);
    return static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
  }
  uint16_t bits_;
};

class tf32 {
 public:
  tf32() = default;
  constexpr explicit tf32(f32 v) : v_(rounded(float(v))) {}
  constexpr explicit operator float() const { return v_; }

 private:
  static constexpr float rounded(float v) {
    if (v != v) return v;
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    return std::bit_cast<float>((bits + 0xfffU + (bits >> 13 & 1U)) & ~0x1fffU);
  }
  float v_;
};

static_assert(sizeof(bf16) == 2 && std::is_trivially_copyable_v<bf16>);
static_assert(sizeof(tf32) == 4 && std::is_trivially_copyable_v<tf32>);

template <class T>
T narrow(f32 v) {
  return T(v);
}

}  // namespace gpu

namespace simgpu {

// What operations on matrices of T count as, and how many instructions a product takes.
struct MatrixCount {
  Count operations;
  uint64_t instructions;
};
template <class T>
inline constexpr MatrixCount kMatrixCount{Count::kTensorFp16, 2};
template <>
inline constexpr MatrixCount kMatrixCount<gpu::bf16>{Count::kTensorBf16, 2};
template <>
inline constexpr MatrixCount kMatrixCount<gpu::tf32>{Count::kTensorTf32, 4};

}  // namespace simgpu

namespace gpu {

// c += a * b, all 16 x 16 and row-major, in shared memory. All threads of a warp (32 in x) call it
// together, after gpu::sync(), and read `c` after another. Here the warp's first thread does the
// work. Sums are rounded once per call and element, which hardware does not promise.
template <class T>
void mma(const T* a, const T* b, f32* c) {
  constexpr int kTile = 16;
  if (thread_index().x % 32 != 0) return;
  simgpu::count(simgpu::kMatrixCount<T>.operations, 2 * kTile * kTile * kTile);
  simgpu::count(simgpu::Count::kTensorInstructions, simgpu::kMatrixCount<T>.instructions);
  for (int row = 0; row < kTile; ++row)
    for (int column = 0; column < kTile; ++column) {
      double sum = double(c[row * kTile + column]);
      for (int k = 0; k < kTile; ++k)
        sum += static_cast<double>(float(a[row * kTile + k])) *
               static_cast<double>(float(b[k * kTile + column]));
      c[row * kTile + column] = f32(static_cast<float>(sum));
    }
}

}  // namespace gpu
