// Elements of matrices, in registers and as numbers.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <mutex>

#include "ptx/machine.h"
#include "ptx/narrow.h"

namespace simgpu::ptx {

enum class Element : uint8_t {
  kNone,
  kF16,
  kBf16,
  kTf32,
  kF32,
  kF64,
  kS8,
  kU8,
  kE4m3,
  kE5m2,
  kS32
};

struct ElementRow {
  std::string_view name;
  Element element;
  uint32_t bytes;
  Count count;
};
inline constexpr ElementRow kElements[] = {
    {"f16", Element::kF16, 2, Count::kTensorFp16},
    {"bf16", Element::kBf16, 2, Count::kTensorBf16},
    {"tf32", Element::kTf32, 4, Count::kTensorTf32},
    {"f32", Element::kF32, 4, Count::kTensorTf32},
    {"f64", Element::kF64, 8, Count::kTensorFp64},
    {"s8", Element::kS8, 1, Count::kTensorInt8},
    {"u8", Element::kU8, 1, Count::kTensorInt8},
    {"e4m3", Element::kE4m3, 1, Count::kTensorFp8},
    {"e5m2", Element::kE5m2, 1, Count::kTensorFp8},
    {"s32", Element::kS32, 4, Count::kTensorInt8},
};
static_assert([] {  // in the order of Element, behind kNone
  size_t number = 0;
  for (const ElementRow& row : kElements)
    if (static_cast<size_t>(row.element) != ++number) return false;
  return true;
}());
inline const ElementRow* element_of(std::string_view name) {
  for (const ElementRow& row : kElements)
    if (row.name == name) return &row;
  return nullptr;
}
constexpr const ElementRow& row_of(Element element) {
  return kElements[static_cast<size_t>(element) - 1];
}

// Of each element of each matrix: inline, this costs little where the type is a constant.
[[gnu::always_inline]] inline double value_of(Element element, uint64_t bits) {
  switch (element) {
    case Element::kF16:
      return half_to_float(static_cast<uint32_t>(bits & 0xffff));
    case Element::kBf16:
      return bfloat_to_float(static_cast<uint32_t>(bits & 0xffff));
    case Element::kTf32:  // of a float that was not converted the lower bits do not count
      return std::bit_cast<float>(static_cast<uint32_t>(bits) & ~0x1fffU);
    case Element::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case Element::kF64:
      return std::bit_cast<double>(bits);
    case Element::kS8:
      return static_cast<int8_t>(bits);
    case Element::kU8:
      return static_cast<uint8_t>(bits);
    case Element::kE4m3:
      return E4m3::decode(static_cast<uint32_t>(bits & 0xff));
    case Element::kE5m2:
      return E5m2::decode(static_cast<uint32_t>(bits & 0xff));
    case Element::kS32:
      return static_cast<int32_t>(bits);
    default:
      return 0;
  }
}
[[gnu::always_inline]] inline uint64_t bits_of(Element element, double value,
                                               bool saturate = false) {
  switch (element) {
    case Element::kF16:
      return Half::encode(value);
    case Element::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Element::kF64:
      return std::bit_cast<uint64_t>(value);
    case Element::kS32:
      if (saturate) value = std::clamp<double>(value, INT32_MIN, INT32_MAX);
      return static_cast<uint32_t>(static_cast<int64_t>(value));
    default:
      return 0;
  }
}

// Element `i` of a lane's registers, that begin at `places`.
[[gnu::always_inline]] inline uint64_t element_bits(const Warp& warp, const uint32_t* places,
                                                    Element element, uint32_t i, uint32_t lane) {
  const uint32_t bytes = row_of(element).bytes;
  if (bytes == 8) return warp.longs(places[i])[lane];
  const uint32_t each = 4 / bytes;
  return warp.words(places[i / each])[lane] >> (8 * bytes * (i % each));
}
[[gnu::always_inline]] inline void put_bits(const Warp& warp, const uint32_t* places,
                                            Element element, uint32_t i, uint32_t lane,
                                            uint64_t bits) {
  const uint32_t bytes = row_of(element).bytes;
  if (bytes == 8) {
    warp.longs(places[i])[lane] = bits;
    return;
  }
  const uint32_t each = 4 / bytes, shift = 8 * bytes * (i % each);
  const uint32_t mask = bytes == 4 ? 0xffff'ffffU : ((1U << (8 * bytes)) - 1) << shift;
  uint32_t& word = warp.words(places[i / each])[lane];
  word = (word & ~mask) | (static_cast<uint32_t>(bits) << shift & mask);
}

// Calls `use` with the type of a product's elements, or of its sums, as it is compiled. Sums are
// worked out as T.
template <Element element>
using Known = std::integral_constant<Element, element>;
template <class T, class Use>
void with_source(Element element, const Use& use) {
  using enum Element;
  if constexpr (std::is_same_v<T, double>) {
    if (element == kF64) return use(Known<kF64>());
    if (element == kS8) return use(Known<kS8>());
    return use(Known<kU8>());
  } else {
    if (element == kF16) return use(Known<kF16>());
    if (element == kBf16) return use(Known<kBf16>());
    if (element == kTf32) return use(Known<kTf32>());
    if (element == kE4m3) return use(Known<kE4m3>());
    return use(Known<kE5m2>());
  }
}
template <class T, class Use>
void with_sum(Element element, const Use& use) {
  using enum Element;
  if constexpr (std::is_same_v<T, double>)
    return element == kF64 ? use(Known<kF64>()) : use(Known<kS32>());
  else
    return element == kF16 ? use(Known<kF16>()) : use(Known<kF32>());
}

// The forms of instructions that were decoded: a code has the number of its form. What is kept
// stays, so that it is read without a lock.
template <class Form>
class KeptForms {
 public:
  // False: there are too many.
  static bool keep(const Form& form, uint32_t& number) {
    Kept& kept = all();
    const std::lock_guard lock(kept.mutex);
    const auto end = kept.forms.begin() + kept.count;
    const auto it = std::find(kept.forms.begin(), end, form);
    if (it == kept.forms.end()) return false;
    number = static_cast<uint32_t>(it - kept.forms.begin());
    if (it == end) {
      *it = form;
      ++kept.count;
    }
    return true;
  }
  static const Form& at(uint32_t number) { return all().forms[number]; }

 private:
  struct Kept {
    std::mutex mutex;
    std::array<Form, 4096> forms{};
    ptrdiff_t count = 0;
  };
  static Kept& all() {
    static auto* const made = new Kept;
    return *made;
  }
};

}  // namespace simgpu::ptx
