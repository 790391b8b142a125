// Products of matrices that lie in memory row by row, aligned to 16 bytes.
#pragma once
#include <cstdint>

namespace simgpu::ptx {

enum class Sums { kBeginWithC, kBeginWithZero };  // and are added to c then

// c += a b, of a multiple of 8 rows and of 8 columns. The sums of several rows at once are in
// registers: an addition waits for none but the one before it in its own sum. Each sum has its
// products in the order of k.
template <Sums begin, class T>
void add_product(const T* a, const T* b, T* c, uint32_t rows, uint32_t columns, uint32_t depth) {
  using Vector [[gnu::vector_size(16), gnu::may_alias]] = T;
  constexpr uint32_t kVectors = 8, kVector = 16 / sizeof(T);
  constexpr uint32_t kAcross = 8 / kVector, kRows = kVectors / kAcross;
  for (uint32_t m = 0; m < rows; m += kRows)
    for (uint32_t n = 0; n < columns; n += 8) {
      const auto into = [&](uint32_t i) -> Vector& {
        return reinterpret_cast<Vector*>(c + (m + i / kAcross) * columns + n)[i % kAcross];
      };
      Vector sums[kVectors];
#pragma GCC unroll 8
      for (uint32_t i = 0; i < kVectors; ++i)
        sums[i] = begin == Sums::kBeginWithC ? into(i) : Vector{};
      for (uint32_t k = 0; k < depth; ++k) {
        const auto* const row = reinterpret_cast<const Vector*>(b + k * columns + n);
#pragma GCC unroll 8
        for (uint32_t i = 0; i < kVectors; ++i)
          sums[i] += a[(m + i / kAcross) * depth + k] * row[i % kAcross];
      }
#pragma GCC unroll 8
      for (uint32_t i = 0; i < kVectors; ++i)
        into(i) = begin == Sums::kBeginWithC ? sums[i] : into(i) + sums[i];
    }
}

}  // namespace simgpu::ptx
