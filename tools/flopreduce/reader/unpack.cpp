#include "reader/unpack.h"

#include <immintrin.h>

#include <array>

namespace flopinj::reduce {
namespace {

// What the first bytes of a word hold, by which of its eight bytes go on (have their highest bit set): up
// to four numbers of up to four bytes, each whole.
struct Layout {
  static constexpr size_t kNumbers = 4, kLongest = 4, kWord = 8;
  alignas(16) std::array<uint8_t, 16> byte{};  // of each number's four places; 0x80: none
  uint8_t numbers = 0, bytes = 0;              // 0 where the first is longer
};

constexpr Layout layout_of(size_t goes_on) {
  Layout layout;
  layout.byte.fill(0x80);
  while (layout.numbers < Layout::kNumbers) {
    size_t length = 1;
    while (layout.bytes + length < Layout::kWord &&
           (goes_on >> (layout.bytes + length - 1) & 1) != 0)
      ++length;
    const size_t last = layout.bytes + length - 1;
    if (last >= Layout::kWord || (goes_on >> last & 1) != 0 || length > Layout::kLongest) break;
    for (size_t i = 0; i < length; ++i)
      layout.byte[layout.numbers * Layout::kLongest + i] = static_cast<uint8_t>(layout.bytes + i);
    layout.bytes = static_cast<uint8_t>(last + 1);
    ++layout.numbers;
  }
  return layout;
}

constexpr auto kLayouts = [] {
  std::array<Layout, 256> layouts{};
  for (size_t i = 0; i < layouts.size(); ++i) layouts[i] = layout_of(i);
  return layouts;
}();

__attribute__((target("avx2"))) void unpack_signed_avx2(PackedColumn& column, size_t count,
                                                        int64_t* to) {
  const __m128i seven_bits = _mm_set1_epi8(0x7F);
  const __m128i bytes_to_pairs = _mm_set1_epi16(static_cast<int16_t>(0x8001));  // 1, 2^7
  const __m128i pairs_to_numbers = _mm_set1_epi32(0x4000 << 16 | 1);            // 1, 2^14
  const __m128i one = _mm_set1_epi32(1);
  const uint8_t* at = column.at();
  int64_t* const end = to + count;
  while (to + Layout::kNumbers <= end) {
    const __m128i word = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    const Layout& layout = kLayouts[static_cast<unsigned>(_mm_movemask_epi8(word))];
    if (layout.numbers == 0) [[unlikely]] {
      column.move_to(at);
      *to++ = column.next_signed_there();
      at = column.at();
      continue;
    }
    const __m128i places = _mm_shuffle_epi8(
        word, _mm_load_si128(reinterpret_cast<const __m128i*>(layout.byte.data())));
    const __m128i pairs = _mm_maddubs_epi16(bytes_to_pairs, _mm_and_si128(places, seven_bits));
    const __m128i numbers = _mm_madd_epi16(pairs, pairs_to_numbers);
    const __m128i sign = _mm_sub_epi32(_mm_setzero_si128(), _mm_and_si128(numbers, one));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_cvtepi32_epi64(_mm_xor_si128(_mm_srli_epi32(numbers, 1), sign)));
    at += layout.bytes;
    to += layout.numbers;
  }
  column.move_to(at);
  while (to != end) *to++ = column.next_signed_there();
}

}  // namespace

void unpack_signed_one_by_one(PackedColumn& column, size_t count, int64_t* to) {
  PackedColumn here = column;  // a copy stays in registers
  for (size_t i = 0; i < count; ++i) to[i] = here.next_signed_there();
  column = here;
}

void unpack_signed(PackedColumn& column, size_t count, int64_t* to) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2)
    unpack_signed_avx2(column, count, to);
  else
    unpack_signed_one_by_one(column, count, to);
}

}  // namespace flopinj::reduce
