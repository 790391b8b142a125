// Matrix instructions: mma, wmma, ldmatrix, stmatrix, movmatrix.
//
// Layouts of mma and ldmatrix: PTX ISA, 9.7.14.5 (figures of fragments). With `elements` a register
// holds, lane = 4 * group + member: register r of A has row group + 8 * (r % 2) and columns
// (r / 2) * 4 * elements + member * elements on; B has them as rows, in column `group`; C has row
// group + 8 * (i / 2) and column 2 * member + i % 2. That is every shape whose A has 8 or 16 rows.
// wmma's layout is not documented: here a lane has consecutive elements of the matrix by rows.
//
// A of mma.sp has half of its elements: packed, they are where those of a matrix of k / 2 are.
// Which of 4 (of tf32: of 2) each one is says the metadata, 2 (4) bits each, the first ones in the
// low bits. Of a row they are in one lane of its group, or in several, the first part of the row in
// the first one; rows from 8 on in the upper halves, of 8-bit types in the next lanes. Sources: PTX
// ISA, 9.7.14.6, and CUTLASS's layouts of metadata (ELayout in mma_traits_sm90_gmma_sparse.hpp).
#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "ptx/elements.h"
#include "ptx/instructions.h"
#include "ptx/products.h"

namespace simgpu::ptx {
namespace {

constexpr uint32_t kMost = 32 * 32;  // elements of a matrix, at most

struct Form {
  uint32_t m = 0, n = 0, k = 0;
  Element d = Element::kNone, a = Element::kNone, b = Element::kNone, c = Element::kNone;
  bool sparse = false;    // a's places in a row are k / 2
  uint32_t selector = 0;  // which lanes of a group have the metadata
  bool saturate = false;  // sums of integers
  // wmma.load and store: which matrix, and how many rows and columns it has.
  uint32_t rows = 0, columns = 0;
  bool by_columns = false;
  // ldmatrix and stmatrix
  uint32_t matrices = 0;
  bool transposed = false;

  bool operator==(const Form&) const = default;
};

const Form& form_of(const Code& code) { return KeptForms<Form>::at(code.b); }

// Where elements of lanes are in a matrix that lies in memory row by row: element i of a lane is
// base + group * of its group + member * of its place there.
struct Places {
  uint32_t base, group, member;
};
[[gnu::always_inline]] inline uint32_t in_a_register(Element element) {
  const uint32_t bytes = row_of(element).bytes;
  return bytes >= 4 ? 1 : 4 / bytes;
}
[[gnu::always_inline]] inline Places places_in_a(const Form& form, Element element, uint32_t i) {
  const uint32_t elements = in_a_register(element), r = i / elements, rows = form.m / 8;
  return {8 * (r % rows) * form.k + r / rows * 4 * elements + i % elements, form.k, elements};
}
[[gnu::always_inline]] inline Places places_in_b(const Form& form, Element element, uint32_t i) {
  const uint32_t elements = in_a_register(element);
  return {(i / elements * 4 * elements + i % elements) * form.n, 1, elements * form.n};
}
[[gnu::always_inline]] inline Places places_in_c(const Form& form, uint32_t i) {
  return {8 * (i / 2) * form.n + i % 2, form.n, 2};
}
// wmma: a lane's elements follow one another.
[[gnu::always_inline]] inline Places places_in_a_row(uint32_t elements, uint32_t i) {
  return {i, 4 * elements, elements};
}
template <class Use>
[[gnu::always_inline]] inline void for_lanes(const Places& places, const Use& use) {
  for (uint32_t group = 0; group < kLanes / 4; ++group)
    for (uint32_t member = 0; member < 4; ++member)
      use(4 * group + member, places.base + group * places.group + member * places.member);
}

template <class T>
struct Matrices {
  alignas(16) T a[kMost], b[kMost], c[kMost];
};

// Of a sparse product the elements that there are count.
void count(Warp& warp, const Form& form) {
  const ElementRow& source = row_of(form.a);
  const uint64_t products = uint64_t{form.m} * form.n * form.k / (form.sparse ? 2 : 1);
  // What one machine instruction of compute capability 8.0 does.
  const bool integers = source.count == Count::kTensorInt8;
  const uint64_t at_once = form.a == Element::kF64 ? 8 * 8 * 4
                           : integers              ? 16 * 8 * 32
                                                   : 16 * 8 * (source.bytes == 4 ? 8 : 16);
  Counts& counts = warp.memory->counts;
  const Count kind = form.sparse && integers                              ? Count::kTensorInt8Sparse
                     : form.d == Element::kF16 && form.a == Element::kF16 ? Count::kTensorFp16ToFp16
                                                                          : source.count;
  counts[kind] += 2 * products;
  counts[Count::kTensorInstructions] += std::max<uint64_t>(products / at_once, 1);
}

// Which column of A a packed element is, by the metadata in `place`.
uint32_t column_of(const Warp& warp, const Form& form, uint32_t place, uint32_t row,
                   uint32_t packed) {
  const uint32_t bytes = row_of(form.a).bytes;
  const uint32_t chunk = packed / (bytes == 4 ? 1 : 2), each = bytes == 4 ? 2 : 4;
  const uint32_t part_columns = bytes == 1 ? 32 : bytes == 2 ? 16 : 8;
  const uint32_t parts = form.k / part_columns, part = chunk * each / part_columns;
  const uint32_t lane_in_group =
      bytes == 1 ? 2 * (form.selector + part) + row / 8 : form.selector * parts + part;
  uint32_t bits = warp.words(place)[row % 8 * 4 + lane_in_group];
  if (bytes != 1) bits >>= row / 8 * 16;
  bits >>= chunk * each % part_columns / each * 4;
  const uint32_t index = bytes == 4 ? bits % 4 / 2 : bits >> packed % 2 * 2 & 3;
  return chunk * each + index;
}

template <class T, bool is_wmma>
void multiply_as(Warp& warp, const Code& code, const Form& form) {
  Matrices<T> all;
  const uint32_t* places = warp.routine().lists.data() + code.c;
  const auto registers = [](Element element, uint32_t elements, bool doubled) {
    const uint32_t bytes = row_of(element).bytes;
    return bytes == 8 ? elements : elements * bytes * (doubled ? 2 : 1) / 4;
  };
  const uint32_t a_count = form.m * form.k / kLanes / (form.sparse ? 2 : 1),
                 b_count = form.k * form.n / kLanes, c_count = form.m * form.n / kLanes;
  const uint32_t* const d = places;
  const uint32_t* const a = d + registers(form.d, c_count, false);
  // wmma's fragments of f16 have twice the room that the matrix takes.
  const auto given = [&](Element element, uint32_t count, uint32_t own) {
    if (!is_wmma || element != Element::kF16) return registers(element, count, false);
    return std::max(own, 8U);
  };
  const uint32_t* const b = a + given(form.a, a_count, registers(form.a, a_count, false));
  const uint32_t* const c = b + given(form.b, b_count, registers(form.b, b_count, false));
  const uint32_t metadata = form.sparse ? c[registers(form.c, c_count, false)] : 0;
  if (form.sparse) std::fill_n(all.a, form.m * form.k, T{});
  with_source<T>(form.a, [&](auto type) {
    const auto take = [&](auto place) {
      for (uint32_t i = 0; i < a_count; ++i)
        for_lanes(is_wmma ? places_in_a_row(a_count, i) : places_in_a(form, type, i),
                  [&](uint32_t l, uint32_t at) {
                    all.a[place(at)] =
                        static_cast<T>(value_of(type, element_bits(warp, a, type, i, l)));
                  });
    };
    if (!form.sparse) return take([](uint32_t at) { return at; });
    take([&](uint32_t at) {
      const uint32_t row = at / form.k;
      return row * form.k + column_of(warp, form, metadata, row, at % form.k);
    });
  });
  with_source<T>(form.b, [&](auto type) {
    for (uint32_t i = 0; i < b_count; ++i)
      for_lanes(is_wmma ? places_in_a_row(b_count, i) : places_in_b(form, type, i),
                [&](uint32_t l, uint32_t at) {
                  all.b[at] = static_cast<T>(value_of(type, element_bits(warp, b, type, i, l)));
                });
  });
  const auto sums = [&](uint32_t i) {
    return is_wmma ? places_in_a_row(c_count, i) : places_in_c(form, i);
  };
  with_sum<T>(form.c, [&](auto type) {
    for (uint32_t i = 0; i < c_count; ++i)
      for_lanes(sums(i), [&](uint32_t l, uint32_t at) {
        all.c[at] = static_cast<T>(value_of(type, element_bits(warp, c, type, i, l)));
      });
  });
  add_product<Sums::kBeginWithC>(all.a, all.b, all.c, form.m, form.n, form.k);
  with_sum<T>(form.d, [&](auto type) {
    for (uint32_t i = 0; i < c_count; ++i)
      for_lanes(sums(i), [&](uint32_t l, uint32_t at) {
        put_bits(warp, d, type, i, l, bits_of(type, static_cast<double>(all.c[at]), form.saturate));
      });
  });
  count(warp, form);
}

template <bool is_wmma>
void multiply(Warp& warp, const Code& code, uint32_t) {
  const Form& form = form_of(code);
  if (form.d == Element::kF64 || form.d == Element::kS32)
    multiply_as<double, is_wmma>(warp, code, form);
  else
    multiply_as<float, is_wmma>(warp, code, form);
}

// --- wmma.load and store

uint64_t base_address(const Warp& warp, const Code& code, uint32_t lane) {
  return warp.get(code.a, code.wide_a, lane) + code.value;
}

template <bool is_load>
void move_fragment(Warp& warp, const Code& code, uint32_t) {
  const Form& form = form_of(code);
  const uint32_t* const places = warp.routine().lists.data() + code.c;
  const uint32_t bytes = row_of(form.a).bytes;
  const uint32_t count = form.rows * form.columns / kLanes;
  const uint32_t own = bytes == 8 ? count : count * bytes / 4;
  // The stride comes behind the registers, where it is given.
  const uint32_t given = form.matrices;  // how many registers the fragment has
  const uint32_t natural = form.by_columns ? form.rows : form.columns;
  const uint64_t stride = code.e > given ? warp.words(places[given])[0] : natural;
  for (uint32_t l = 0; l < kLanes; ++l)
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t row = (l * count + i) / form.columns, column = (l * count + i) % form.columns;
      const uint64_t at = base_address(warp, code, l) +
                          bytes * (form.by_columns ? column * stride + row : row * stride + column);
      std::byte* const memory =
          at_address(warp, l, at, bytes, code.space, is_load ? Access::kRead : Access::kWrite);
      uint64_t bits = 0;
      if constexpr (is_load) {
        std::memcpy(&bits, memory, bytes);
        put_bits(warp, places, form.a, i, l, bits);
      } else {
        bits = element_bits(warp, places, form.a, i, l);
        std::memcpy(memory, &bits, bytes);
      }
    }
  if constexpr (is_load)  // registers beyond the matrix have it again
    for (uint32_t r = own; r < given; ++r)
      std::copy_n(warp.words(places[r - own]), kLanes, warp.words(places[r]));
}

// --- ldmatrix, stmatrix, movmatrix: 8 x 8 elements of 16 bits

template <bool is_load>
void move_matrices(Warp& warp, const Code& code, uint32_t) {
  const Form& form = form_of(code);
  const uint32_t* const places = warp.routine().lists.data() + code.c;
  for (uint32_t matrix = 0; matrix < form.matrices; ++matrix) {
    std::byte* rows[8];
    for (uint32_t i = 0; i < 8; ++i) {
      const uint32_t lane = matrix * 8 + i;
      const uint64_t at = base_address(warp, code, lane);
      if (at % 16 != 0) throw Fault(CUDA_ERROR_MISALIGNED_ADDRESS, "a row is no multiple of 16");
      rows[i] =
          at_address(warp, lane, at, 16, Space::kShared, is_load ? Access::kRead : Access::kWrite);
    }
    const auto move = [](void* in_register, void* in_memory, size_t bytes) {
      is_load ? std::memcpy(in_register, in_memory, bytes)
              : std::memcpy(in_memory, in_register, bytes);
    };
    uint32_t* const words = warp.words(places[matrix]);  // of two elements, the first one lowest
    if (!form.transposed) {
      for (uint32_t row = 0; row < 8; ++row) move(words + 4 * row, rows[row], 16);
      continue;
    }
    auto* const elements = reinterpret_cast<std::byte*>(words);
    for (uint32_t column = 0; column < 8; ++column)
      for (uint32_t row = 0; row < 8; ++row)
        move(elements + 2 * (8 * column + row), rows[row] + 2 * column, 2);
  }
}

void transpose(Warp& warp, const Code& code, uint32_t) {
  const uint32_t* const places = warp.routine().lists.data() + code.c;
  uint16_t from[8][8];
  for (uint32_t l = 0; l < kLanes; ++l)
    for (uint32_t half = 0; half < 2; ++half)
      from[l / 4][2 * (l % 4) + half] =
          static_cast<uint16_t>(element_bits(warp, places + 1, Element::kF16, half, l));
  for (uint32_t l = 0; l < kLanes; ++l)
    for (uint32_t half = 0; half < 2; ++half)
      put_bits(warp, places, Element::kF16, half, l, from[2 * (l % 4) + half][l / 4]);
}

// --- words

bool shape_of(std::string_view word, Form& form) {
  unsigned m = 0, n = 0, k = 0;
  char end = 0;
  if (std::sscanf(std::string(word).c_str(), "m%un%uk%u%c", &m, &n, &k, &end) != 3) return false;
  if (m > 32 || n > 32 || k > 64 || m == 0 || n == 0 || k == 0) return false;
  form.m = m, form.n = n, form.k = k;
  return true;
}

struct Shape {
  Element source;
  uint32_t m, n, k;
};
constexpr Shape kMmaShapes[] = {
    {Element::kF16, 16, 8, 8},   {Element::kF16, 16, 8, 16},  {Element::kBf16, 16, 8, 8},
    {Element::kBf16, 16, 8, 16}, {Element::kTf32, 16, 8, 4},  {Element::kTf32, 16, 8, 8},
    {Element::kF64, 8, 8, 4},    {Element::kF64, 16, 8, 4},   {Element::kF64, 16, 8, 8},
    {Element::kF64, 16, 8, 16},  {Element::kS8, 8, 8, 16},    {Element::kS8, 16, 8, 16},
    {Element::kS8, 16, 8, 32},   {Element::kE4m3, 16, 8, 32}, {Element::kE4m3, 16, 8, 16},
};
constexpr Shape kSparseShapes[] = {
    {Element::kF16, 16, 8, 16},  {Element::kF16, 16, 8, 32}, {Element::kBf16, 16, 8, 16},
    {Element::kBf16, 16, 8, 32}, {Element::kTf32, 16, 8, 8}, {Element::kTf32, 16, 8, 16},
    {Element::kS8, 16, 8, 32},   {Element::kS8, 16, 8, 64},  {Element::kE4m3, 16, 8, 64},
};
constexpr Shape kWmmaShapes[] = {
    {Element::kF16, 16, 16, 16},  {Element::kF16, 32, 8, 16},  {Element::kF16, 8, 32, 16},
    {Element::kBf16, 16, 16, 16}, {Element::kBf16, 32, 8, 16}, {Element::kBf16, 8, 32, 16},
    {Element::kTf32, 16, 16, 8},  {Element::kF64, 8, 8, 4},    {Element::kS8, 16, 16, 16},
    {Element::kS8, 32, 8, 16},    {Element::kS8, 8, 32, 16},
};

// Types that share shapes with another.
Element shaped_as(Element element) {
  if (element == Element::kU8) return Element::kS8;
  if (element == Element::kE5m2) return Element::kE4m3;
  return element;
}
bool is_shape(std::span<const Shape> shapes, const Form& form) {
  return std::ranges::any_of(shapes, [&](const Shape& one) {
    return one.source == shaped_as(form.a) && one.m == form.m && one.n == form.n && one.k == form.k;
  });
}
bool is_sum_of(Element sum, Element source) {
  switch (shaped_as(source)) {
    case Element::kF64:
      return sum == Element::kF64;
    case Element::kS8:
      return sum == Element::kS32;
    case Element::kF16:
      return sum == Element::kF16 || sum == Element::kF32;
    case Element::kE4m3:
      return sum == Element::kF16 || sum == Element::kF32;
    default:
      return sum == Element::kF32;
  }
}

size_t parts(const Operand& one) {
  return one.kind == Operand::Kind::kVector ? one.parts.size() : 1;
}

// How many registers a matrix of so many elements takes in mma.
size_t registers_of(Element element, uint32_t elements) {
  const uint32_t bytes = row_of(element).bytes;
  return bytes == 8 ? elements / kLanes : size_t{elements} * bytes / 4 / kLanes;
}

bool multiplication(const Instruction& one, bool is_wmma, Code& code, std::string& problem) {
  Form form;
  std::vector<const ElementRow*> types;
  std::vector<bool> layouts;
  for (size_t i = 1; i < one.words.size(); ++i) {
    const std::string& word = one.words[i];
    if (word == "mma" || word == "sync" || word == "aligned" || word == "rn") continue;
    if (word == "sp" || word == "sp::ordered_metadata") {
      form.sparse = true;
    } else if (word == "satfinite") {
      form.saturate = true;
    } else if (word == "row" || word == "col") {
      layouts.push_back(word == "col");
    } else if (shape_of(word, form)) {
    } else if (const ElementRow* const type = element_of(word)) {
      types.push_back(type);
    } else {
      problem = "." + word;
      return false;
    }
  }
  if (layouts.size() != 2 || (types.size() != 4 && !(is_wmma && types.size() == 2))) return false;
  form.d = types.front()->element;
  form.c = types.back()->element;
  form.a = types.size() == 4 ? types[1]->element : Element::kF16;
  form.b = types.size() == 4 ? types[2]->element : Element::kF16;
  const std::span<const Shape> shapes = is_wmma       ? std::span<const Shape>(kWmmaShapes)
                                        : form.sparse ? std::span<const Shape>(kSparseShapes)
                                                      : kMmaShapes;
  if (!is_shape(shapes, form) || shaped_as(form.a) != shaped_as(form.b) ||
      !is_sum_of(form.d, form.a) || !is_sum_of(form.c, form.a)) {
    problem = "its shape and types";
    return false;
  }
  if (!is_wmma && (layouts[0] || !layouts[1])) return false;
  if (one.operands.size() != (form.sparse ? 6 : 4)) return false;
  if (form.sparse) {
    const Operand& selector = one.operands[5];
    // How many threads of a group of four have the metadata.
    const uint32_t threads = form.k * std::max(row_of(form.a).bytes, 2U) / 32;
    if (selector.kind != Operand::Kind::kInteger || selector.value >= 4 / threads) {
      problem = "its sparsity selector";
      return false;
    }
    form.selector = static_cast<uint32_t>(selector.value);
  }
  const auto has = [&](size_t operand, Element element, uint32_t elements) {
    const size_t natural = registers_of(element, elements);
    const bool doubled = is_wmma && element == Element::kF16 && (operand == 1 || operand == 2);
    return parts(one.operands[operand]) == (doubled ? std::max<size_t>(natural, 8) : natural);
  };
  if (!has(0, form.d, form.m * form.n) ||
      !has(1, form.a, form.m * form.k / (form.sparse ? 2 : 1)) ||
      !has(2, form.b, form.k * form.n) || !has(3, form.c, form.m * form.n)) {
    problem = "its number of registers";
    return false;
  }
  code.handler = is_wmma ? &multiply<true> : &multiply<false>;
  return KeptForms<Form>::keep(form, code.b);
}

bool fragment(const Instruction& one, bool is_load, Code& code, std::string& problem) {
  Form form;
  char which = 0;
  for (size_t i = 2; i < one.words.size(); ++i) {
    const std::string& word = one.words[i];
    if (word == "sync" || word == "aligned" || word.starts_with("global") ||
        word.starts_with("shared"))
      continue;
    if (word == "row" || word == "col") {
      form.by_columns = word == "col";
    } else if (word.size() == 1 && std::string_view("abcd").find(word) != std::string_view::npos) {
      which = word[0];
    } else if (shape_of(word, form)) {
    } else if (const ElementRow* const type = element_of(word)) {
      form.a = type->element;
    } else {
      problem = "." + word;
      return false;
    }
  }
  if (which == 0 || form.a == Element::kNone || form.m == 0) return false;
  form.rows = which == 'b' ? form.k : form.m;
  form.columns = which == 'a' ? form.k : form.n;
  form.matrices = static_cast<uint32_t>(parts(one.operands[is_load ? 0 : 1]));
  const size_t own = registers_of(form.a, form.rows * form.columns);
  const bool doubled = form.a == Element::kF16 && (which == 'a' || which == 'b');
  if (form.matrices != (doubled ? std::max<size_t>(own, 8) : own)) {
    problem = "its number of registers";
    return false;
  }
  form.m = form.n = form.k = 0;
  code.handler = is_load ? &move_fragment<true> : &move_fragment<false>;
  return KeptForms<Form>::keep(form, code.b);
}

bool eights(const Instruction& one, Code& code, std::string& problem) {
  Form form;
  const bool is_load = one.words[0] == "ldmatrix";
  for (size_t i = 1; i < one.words.size(); ++i) {
    const std::string& word = one.words[i];
    if (word == "x1" || word == "x2" || word == "x4")
      form.matrices = static_cast<uint32_t>(word[1] - '0');
    else if (word == "trans")
      form.transposed = true;
    else if (word != "sync" && word != "aligned" && word != "m8n8" && word != "b16" &&
             !word.starts_with("shared")) {
      problem = "." + word;
      return false;
    }
  }
  if (one.words[0] == "movmatrix") {
    if (!form.transposed) return false;
    code.handler = &transpose;
    return one.operands.size() == 2;
  }
  if (one.operands.size() != 2 || parts(one.operands[is_load ? 0 : 1]) != form.matrices)
    return false;
  code.handler = is_load ? &move_matrices<true> : &move_matrices<false>;
  return KeptForms<Form>::keep(form, code.b);
}

}  // namespace

bool matrix_code(const Instruction& one, Code& code, std::string& problem) {
  if (one.words.size() < 2 || one.operands.size() < 2) return false;
  if (one.words[0] == "mma") return multiplication(one, false, code, problem);
  if (one.words[0] != "wmma") return eights(one, code, problem);
  if (one.words[1] == "mma") return multiplication(one, true, code, problem);
  if (one.words[1] == "load") return fragment(one, true, code, problem);
  if (one.words[1] == "store") return fragment(one, false, code, problem);
  return false;
}

}  // namespace simgpu::ptx
