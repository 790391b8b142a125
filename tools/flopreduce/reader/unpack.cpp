#include "reader/unpack.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <array>

namespace flopinj::reduce {
namespace {

#if defined(__x86_64__)
// What the first bytes of a word hold, by which of its eight bytes go on (have their highest bit
// set): up to four numbers of up to four bytes, each whole.
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

// One column on its way into memory.
class Unpacking {
 public:
  Unpacking(PackedColumn& column, size_t count, int64_t* to)
      : column_(column), at_(column.at()), to_(to), end_(to + count) {}
  bool some_left() const { return to_ + Layout::kNumbers <= end_; }

  __attribute__((target("avx2"), always_inline)) void take_some() {
    const __m128i word = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at_));
    const Layout& layout = kLayouts[static_cast<unsigned>(_mm_movemask_epi8(word))];
    if (layout.numbers == 0) [[unlikely]]
      return take_long();
    const __m128i places = _mm_shuffle_epi8(
        word, _mm_load_si128(reinterpret_cast<const __m128i*>(layout.byte.data())));
    const __m128i bytes_to_pairs = _mm_set1_epi16(static_cast<int16_t>(0x8001));  // 1, 2^7
    const __m128i pairs =
        _mm_maddubs_epi16(bytes_to_pairs, _mm_and_si128(places, _mm_set1_epi8(0x7F)));
    const __m128i pairs_to_numbers = _mm_set1_epi32(0x4000 << 16 | 1);  // 1, 2^14
    const __m128i numbers = _mm_madd_epi16(pairs, pairs_to_numbers);
    const __m128i sign =
        _mm_sub_epi32(_mm_setzero_si128(), _mm_and_si128(numbers, _mm_set1_epi32(1)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to_),
                        _mm256_cvtepi32_epi64(_mm_xor_si128(_mm_srli_epi32(numbers, 1), sign)));
    at_ += layout.bytes;
    to_ += layout.numbers;
  }
  void take_rest() {
    column_.move_to(at_);
    while (to_ != end_) *to_++ = column_.next_signed_there();
  }

 private:
  __attribute__((always_inline)) void take_long() {
    column_.move_to(at_);
    *to_++ = column_.next_signed_there();
    at_ = column_.at();
  }

  PackedColumn& column_;
  const uint8_t* at_;
  int64_t* to_;
  int64_t* const end_;
};

// Where a number begins is known when the one before it is: the columns wait for themselves, not
// for each other.
__attribute__((target("avx2"))) void unpack_signed_avx2(PackedColumn& first, PackedColumn& second,
                                                        size_t count, int64_t* to_first,
                                                        int64_t* to_second) {
  Unpacking a(first, count, to_first);
  Unpacking b(second, count, to_second);
  while (a.some_left() && b.some_left()) {
    a.take_some();
    b.take_some();
  }
  while (a.some_left()) a.take_some();
  while (b.some_left()) b.take_some();
  a.take_rest();
  b.take_rest();
}

#endif

void unpack_one(PackedColumn& column, size_t count, int64_t* to) {
  PackedColumn here = column;  // a copy stays in registers
  for (size_t i = 0; i < count; ++i) to[i] = here.next_signed_there();
  column = here;
}

}  // namespace

void unpack_signed_one_by_one(PackedColumn& first, PackedColumn& second, size_t count,
                              int64_t* to_first, int64_t* to_second) {
  unpack_one(first, count, to_first);
  unpack_one(second, count, to_second);
}

void unpack_signed(PackedColumn& first, PackedColumn& second, size_t count, int64_t* to_first,
                   int64_t* to_second) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return unpack_signed_avx2(first, second, count, to_first, to_second);
#endif
  unpack_signed_one_by_one(first, second, count, to_first, to_second);
}

}  // namespace flopinj::reduce
