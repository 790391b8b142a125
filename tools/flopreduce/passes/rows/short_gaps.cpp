#include "passes/rows/short_gaps.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <numeric>

namespace flopinj::reduce {
namespace {

#if defined(__x86_64__)
const bool kHasAvx2 = __builtin_cpu_supports("avx2");

__attribute__((target("avx2"))) inline __m256i load(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
__attribute__((target("avx2"))) inline __m256i all(uint64_t value) {
  return _mm256_set1_epi64x(static_cast<int64_t>(value));
}

// Times are below 2^63: they may be compared with signs. `sums` has kAtOnce lanes for each place;
// `one` is what a gap adds to its place beside its length.
__attribute__((target("avx2"))) const BusyInterval* add_between_avx2(
    const BusyInterval* at, const BusyInterval* end, uint64_t covered, uint64_t most, uint64_t one,
    uint64_t (*sums)[ShortGaps::kAtOnce], size_t places) {
  const auto add_from = [&](size_t place, uint64_t least, __m256i gap)
      __attribute__((target("avx2"))) {
    auto* const sum = reinterpret_cast<__m256i*>(sums[place]);
    const __m256i counts = _mm256_cmpgt_epi64(gap, all(least - 1));
    const __m256i added = _mm256_and_si256(counts, _mm256_or_si256(gap, all(one)));
    _mm256_storeu_si256(sum, _mm256_add_epi64(load(sum), added));
  };
  const __m256i length_bits = all(BusyInterval::kLongest);
  const __m256i before = all(covered);
  const __m256i longest = all(most);
  for (; end - at >= ShortGaps::kAtOnce; at += ShortGaps::kAtOnce) {
    // In whatever order the four come, it is the same for all.
    const __m256i begin = _mm256_unpacklo_epi64(load(at), load(at + 2));
    const __m256i previous = load(at - 1), previous_2 = load(at + 1);
    const __m256i ended = _mm256_add_epi64(
        _mm256_unpacklo_epi64(previous, previous_2),
        _mm256_and_si256(_mm256_unpackhi_epi64(previous, previous_2), length_bits));
    const __m256i covered_to = _mm256_blendv_epi8(ended, before, _mm256_cmpgt_epi64(before, ended));
    const __m256i gap = _mm256_sub_epi64(begin, covered_to);  // not above 0: none
    const __m256i refused =
        _mm256_or_si256(_mm256_sub_epi64(begin, ended), _mm256_sub_epi64(longest, gap));
    if (_mm256_movemask_pd(_mm256_castsi256_pd(refused)) != 0) break;
    add_from(1, 1, gap);
    add_from(2, 10, gap);
    add_from(3, 100, gap);
    add_from(4, 1'000, gap);
    const __m256i longer = _mm256_cmpgt_epi64(gap, all(9'999));
    if (_mm256_testz_si256(longer, longer) != 0) [[likely]]
      continue;
    uint64_t least = 10'000;
    for (size_t place = 5; place < places; ++place, least *= 10) add_from(place, least, gap);
  }
  return at;
}
#endif

}  // namespace

// How many are added at once is this function's to choose; the caller adds the rest.
const BusyInterval* ShortGaps::add_between(const BusyInterval* at, const BusyInterval* end,
                                           uint64_t covered, uint64_t most) {
#if defined(__x86_64__)
  if (kHasAvx2) return add_between_avx2(at, end, covered, most, kOne, at_least_, kPlaces);
#else
  (void)end, (void)covered, (void)most;
#endif
  return at;
}

uint64_t ShortGaps::move_to(BusyTime& sums) {
  uint64_t all = 0;
  uint64_t longer = 0;
  for (size_t place = kPlaces; --place > 0;) {
    const auto& lanes = at_least_[place];
    const uint64_t from_here = std::accumulate(std::begin(lanes), std::end(lanes), uint64_t{0});
    const uint64_t both = places_[place] + from_here - longer;
    longer = from_here;
    BusyTime::Decade& decade = sums.idle[place - 1];
    const uint64_t ns = both & (kOne - 1);
    decade.gaps += both >> kSumBits;
    decade.ns += ns;
    all += ns;
  }
  *this = {};
  return all;
}

}  // namespace flopinj::reduce
