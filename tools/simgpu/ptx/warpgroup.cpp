// wgmma: products of a group of four warps, with matrices in shared memory that descriptors name.
//
// A warp has 16 rows of A and of D, in the places of mma.m16n8k16 with further columns of D by
// eights. They are a product of their own, done when the instruction is issued: what a program may
// touch before wgmma.wait_group cannot tell. Source: PTX ISA, 9.7.15.5.1 (layouts, descriptors).
#include <cstring>

#include "ptx/elements.h"
#include "ptx/instructions.h"
#include "ptx/products.h"

namespace simgpu::ptx {
namespace {

constexpr uint32_t kRows = 16, kMostColumns = 256, kMostDepth = 32;
constexpr uint32_t kUnit = 16;  // bytes that layouts move as one

struct Form {
  uint32_t n = 0, k = 0;
  Element d = Element::kNone, a = Element::kNone, b = Element::kNone;
  bool a_in_registers = false, saturate = false;
  bool transposed_a = false, transposed_b = false;  // rows, not k, are next to each other
  bool negated_a = false, negated_b = false;

  bool operator==(const Form&) const = default;
};

// A matrix in shared memory: where the element of a row (a column of B) and a place along k is.
class Stored {
 public:
  Stored(uint64_t descriptor, uint32_t element_bytes, bool transposed)
      : start_(field(descriptor, 0)),
        leading_(field(descriptor, 16)),
        stride_(field(descriptor, 32)),
        base_(static_cast<uint32_t>(descriptor >> 49 & 7)),
        element_bytes_(element_bytes),
        transposed_(transposed) {
    constexpr uint32_t kWidths[] = {kUnit, 128, 64, 32};
    width_ = kWidths[descriptor >> 62];
  }

  uint32_t address(uint32_t row, uint32_t k) const {
    const uint32_t units = width_ / kUnit;
    uint32_t offset = 0;
    if (!transposed_) {
      const uint32_t along = k * element_bytes_;
      offset = row % 8 * width_ + row / 8 * stride_ +
               (units == 1 ? along / kUnit * leading_ + along % kUnit : along);
    } else {
      const uint32_t along = row * element_bytes_, unit = along / kUnit;
      offset = along % kUnit + k % 8 * width_ +
               (units == 1 ? unit * stride_ + k / 8 * leading_
                           : unit % units * kUnit + unit / units * leading_ + k / 8 * stride_);
    }
    const uint32_t at = start_ + offset;
    return at ^ (((at >> 7) - base_) & (units - 1)) << 4;
  }
  bool transposed() const { return transposed_; }

 private:
  static uint32_t field(uint64_t descriptor, int shift) {
    return static_cast<uint32_t>(descriptor >> shift & 0x3fff) << 4;
  }

  uint32_t start_, leading_, stride_, base_, element_bytes_;
  uint32_t width_ = kUnit;  // bytes of a row of the pattern that is swizzled
  bool transposed_;
};

// Calls `put` with each element's row, its place along k and its value.
template <class T, class Put>
void read(Warp& warp, const Stored& matrix, Element of, bool negated, uint32_t first_row,
          uint32_t rows, uint32_t depth, const Put& put) {
  with_source<T>(of, [&](auto element) {
    const uint32_t bytes = row_of(element).bytes, in_unit = kUnit / bytes;
    const auto read_unit = [&](uint32_t row, uint32_t k, const auto& each) {
      const std::byte* at = at_address(warp, 0, matrix.address(first_row + row, k), kUnit,
                                       Space::kShared, Access::kRead);
      for (uint32_t i = 0; i < in_unit; ++i, at += bytes) {
        uint64_t bits = 0;
        std::memcpy(&bits, at, bytes);
        const auto value = static_cast<T>(value_of(element, bits));
        each(i, negated ? -value : value);
      }
    };
    if (matrix.transposed()) {
      for (uint32_t k = 0; k < depth; ++k)
        for (uint32_t row = 0; row < rows; row += in_unit)
          read_unit(row, k, [&](uint32_t i, T value) { put(row + i, k, value); });
    } else {
      for (uint32_t row = 0; row < rows; ++row)
        for (uint32_t k = 0; k < depth; k += in_unit)
          read_unit(row, k, [&](uint32_t i, T value) { put(row, k + i, value); });
    }
  });
}

template <class T>
struct Matrices {  // row by row
  alignas(16) T a[kRows * kMostDepth], b[kMostDepth * kMostColumns], d[kRows * kMostColumns];
};

uint32_t row_in_d(uint32_t i, uint32_t lane) { return lane / 4 + 8 * (i / 2 % 2); }
uint32_t column_in_d(uint32_t i, uint32_t lane) { return 8 * (i / 4) + 2 * (lane % 4) + i % 2; }

template <class T>
void multiply_as(Warp& warp, const Code& code, const Form& form) {
  Matrices<T> all;
  const uint32_t* const d = warp.routine().lists.data() + code.c;
  const uint32_t elements = kRows * form.n / kLanes;
  const uint32_t* const a = d + elements * row_of(form.d).bytes / 4;
  const uint32_t* const b = a + (form.a_in_registers ? 4 : 1);
  const uint32_t bytes = row_of(form.a).bytes;
  const uint32_t first_row = warp.number % 4 * kRows;
  if (form.a_in_registers) {
    const uint32_t each = 4 / bytes;  // of a register
    for (uint32_t l = 0; l < kLanes; ++l)
      for (uint32_t i = 0; i < 4 * each; ++i) {
        const uint32_t r = i / each, row = l / 4 + 8 * (r % 2);
        const uint32_t k = r / 2 * 4 * each + l % 4 * each + i % each;
        const auto value = static_cast<T>(value_of(form.a, element_bits(warp, a, form.a, i, l)));
        all.a[row * form.k + k] = form.negated_a ? -value : value;
      }
  } else {
    read<T>(warp, Stored(warp.longs(*a)[0], bytes, form.transposed_a), form.a, form.negated_a,
            first_row, kRows, form.k,
            [&](uint32_t row, uint32_t k, T value) { all.a[row * form.k + k] = value; });
  }
  read<T>(warp, Stored(warp.longs(*b)[0], bytes, form.transposed_b), form.b, form.negated_b, 0,
          form.n, form.k,
          [&](uint32_t column, uint32_t k, T value) { all.b[k * form.n + column] = value; });
  const bool adds = (*warp.words(b[1]) & 1) != 0;
  with_sum<T>(form.d, [&](auto type) {
    for (uint32_t i = 0; i < elements; ++i)
      for (uint32_t l = 0; l < kLanes; ++l)
        all.d[row_in_d(i, l) * form.n + column_in_d(i, l)] =
            adds ? static_cast<T>(value_of(type, element_bits(warp, d, type, i, l))) : T{};
  });
  add_product<Sums::kBeginWithZero>(all.a, all.b, all.d, kRows, form.n, form.k);
  with_sum<T>(form.d, [&](auto type) {
    for (uint32_t i = 0; i < elements; ++i)
      for (uint32_t l = 0; l < kLanes; ++l) {
        const auto value = static_cast<double>(all.d[row_in_d(i, l) * form.n + column_in_d(i, l)]);
        put_bits(warp, d, type, i, l, bits_of(type, value, form.saturate));
      }
  });
}

Count kind_of(Element source) {
  switch (row_of(source).count) {
    case Count::kTensorFp16:
      return Count::kGroupFp16;
    case Count::kTensorBf16:
      return Count::kGroupBf16;
    case Count::kTensorTf32:
      return Count::kGroupTf32;
    case Count::kTensorFp8:
      return Count::kGroupFp8;
    default:
      return Count::kGroupInt8;
  }
}

void multiply(Warp& warp, const Code& code, uint32_t) {
  const Form& form = KeptForms<Form>::at(code.b);
  if (form.d == Element::kS32)
    multiply_as<double>(warp, code, form);
  else
    multiply_as<float>(warp, code, form);
  Counts& counts = warp.memory->counts;
  counts[kind_of(form.a)] += uint64_t{2} * kRows * form.n * form.k;
  ++counts[Count::kGroupInstructions];
}

bool depth_fits(const Form& form) {
  switch (form.a) {
    case Element::kF16:
    case Element::kBf16:
      return form.k == 16 && form.a == form.b;
    case Element::kTf32:
      return form.k == 8 && form.b == Element::kTf32;
    case Element::kS8:
    case Element::kU8:
      return form.k == 32 && row_of(form.b).count == Count::kTensorInt8;
    case Element::kE4m3:
    case Element::kE5m2:
      return form.k == 32 && row_of(form.b).count == Count::kTensorFp8;
    default:
      return false;
  }
}
bool sum_fits(const Form& form) {
  const bool narrow = form.a == Element::kF16 || row_of(form.a).count == Count::kTensorFp8;
  if (row_of(form.a).count == Count::kTensorInt8) return form.d == Element::kS32;
  return form.d == Element::kF32 || (form.d == Element::kF16 && narrow);
}

// An operand behind scale-d; false where it is none of these two numbers.
bool chosen(const Operand& one, uint64_t off, uint64_t on, bool& is_on) {
  if (one.kind != Operand::Kind::kInteger || (one.value != off && one.value != on)) return false;
  is_on = one.value == on;
  return true;
}

}  // namespace

bool warpgroup_code(const Instruction& one, Code& code, std::string& problem) {
  Form form;
  std::vector<Element> types;
  for (size_t i = 2; i < one.words.size(); ++i) {
    const std::string& word = one.words[i];
    char end = 0;
    unsigned m = 0, n = 0, k = 0;
    if (word == "sync" || word == "aligned") continue;
    if (word == "satfinite") {
      form.saturate = true;
    } else if (std::sscanf(word.c_str(), "m%un%uk%u%c", &m, &n, &k, &end) == 3) {
      if (m != 64 || n == 0 || n % 8 != 0 || n > kMostColumns || k > kMostDepth) {
        problem = "its shape";
        return false;
      }
      form.n = n, form.k = k;
    } else if (const ElementRow* const type = element_of(word)) {
      types.push_back(type->element);
    } else {
      problem = "." + word;
      return false;
    }
  }
  if (types.size() != 3 || form.n == 0) return false;
  form.d = types[0], form.a = types[1], form.b = types[2];
  if (!depth_fits(form) || !sum_fits(form)) {
    problem = "its shape and types";
    return false;
  }
  // d, a, b, scale-d; but for integers, the signs of a and b; of 16 bits, which way they lie.
  const size_t given = one.operands.size();
  const bool integers = row_of(form.a).count == Count::kTensorInt8;
  if (given < 4) return false;
  form.a_in_registers = one.operands[1].kind == Operand::Kind::kVector;
  const bool lies = row_of(form.a).bytes == 2;
  const size_t wanted = integers ? 4 : !lies ? 6 : form.a_in_registers ? 7 : 8;
  if (given != wanted) {
    problem = "its number of operands";
    return false;
  }
  const size_t registers = kRows * form.n / kLanes * row_of(form.d).bytes / 4;
  if (one.operands[0].kind != Operand::Kind::kVector || one.operands[0].parts.size() != registers ||
      (form.a_in_registers && one.operands[1].parts.size() != 4)) {
    problem = "its number of registers";
    return false;
  }
  constexpr uint64_t kMinus = ~uint64_t{0};
  bool fine = integers || (chosen(one.operands[4], 1, kMinus, form.negated_a) &&
                           chosen(one.operands[5], 1, kMinus, form.negated_b));
  if (lies) {
    size_t at = 6;
    if (!form.a_in_registers) fine = fine && chosen(one.operands[at++], 0, 1, form.transposed_a);
    fine = fine && chosen(one.operands[at], 0, 1, form.transposed_b);
  }
  if (!fine) {
    problem = "an operand that is to be 0, 1 or -1";
    return false;
  }
  code.handler = &multiply;
  return KeptForms<Form>::keep(form, code.b);
}

}  // namespace simgpu::ptx
