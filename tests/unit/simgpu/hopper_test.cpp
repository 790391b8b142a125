// Instructions of compute capability 9.0 (ptx/hopper.cu), and matrices of every type: results
// against products of plain loops on random numbers, counts against theory.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gpu.h"

namespace {

using simgpu::Count;
using simgpu::Counts;

std::mt19937& random() {
  static std::mt19937 generator(20251126);
  return generator;
}

// A type of a matrix's elements: random bits, and what they mean.
struct Type {
  uint32_t bits;
  uint32_t (*any)();
  double (*value)(uint32_t);
};
uint32_t any_bits() { return static_cast<uint32_t>(random()()); }

double small_float(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double size =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -size : size;
}

const Type kHalf{16, [] { return (any_bits() & 0x83ff) | 0x3800; },
                 [](uint32_t b) { return small_float(b, 5, 10); }};
const Type kBfloat{16, [] { return (any_bits() & 0x807f) | 0x3f00; },
                   [](uint32_t b) { return small_float(b, 8, 7); }};
// Of tf32 the lower 13 bits do not count.
const Type kTf32{32, [] { return (any_bits() & 0x807f'ffff) | 0x3f00'0000; },
                 [](uint32_t b) { return small_float(b >> 13, 8, 10); }};
const Type kE4m3{8, [] { return any_bits() & 0xb7; },
                 [](uint32_t b) { return small_float(b, 4, 3); }};
const Type kE5m2{8, [] { return any_bits() & 0xbf; },
                 [](uint32_t b) { return small_float(b, 5, 2); }};
const Type kSigned{8, [] { return any_bits() & 0xff; },
                   [](uint32_t b) { return static_cast<double>(static_cast<int8_t>(b)); }};
const Type kUnsigned{8, [] { return any_bits() & 0xff; },
                     [](uint32_t b) { return static_cast<double>(b); }};

struct Matrix {
  Matrix(size_t rows_, size_t columns_, const Type& type_)
      : rows(rows_), columns(columns_), type(&type_), bits(rows_ * columns_) {
    for (uint32_t& one : bits) one = type_.any();
  }
  uint32_t at(size_t row, size_t column) const { return bits[row * columns + column]; }
  double value(size_t row, size_t column) const { return type->value(at(row, column)); }

  size_t rows, columns;
  const Type* type;
  std::vector<uint32_t> bits;
};

double product(const Matrix& a, const Matrix& b, size_t row, size_t column) {
  double sum = 0;
  for (size_t k = 0; k < a.columns; ++k) sum += a.value(row, k) * b.value(k, column);
  return sum;
}

class Hopper {
 public:
  Hopper() {
    check(cuInit(0));
    check(cuCtxCreate(&context_, nullptr, 0, 0));
    check(cuModuleLoad(&module_, HOPPER_KERNELS));
  }
  ~Hopper() { cuCtxDestroy(context_); }
  Hopper(const Hopper&) = delete;
  Hopper& operator=(const Hopper&) = delete;

  template <class... Args>
  Counts run(const char* name, unsigned blocks, unsigned threads, unsigned shared, Args... args) {
    return run_grid(name, {blocks, 1}, threads, shared, args...);
  }
  template <class... Args>
  Counts run_grid(const char* name, std::array<unsigned, 2> grid, unsigned threads, unsigned shared,
                  Args... args) {
    CUfunction function = nullptr;
    check(cuModuleGetFunction(&function, module_, name));
    void* params[] = {&args..., nullptr};
    const Recorder recorder;
    check(cuLaunchKernel(function, grid[0], grid[1], 1, threads, 1, 1, shared, nullptr, params,
                         nullptr));
    check(cuCtxSynchronize());
    return recorder.runs.at(0).counts;
  }

 private:
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

// Registers of 32 lanes, [register][lane], filled element by element.
class Registers {
 public:
  explicit Registers(size_t count) : words(32 * count) {}
  void put(size_t lane, size_t element, uint32_t element_bits, uint32_t bits) {
    const size_t each = 32 / element_bits;
    words[element / each * 32 + lane] |= bits << element_bits * (element % each);
  }
  std::vector<uint32_t> words;
};

// Where elements are, as the tables of PTX's documentation have it: lane = 4 * group + member.
struct At {
  size_t row, column;
};
// m16n8: C and D.
At in_d(size_t lane, size_t i) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)}; }
// A of 16 rows, in registers of `each` elements: rows change with every register, columns with
// every second.
At in_a(size_t lane, size_t i, size_t each) {
  const size_t r = i / each;
  return {lane / 4 + (r % 2 == 0 ? 0 : 8), lane % 4 * each + i % each + (r < 2 ? 0 : 4 * each)};
}
At in_b(size_t lane, size_t i, size_t each) {
  return {lane % 4 * each + i % each + i / each * 4 * each, lane / 4};
}

Registers a_registers(const Matrix& a) {
  const size_t each = 32 / a.type->bits, count = a.columns / (4 * each) * 2;
  Registers made(count);
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t i = 0; i < count * each; ++i) {
      const At at = in_a(lane, i, each);
      made.put(lane, i, a.type->bits, a.at(at.row, at.column));
    }
  return made;
}
Registers b_registers(const Matrix& b) {
  const size_t each = 32 / b.type->bits, count = b.rows / (4 * each);
  Registers made(count);
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t i = 0; i < count * each; ++i) {
      const At at = in_b(lane, i, each);
      made.put(lane, i, b.type->bits, b.at(at.row, at.column));
    }
  return made;
}

double as_number(uint32_t bits, bool is_integer) {
  return is_integer ? static_cast<double>(static_cast<int32_t>(bits))
                    : static_cast<double>(std::bit_cast<float>(bits));
}
// The largest difference of a 16 x 8 result from a b, in parts of the largest sum of sizes.
double difference(const std::vector<uint32_t>& d, const Matrix& a, const Matrix& b,
                  bool is_integer) {
  double worst = 0, most = 1;
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t i = 0; i < 4; ++i) {
      const At at = in_d(lane, i);
      const double right = product(a, b, at.row, at.column);
      worst = std::max(worst, std::abs(as_number(d[i * 32 + lane], is_integer) - right));
      most = std::max(most, std::abs(right));
    }
  return worst / most;
}

// A with two of each four elements (of tf32 one of two), packed, and its metadata for the lanes
// that the selector says.
struct Sparse {
  Sparse(size_t columns, const Type& type, size_t selector)
      : whole(16, columns, type), packed(16, columns / 2, type), metadata(32, 0xffff'ffff) {
    const bool pairs = type.bits == 32;
    const size_t chunk = pairs ? 2 : 4;
    for (size_t row = 0; row < 16; ++row)
      for (size_t begin = 0; begin < columns; begin += chunk) {
        std::array<size_t, 4> order{0, 1, 2, 3};
        std::shuffle(order.begin(), order.begin() + static_cast<ptrdiff_t>(chunk), random());
        const size_t kept = chunk / 2;
        std::sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept));
        std::vector<bool> is_kept(chunk);
        for (size_t i = 0; i < kept; ++i) {
          is_kept[order[i]] = true;
          packed.bits[row * columns / 2 + begin / 2 + i] = whole.at(row, begin + order[i]);
        }
        for (size_t i = 0; i < chunk; ++i)
          if (!is_kept[i]) whole.bits[row * columns + begin + i] = 0;
        const size_t code = pairs ? (order[0] == 0 ? 0b0100 : 0b1110) : order[0] | order[1] << 2;
        put(row, begin, code, selector);
      }
  }

  // 4 bits of metadata for the chunk that begins at a column.
  void put(size_t row, size_t begin, size_t code, size_t selector) {
    const size_t columns = whole.columns;
    size_t member = 0, bit = 0;
    if (whole.type->bits == 8) {  // a lane has 32 columns of one row
      const size_t half = columns == 64 ? begin / 32 : selector;
      member = 2 * half + (row < 8 ? 0 : 1);
      bit = begin % 32;
    } else {  // a lane has 16 (of tf32 8) columns of two rows
      const size_t own = whole.type->bits == 16 ? 16 : 8, lanes = columns / own;
      member = selector * lanes + begin / own;
      bit = begin % own * 16 / own + (row < 8 ? 0 : 16);
    }
    uint32_t& word = metadata[row % 8 * 4 + member];
    word = (word & ~(15U << bit)) | static_cast<uint32_t>(code) << bit;
  }

  Matrix whole, packed;
  std::vector<uint32_t> metadata;
};

}  // namespace

TEST_CASE("PTX: products of a warp in every type") {
  Hopper gpu;
  struct Row {
    const char* kernel;
    const Type &a, &b;
    size_t k;
    Count kind;
    double most;
  };
  const Row rows[] = {
      {"mma_f16", kHalf, kHalf, 16, Count::kTensorFp16, 1e-6},
      {"mma_bf16", kBfloat, kBfloat, 16, Count::kTensorBf16, 1e-6},
      {"mma_tf32", kTf32, kTf32, 8, Count::kTensorTf32, 1e-6},
      {"mma_s8", kSigned, kUnsigned, 32, Count::kTensorInt8, 0},
      {"mma_e4m3", kE4m3, kE5m2, 32, Count::kTensorFp16, 1e-6},  // by HMMA, on this chip
  };
  for (const Row& row : rows) {
    INFO(row.kernel);
    const Matrix a(16, row.k, row.a), b(row.k, 8, row.b);
    const Array<uint32_t> device_a(a_registers(a).words), device_b(b_registers(b).words);
    const Array<uint32_t> d(std::vector<uint32_t>(4 * 32));
    const Counts counts =
        gpu.run(row.kernel, 1, 32, 0, device_a.address(), device_b.address(), d.address());
    CHECK(difference(d.read(), a, b, row.kind == Count::kTensorInt8) <= row.most);
    CHECK(counts[row.kind] == 2 * 16 * 8 * row.k);
  }

  const Matrix a(16, 16, kHalf), b(16, 8, kHalf);
  const Array<uint32_t> device_a(a_registers(a).words), device_b(b_registers(b).words);
  const Array<uint32_t> d(std::vector<uint32_t>(2 * 32));
  const Counts counts =
      gpu.run("mma_f16_f16", 1, 32, 0, device_a.address(), device_b.address(), d.address());
  CHECK(counts[Count::kTensorFp16ToFp16] == 2 * 16 * 8 * 16);
  CHECK(counts[Count::kTensorFp16] == 0);
  const std::vector<uint32_t> got = d.read();
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t i = 0; i < 4; ++i) {
      const At at = in_d(lane, i);
      const double value = kHalf.value(got[i / 2 * 32 + lane] >> 16 * (i % 2) & 0xffff);
      CHECK(value == Approx(product(a, b, at.row, at.column)).epsilon(1e-3).margin(1e-3));
    }
}

TEST_CASE("PTX: products of a warp in double precision") {
  Hopper gpu;
  std::vector<double> a(8 * 4), b(4 * 8);
  for (double& one : a) one = any_bits() * 0x1p-32 - 0.5;
  for (double& one : b) one = any_bits() * 0x1p-32 - 0.5;
  std::vector<double> b_by_columns(b.size());
  for (size_t k = 0; k < 4; ++k)
    for (size_t n = 0; n < 8; ++n) b_by_columns[n * 4 + k] = b[k * 8 + n];
  // A lane has the element of a at its own place, by rows, and of b by columns.
  const Array<double> device_a(a), device_b(b), by_columns(b_by_columns),
      d(std::vector<double>(64)), e(std::vector<double>(64));
  const Counts counts =
      gpu.run("mma_f64", 1, 32, 0, device_a.address(), by_columns.address(), d.address());
  gpu.run("wmma_f64", 1, 32, 0, device_a.address(), device_b.address(), e.address());
  CHECK(counts[Count::kTensorFp64] == 2 * 8 * 8 * 4);
  const std::vector<double> got = d.read(), of_wmma = e.read();
  for (size_t m = 0; m < 8; ++m)
    for (size_t n = 0; n < 8; ++n) {
      double right = 0;
      for (size_t k = 0; k < 4; ++k) right += a[m * 4 + k] * b[k * 8 + n];
      const size_t lane = 4 * m + n / 2;
      CHECK(got[n % 2 * 32 + lane] == Approx(right).epsilon(1e-14).margin(1e-15));
      CHECK(of_wmma[m * 8 + n] == Approx(right).epsilon(1e-14).margin(1e-15));
    }
}

TEST_CASE("PTX: products whose first matrix is sparse") {
  Hopper gpu;
  struct Row {
    const char* kernel;
    const Type &a, &b;
    size_t k, selector;
    Count kind;
    double most;
  };
  const Row rows[] = {
      {"sparse_f16_k16", kHalf, kHalf, 16, 3, Count::kTensorFp16, 1e-6},
      {"sparse_f16_k32", kHalf, kHalf, 32, 0, Count::kTensorFp16, 1e-6},
      {"sparse_bf16_k32", kBfloat, kBfloat, 32, 1, Count::kTensorBf16, 1e-6},
      {"sparse_tf32_k8", kTf32, kTf32, 8, 2, Count::kTensorTf32, 1e-6},
      {"sparse_tf32_k16", kTf32, kTf32, 16, 1, Count::kTensorTf32, 1e-6},
      {"sparse_s8_k32", kSigned, kSigned, 32, 1, Count::kTensorInt8Sparse, 0},
      {"sparse_s8_k64", kSigned, kUnsigned, 64, 0, Count::kTensorInt8Sparse, 0},
      {"sparse_e4m3_k64", kE4m3, kE5m2, 64, 0, Count::kTensorFp16, 1e-6},
  };
  for (const Row& row : rows) {
    INFO(row.kernel);
    const Sparse a(row.k, row.a, row.selector);
    const Matrix b(row.k, 8, row.b);
    const Array<uint32_t> device_a(a_registers(a.packed).words), device_b(b_registers(b).words),
        device_e(a.metadata), d(std::vector<uint32_t>(4 * 32));
    const Counts counts = gpu.run(row.kernel, 1, 32, 0, device_a.address(), device_b.address(),
                                  device_e.address(), d.address());
    CHECK(difference(d.read(), a.whole, b, row.kind == Count::kTensorInt8Sparse) <= row.most);
    CHECK(counts[row.kind] == 2 * 16 * 8 * row.k / 2);
    CHECK(counts[Count::kTensorInstructions] >= 1);
  }
}

namespace {

// A matrix as wgmma reads it from shared memory, built of chunks of 16 bytes. `rows` are those of
// A, or columns of B; in the other direction lies k.
struct Image {
  static constexpr size_t kChunk = 16;

  // Swizzled by 32, 64 or 128 bytes, or 16: not at all.
  Image(const Matrix& m, size_t width, bool transposed, bool is_b, size_t begin) {
    const size_t rows = is_b ? m.columns : m.rows, depth = is_b ? m.rows : m.columns;
    const size_t element = m.type->bits / 8;
    const auto put = [&](size_t at, size_t row, size_t k) {
      const uint32_t bits = is_b ? m.at(k, row) : m.at(row, k);
      if (bytes.size() < at + element) bytes.resize(at + element);
      std::memcpy(bytes.data() + at, &bits, element);
    };
    // Between the blocks of 8 lines that are `width` bytes wide there is room that is not used.
    const size_t block = 8 * width + (width == kChunk ? 3 * kChunk : 0);
    const size_t across = transposed ? rows * element / width : 1;
    const size_t chunk_columns = width == kChunk ? depth * element / kChunk : 1;
    for (size_t row = 0; row < rows; ++row)
      for (size_t k = 0; k < depth; ++k) {
        const size_t line = transposed ? k : row, along = (transposed ? row : k) * element;
        size_t at = 0;
        if (width == kChunk)  // chunks, 8 of them below each other in a block
          at = (transposed ? (line / 8 * across + along / kChunk)
                           : (line / 8 * chunk_columns + along / kChunk)) *
                   block +
               line % 8 * kChunk;
        else
          at = (line / 8 * (transposed ? across : 1) + along / width) * block + line % 8 * width +
               ((along % width / kChunk) ^ swizzle(line % 8, width)) * kChunk;
        put(at + along % kChunk, row, k);
      }
    const size_t per_line =
        width == kChunk ? (transposed ? across : chunk_columns) : (transposed ? across : 1);
    const size_t next_lines = per_line * block, next_along = block;
    size_t leading = next_along, stride = next_lines;
    if (width == kChunk && transposed) std::swap(leading, stride);
    const uint64_t mode = width == 128 ? 1 : width == 64 ? 2 : width == 32 ? 3 : 0;
    descriptor = begin / kChunk | uint64_t{leading / kChunk} << 16 |
                 uint64_t{stride / kChunk} << 32 | mode << 62;
  }

  // Which chunk of a line takes the place of the first: TMA's rule for its swizzled boxes.
  static size_t swizzle(size_t line, size_t width) {
    return width == 128 ? line : width == 64 ? line / 2 : line / 4;
  }

  std::vector<unsigned char> bytes;
  uint64_t descriptor = 0;
};

struct Product {
  const char* kernel;
  const Type &a, &b;
  size_t n, k;
  Count kind;
  double most;
  bool transposed_a = false, transposed_b = false;
  double sign = 1;
  bool half_sums = false;
};

void check_product(Hopper& gpu, const Product& one, size_t width_a, size_t width_b, bool adds) {
  INFO(one.kernel << ", swizzled by " << width_a << " and " << width_b);
  const Matrix a(64, one.k, one.a), b(one.k, one.n, one.b);
  const Image image_a(a, width_a, one.transposed_a, false, 0);
  const size_t begin = (image_a.bytes.size() + 1023) / 1024 * 1024;
  const Image image_b(b, width_b, one.transposed_b, true, begin);
  std::vector<unsigned char> whole = image_a.bytes;
  whole.resize(begin);
  whole.insert(whole.end(), image_b.bytes.begin(), image_b.bytes.end());
  whole.resize((whole.size() + 15) / 16 * 16);
  const bool integers = one.kind == Count::kGroupInt8;
  const size_t elements = one.n / 2, words = one.half_sums ? elements / 2 : elements;
  // d: thread t of the 128 has rows 16 (t / 32) + (t % 32) / 4, and 8 more.
  const auto at = [&](size_t thread, size_t i) {
    const At in_warp = in_d(thread % 32, i % 4);
    return At{thread / 32 * 16 + in_warp.row, i / 4 * 8 + in_warp.column};
  };
  std::vector<uint32_t> before(128 * words);
  for (uint32_t& word : before)
    word = integers        ? any_bits() >> 16
           : one.half_sums ? kHalf.any() | kHalf.any() << 16
                           : kTf32.any();
  const auto number = [&](const std::vector<uint32_t>& d, size_t thread, size_t i) {
    if (one.half_sums) return kHalf.value(d[thread * words + i / 2] >> 16 * (i % 2) & 0xffff);
    return as_number(d[thread * words + i], integers);
  };
  const Array<unsigned char> image(whole);
  const Array<uint32_t> d(before);
  const Counts counts = gpu.run(one.kernel, 1, 128, static_cast<unsigned>(whole.size()),
                                image.address(), static_cast<unsigned>(whole.size() / 16),
                                image_a.descriptor, image_b.descriptor, int{adds}, d.address());
  const std::vector<uint32_t> after = d.read();
  double worst = 0, most = 1;
  for (size_t thread = 0; thread < 128; ++thread)
    for (size_t i = 0; i < elements; ++i) {
      const At where = at(thread, i);
      const double right = one.sign * product(a, b, where.row, where.column) +
                           (adds ? number(before, thread, i) : 0);
      worst = std::max(worst, std::abs(number(after, thread, i) - right));
      most = std::max(most, std::abs(right));
    }
  CHECK(worst / most <= one.most);
  CHECK(counts[one.kind] == 2 * 64 * one.n * one.k);
  CHECK(counts[Count::kGroupInstructions] == 4);
}

}  // namespace

TEST_CASE("PTX: products of a group of warps, in every type and layout") {
  Hopper gpu;
  const Product rows[] = {
      {"wgmma_f16", kHalf, kHalf, 64, 16, Count::kGroupFp16, 1e-6},
      {"wgmma_f16_a", kHalf, kHalf, 64, 16, Count::kGroupFp16, 1e-6, true, false},
      {"wgmma_f16_b", kHalf, kHalf, 64, 16, Count::kGroupFp16, 1e-6, false, true, -1},
      {"wgmma_f16_ab", kHalf, kHalf, 64, 16, Count::kGroupFp16, 1e-6, true, true, -1},
      {"wgmma_bf16", kBfloat, kBfloat, 16, 16, Count::kGroupBf16, 1e-6},
      {"wgmma_tf32", kTf32, kTf32, 16, 8, Count::kGroupTf32, 1e-6},
      {"wgmma_e4m3", kE4m3, kE5m2, 16, 32, Count::kGroupFp8, 1e-6},
      {"wgmma_s8", kSigned, kUnsigned, 16, 32, Count::kGroupInt8, 0},
      {"wgmma_f16_f16", kHalf, kHalf, 16, 16, Count::kGroupFp16, 1e-3, false, false, 1, true},
  };
  for (const Product& one : rows)
    for (const size_t width_a : {16, 32, 64, 128})
      for (const size_t width_b : {16, 32, 64, 128}) {
        // A line along k has 32 bytes: a wider pattern has a part of it in each of its lines.
        check_product(gpu, one, width_a, width_b, (width_a + width_b) % 3 != 0);
      }

  const Matrix a(64, 16, kBfloat), b(16, 16, kBfloat);
  const Image image(b, 32, true, true, 0);
  std::vector<uint32_t> registers(4 * 128);
  for (size_t thread = 0; thread < 128; ++thread)
    for (size_t i = 0; i < 8; ++i) {
      const At at = in_a(thread % 32, i, 2);
      registers[4 * thread + i / 2] |= a.at(thread / 32 * 16 + at.row, at.column) << 16 * (i % 2);
    }
  const Array<unsigned char> there(image.bytes);
  const Array<uint32_t> device_a(registers), d(std::vector<uint32_t>(8 * 128));
  const Counts counts =
      gpu.run("wgmma_registers", 1, 128, static_cast<unsigned>(image.bytes.size()), there.address(),
              static_cast<unsigned>(image.bytes.size() / 16), device_a.address(), image.descriptor,
              0, d.address());
  CHECK(counts[Count::kGroupBf16] == 2 * 64 * 16 * 16);
  const std::vector<uint32_t> got = d.read();
  double worst = 0;
  for (size_t thread = 0; thread < 128; ++thread)
    for (size_t i = 0; i < 8; ++i) {
      const At at = in_d(thread % 32, i % 4);
      const double right = product(a, b, thread / 32 * 16 + at.row, i / 4 * 8 + at.column);
      worst = std::max(worst, std::abs(as_number(got[8 * thread + i], false) - right));
    }
  CHECK(worst < 1e-5);
}

TEST_CASE("PTX: bulk copies and barriers that count bytes") {
  Hopper gpu;
  const int tiles = 7;
  std::vector<float> x(tiles * 256);
  for (float& one : x) one = static_cast<float>(any_bits()) * 0x1p-32F;
  const Array<float> device_x(x), y(std::vector<float>(x.size()));
  const Counts counts = gpu.run("doubles", 1, 256, 0, tiles, device_x.address(), y.address());
  std::vector<float> twice = x;
  for (float& one : twice) one *= 2;
  CHECK(y.read() == twice);
  CHECK(counts[Count::kDramReadBytes] == x.size() * sizeof(float));
  CHECK(counts[Count::kDramWriteBytes] == x.size() * sizeof(float));
  CHECK(counts[Count::kFadd] + counts[Count::kFmul] == x.size());

  const Array<unsigned> steps(std::vector<unsigned>(8));
  gpu.run("transactions", 1, 1, 0, steps.address());
  // Two are to come; both arrive, then 16 and 32 bytes do. Of the next phase one arrival is
  // dropped, the other ends it; the third phase has one.
  CHECK(steps.read() == std::vector<unsigned>{2, 0, 0, 1, 0, 0, 1, 1});

  std::vector<uint32_t> words(4 * 64);
  std::iota(words.begin(), words.end(), 0);
  const Array<uint32_t> from(words), to(std::vector<uint32_t>(words.size()));
  gpu.run("arrives_by_copy", 1, 64, 0, from.address(), to.address());
  std::vector<uint32_t> reversed;
  for (size_t i = 64; i-- > 0;)
    reversed.insert(reversed.end(), words.begin() + static_cast<ptrdiff_t>(4 * i),
                    words.begin() + static_cast<ptrdiff_t>(4 * i + 4));
  CHECK(to.read() == reversed);
}

TEST_CASE("PTX: of each warp one leader is elected") {
  Hopper gpu;
  const Array<unsigned> leaders(std::vector<unsigned>(128, 99));
  gpu.run("elects", 1, 128, 0, leaders.address());
  const std::vector<unsigned> got = leaders.read();
  for (size_t warp = 0; warp < 4; ++warp) {
    const unsigned leader = got[32 * warp] / 2;
    for (size_t lane = 0; lane < 32; ++lane)
      CHECK(got[32 * warp + lane] == 2 * leader + (lane == leader ? 1 : 0));
  }
}

TEST_CASE("PTX: threads allocate memory, as much as the context's limit is") {
  Hopper gpu;
  const unsigned count = 1000, threads = 100;
  const Array<unsigned> sums(std::vector<unsigned>(threads, 1));
  size_t before = 0, after = 0, total = 0;
  check(cuMemGetInfo(&before, &total));
  gpu.run("allocates", 2, threads / 2, 0, count, sums.address());
  check(cuMemGetInfo(&after, &total));
  CHECK(after == before);
  const std::vector<unsigned> got = sums.read();
  for (unsigned thread = 0; thread < threads; ++thread)
    CHECK(got[thread] == thread * (count * (count - 1) / 2));
  check(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, count * sizeof(unsigned) - 1));
  gpu.run("allocates", 1, threads, 0, count, sums.address());
  CHECK(sums.read() == std::vector<unsigned>(threads, 0));
}

TEST_CASE("PTX: blocks of a cluster wait for each other and use each other's shared memory") {
  Hopper gpu;
  const unsigned width = 4, height = 6;
  std::vector<int> x(width * height);
  std::iota(x.begin(), x.end(), 1);
  const auto first_of = [&](size_t block) {  // of its cluster
    return block / width / 2 * 2 * width + block % width / 2 * 2;
  };
  const Array<int> device_x(x), sums(std::vector<int>(x.size()));
  gpu.run_grid("cluster_sums", {width, height}, 64, 0, device_x.address(), sums.address());
  const std::vector<int> got = sums.read();
  for (size_t block = 0; block < x.size(); ++block) {
    const size_t first = first_of(block);
    CHECK(got[block] == x[first] + x[first + 1] + x[first + width] + x[first + width + 1]);
  }

  std::vector<int> gifts(4 * x.size());
  std::iota(gifts.begin(), gifts.end(), 100);
  const Array<int> device_gifts(gifts), given(std::vector<int>(gifts.size()));
  gpu.run_grid("cluster_gift", {width, height}, 1, 0, device_gifts.address(), given.address());
  const std::vector<int> all = given.read();
  for (size_t block = 0; block < x.size(); ++block) {
    const size_t first = first_of(block);
    const int rank = static_cast<int>(block / width % 2 * 2 + block % 2);
    for (size_t i = 0; i < 4; ++i)
      CHECK(all[4 * block + i] == gifts[4 * first + i] + (i == 0 ? rank : 0));
  }
}

TEST_CASE("PTX: numbers that are packed in 32 bits") {
  Hopper gpu;
  const unsigned n = 512;
  std::vector<uint32_t> u(n);
  for (uint32_t& one : u) one = any_bits();
  u[7] = u[8], u[20] = 0x7e00'7fc0, u[30] = 0x8000'0000, u[31] = 0;  // equal, NaNs, zeros
  const Array<uint32_t> device_u(u), out(std::vector<uint32_t>(size_t{12} * n));
  gpu.run("packed", 1, n, 0, n, device_u.address(), out.address());
  const std::vector<uint32_t> got = out.read();
  const auto half = [](uint32_t bits, int i) { return static_cast<uint16_t>(bits >> 16 * i); };
  const auto signed_half = [&](uint32_t bits, int i) {
    return static_cast<int16_t>(half(bits, i));
  };
  const auto signed_byte = [](uint32_t bits, int i) { return static_cast<int8_t>(bits >> 8 * i); };
  const auto number = [&](uint32_t bits, int i) {  // of f16
    const uint32_t own = half(bits, i), size = own & 0x7fff;
    const double infinite = (own & 0x8000) != 0 ? -INFINITY : INFINITY;
    return size > 0x7c00 ? NAN : size == 0x7c00 ? infinite : small_float(own, 5, 10);
  };
  const auto pair = [](auto f) { return static_cast<uint32_t>(f(1)) << 16 | f(0); };
  for (unsigned i = 0; i < n; ++i) {
    const uint32_t a = u[i], b = u[(i + 1) % n], c = u[(i + 2) % n];
    const auto is = [&](unsigned function, uint32_t right) {
      CHECK(got[function * n + i] == right);
    };
    is(0, c + static_cast<uint32_t>(signed_half(a, 0) * signed_byte(b, 0) +
                                    signed_half(a, 1) * signed_byte(b, 1)));
    is(1,
       c + static_cast<uint32_t>(half(a, 0) * signed_byte(b, 2) + half(a, 1) * signed_byte(b, 3)));
    is(2, pair([&](int h) {
         return static_cast<uint16_t>(std::max(signed_half(a, h), signed_half(b, h)));
       }));
    is(3, pair([&](int h) { return std::min(half(a, h), half(b, h)); }));
    is(4, pair([&](int h) { return static_cast<uint16_t>(half(a, h) + half(b, h)); }));
    uint32_t differences = 0, sum = c, signed_sum = c;
    for (int byte = 0; byte < 4; ++byte) {
      const int x = static_cast<int>(a >> 8 * byte & 255),
                y = static_cast<int>(b >> 8 * byte & 255);
      differences |= static_cast<uint32_t>(std::abs(x - y)) << 8 * byte;
      sum += static_cast<uint32_t>(std::abs(x - y));
      signed_sum += static_cast<uint32_t>(std::abs(signed_byte(a, byte) - signed_byte(b, byte)));
    }
    is(5, differences);
    is(10, sum);
    is(11, signed_sum);
    is(6, pair([&](int h) {
         return static_cast<uint16_t>(number(a, h) > number(b, h) ? 0xffff : 0);
       }));
    is(7, pair([&](int h) {
         return static_cast<uint16_t>(number(a, h) <= number(b, h) ? 0x3c00 : 0);
       }));
    for (int h = 0; h < 2; ++h) {
      const float x = std::bit_cast<float>(uint32_t{half(a, h)} << 16);
      const float y = std::bit_cast<float>(uint32_t{half(b, h)} << 16);
      is(8U + static_cast<unsigned>(h), x < y || x > y || x != x || y != y ? 1 : 0);
    }
  }
}
