#include "passes/rows/place_rows.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace flopinj::reduce {
namespace {

// Launches [from, launches).
void place_rest(const PlaceColumns& c, size_t from, size_t launches, Placed& placed) {
  Placed p = placed;  // a copy stays in registers
  for (size_t i = from; i < launches; ++i) {
    const uint64_t duration = c.duration_ns[i];
    const uint64_t start = p.now + static_cast<uint64_t>(c.gap_ns[i]);
    p.now = start + duration;
    p.start_bits |= start;
    p.duration_bits |= duration;
    p.gap_bits |= c.gap_ns[i];
    p.duration_ns += duration;
    c.time_ns[i] += duration;
    c.interval[i] = {start, c.kernel[i] | duration};
  }
  placed = p;
}

#if defined(__x86_64__)
constexpr size_t kLanes = 4;

__attribute__((target("avx2"))) inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
__attribute__((target("avx2"))) inline void store(void* to, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), value);
}

__attribute__((target("avx2"))) void place_rows_avx2(const PlaceColumns& c, size_t launches,
                                                     Placed& placed) {
  __m256i now = _mm256_set1_epi64x(static_cast<int64_t>(placed.now));
  const __m256i zero = _mm256_setzero_si256();
  __m256i start_bits = zero, duration_bits = zero, gap_bits = zero, sum = zero;
  size_t i = 0;
  for (; i + kLanes <= launches; i += kLanes) {
    const __m256i duration = load(c.duration_ns + i);
    const __m256i gap = load(c.gap_ns + i);
    // From now to the end of each: of two that follow each other, then of the two pairs.
    __m256i passed = _mm256_add_epi64(gap, duration);
    passed = _mm256_add_epi64(passed, _mm256_slli_si256(passed, 8));
    const __m256i first_pair = _mm256_permute4x64_epi64(passed, 0b01010101);
    passed = _mm256_add_epi64(passed, _mm256_blend_epi32(zero, first_pair, 0b11110000));
    const __m256i end = _mm256_add_epi64(now, passed);
    const __m256i start = _mm256_sub_epi64(end, duration);
    now = _mm256_permute4x64_epi64(end, 0b11111111);
    start_bits = _mm256_or_si256(start_bits, start);
    duration_bits = _mm256_or_si256(duration_bits, duration);
    gap_bits = _mm256_or_si256(gap_bits, gap);
    sum = _mm256_add_epi64(sum, duration);
    store(c.time_ns + i, _mm256_add_epi64(load(c.time_ns + i), duration));
    const __m256i packed = _mm256_or_si256(load(c.kernel + i), duration);
    const __m256i even = _mm256_unpacklo_epi64(start, packed);
    const __m256i odd = _mm256_unpackhi_epi64(start, packed);
    store(c.interval + i, _mm256_permute2x128_si256(even, odd, 0x20));
    store(c.interval + i + 2, _mm256_permute2x128_si256(even, odd, 0x31));
  }
  uint64_t lanes[5][kLanes];
  size_t next = 0;
  for (const __m256i of : {now, start_bits, duration_bits, gap_bits, sum}) store(lanes[next++], of);
  placed.now = lanes[0][0];
  for (size_t k = 0; k < kLanes; ++k) {
    placed.start_bits |= lanes[1][k];
    placed.duration_bits |= lanes[2][k];
    placed.gap_bits |= static_cast<int64_t>(lanes[3][k]);
    placed.duration_ns += lanes[4][k];
  }
  place_rest(c, i, launches, placed);
}

const bool kHasAvx2 = __builtin_cpu_supports("avx2");
#endif

}  // namespace

void place_rows_one_by_one(const PlaceColumns& columns, size_t launches, Placed& placed) {
  place_rest(columns, 0, launches, placed);
}

void place_rows(const PlaceColumns& columns, size_t launches, Placed& placed) {
#if defined(__x86_64__)
  if (kHasAvx2) return place_rows_avx2(columns, launches, placed);
#endif
  place_rows_one_by_one(columns, launches, placed);
}

}  // namespace flopinj::reduce
