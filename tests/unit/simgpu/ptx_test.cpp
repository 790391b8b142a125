// Kernels that nvcc compiled (ptx/kernels.cu): results against the host's arithmetic on random
// numbers, counts against theory, and faults as a GPU has them.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gpu.h"

namespace {

using simgpu::Count;
using simgpu::Counts;

std::vector<float> random_floats(size_t count) {
  static std::mt19937 generator(20251125);
  std::uniform_real_distribution<float> between(-1, 1);
  std::vector<float> values(count);
  for (float& v : values) v = between(generator);
  return values;
}
template <class T, class F>
std::vector<T> made(size_t count, F value) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(value(i));
  return values;
}

struct Size {
  unsigned x = 1, y = 1;
};

// A context with the module, and launches that are counted.
class Ptx {
 public:
  Ptx() {
    check(cuInit(0));
    check(cuCtxCreate(&context_, nullptr, 0, 0));
    check(cuModuleLoad(&module, PTX_KERNELS));
  }
  ~Ptx() { cuCtxDestroy(context_); }
  Ptx(const Ptx&) = delete;
  Ptx& operator=(const Ptx&) = delete;

  template <class... Args>
  CUresult launch(const char* name, Size grid, Size block, unsigned shared, Args... args) {
    CUfunction function = nullptr;
    check(cuModuleGetFunction(&function, module, name));
    void* params[] = {&args..., nullptr};
    return cuLaunchKernel(function, grid.x, grid.y, 1, block.x, block.y, 1, shared, nullptr, params,
                          nullptr);
  }
  template <class... Args>
  Counts counted(const char* name, Size grid, Size block, Args... args) {
    Recorder recorder;
    check(launch(name, grid, block, 0, args...));
    check(cuCtxSynchronize());
    return recorder.runs.at(0).counts;
  }

  CUmodule module = nullptr;

 private:
  CUcontext context_ = nullptr;
};

double worst(const std::vector<float>& got, const std::function<double(size_t)>& expected) {
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(got[i]) - expected(i)));
  return most;
}

// c = a b of n x n, in double.
std::vector<double> product(size_t n, const std::function<double(size_t)>& a,
                            const std::function<double(size_t)>& b) {
  std::vector<double> c(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k < n; ++k)
      for (size_t j = 0; j < n; ++j) c[i * n + j] += a(i * n + k) * b(k * n + j);
  return c;
}

double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}
double bfloat(uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(uint32_t{bits} << 16));
}

}  // namespace

TEST_CASE("PTX: saxpy is exact, and so are its counts") {
  Ptx gpu;
  const int n = 10'001;
  const float a = 1.7F;
  const std::vector<float> x = random_floats(n), y = random_floats(n);
  const Array<float> device_x(x), device_y(y);
  const Counts counts =
      gpu.counted("saxpy", {40}, {256}, n, a, device_x.address(), device_y.address());
  const std::vector<float> got = device_y.read();
  CHECK(
      std::ranges::equal(got, made<float>(n, [&](size_t i) { return std::fmaf(a, x[i], y[i]); })));
  CHECK(counts[Count::kFfma] == n);
  CHECK(counts[Count::kFadd] + counts[Count::kFmul] == 0);
  CHECK(counts[Count::kThreads] == 40 * 256);
  const uint64_t sectors = (n * sizeof(float) + 31) / 32;
  CHECK(counts[Count::kDramReadBytes] == 2 * 32 * sectors);
  CHECK(counts[Count::kDramWriteBytes] == 32 * sectors);
}

TEST_CASE("PTX: a tiled product with shared memory and barriers") {
  Ptx gpu;
  const int n = 64;
  const std::vector<float> a = random_floats(n * n), b = random_floats(n * n);
  const Array<float> device_a(a), device_b(b), device_c(std::vector<float>(n * n));
  const Counts counts = gpu.counted("sgemm", {4, 4}, {16, 16}, n, device_a.address(),
                                    device_b.address(), device_c.address());
  const std::vector<double> c = product(
      n, [&](size_t i) { return a[i]; }, [&](size_t i) { return b[i]; });
  CHECK(worst(device_c.read(), [&](size_t i) { return c[i]; }) < 1e-5);
  CHECK(counts[Count::kFfma] == uint64_t{n} * n * n);
  CHECK(counts[Count::kFadd] + counts[Count::kFmul] == 0);
}

TEST_CASE("PTX: softmax and layer norm, with shuffles and approximate functions") {
  Ptx gpu;
  const int n = 300, rows = 7;
  const std::vector<float> x = random_floats(n * rows);
  const Array<float> device_x(x), y(std::vector<float>(n * rows)), z(std::vector<float>(n * rows));
  const Counts softmax = gpu.counted("softmax", {rows}, {32}, n, device_x.address(), y.address());
  const Counts norm =
      gpu.counted("layernorm", {rows}, {256}, n, 1e-5F, device_x.address(), z.address());
  std::vector<double> sum(rows), mean(rows), scale(rows);
  for (size_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (size_t i = r * n; i < (r + 1) * n; ++i) {
      sum[r] += std::exp(static_cast<double>(x[i]));
      mean[r] += static_cast<double>(x[i]) / n;
      squares += static_cast<double>(x[i]) * static_cast<double>(x[i]) / n;
    }
    scale[r] = 1 / std::sqrt(squares - mean[r] * mean[r] + 1e-5);
  }
  CHECK(worst(y.read(),
              [&](size_t i) { return std::exp(static_cast<double>(x[i])) / sum[i / n]; }) < 1e-7);
  CHECK(worst(z.read(), [&](size_t i) {
          return (static_cast<double>(x[i]) - mean[i / n]) * scale[i / n];
        }) < 1e-5);
  // Of each element a difference and a sum, one product in the exponential; five steps of a sum of
  // 32 lanes. The quotient counts nothing.
  CHECK(softmax[Count::kFadd] == rows * (2 * n + 5 * 32));
  CHECK(softmax[Count::kFmul] == rows * n);
  CHECK(softmax[Count::kFfma] == 0);
  // Of each element a sum, a square that is added, a difference and a product; of each thread two
  // sums of five steps and of eight parts, a square that is subtracted, and epsilon. A fused
  // multiply-add is two, and so it is no matter what the compiler fuses.
  CHECK(norm[Count::kFadd] + norm[Count::kFmul] + 2 * norm[Count::kFfma] ==
        rows * (5 * n + 256 * (2 * 5 + 2 * 8 + 2 + 1)));
}

TEST_CASE("PTX: products of tensor cores") {
  Ptx gpu;
  const int n = 48;
  std::mt19937 random(7);
  const auto values = [&](uint16_t exponent) {
    return made<uint16_t>(n * n, [&](size_t) { return (random() & 0x83ff) | exponent; });
  };
  const auto as_product = [&](const char* kernel, uint16_t exponent, double (*value)(uint16_t)) {
    const std::vector<uint16_t> a = values(exponent), b = values(exponent);
    const Array<uint16_t> device_a(a), device_b(b);
    const Array<float> device_c(std::vector<float>(n * n));
    const Counts counts = gpu.counted(kernel, {n / 16, n / 16}, {32}, n, device_a.address(),
                                      device_b.address(), device_c.address());
    const std::vector<double> c = product(
        n, [&](size_t i) { return value(a[i]); }, [&](size_t i) { return value(b[i]); });
    CHECK(worst(device_c.read(), [&](size_t i) { return c[i]; }) < 1e-4);
    return counts;
  };
  CHECK(as_product("product_f16", 0x3800, &half)[Count::kTensorFp16] == 2ULL * n * n * n);
  CHECK(as_product("product_bf16", 0x3f00, &bfloat)[Count::kTensorBf16] == 2ULL * n * n * n);

  const std::vector<uint16_t> a = values(0x3800), b = values(0x3800);  // b by columns
  const Array<uint16_t> device_a(a), device_b(b);
  const Array<float> device_c(std::vector<float>(16 * 8));
  const Counts counts = gpu.counted("mma_16816", {1}, {32}, device_a.address(), device_b.address(),
                                    device_c.address());
  CHECK(worst(device_c.read(), [&](size_t i) {
          double sum = 0;
          for (size_t k = 0; k < 16; ++k) sum += half(a[i / 8 * 16 + k]) * half(b[i % 8 * 16 + k]);
          return sum;
        }) < 1e-5);
  CHECK(counts[Count::kTensorFp16] == 2 * 16 * 8 * 16);
  CHECK(counts[Count::kTensorInstructions] == 1);
}

TEST_CASE("PTX: calls, recursion and functions by address") {
  Ptx gpu;
  struct {
    float a = 1.5F;
    double b = 2;
  } pair;
  const Array<double> out(std::vector<double>(64));
  for (const int which : {0, 1}) {
    check(gpu.launch("calls", {1}, {64}, 0, pair, 4, out.address(), which));
    check(cuCtxSynchronize());
    CHECK(out.read() == made<double>(64, [&](size_t i) {
            return 1.5 * 2 + 4 + static_cast<double>(i % 3) +
                   static_cast<double>(which + 1) * static_cast<double>(i);
          }));
  }
}

TEST_CASE("PTX: atomics, also of a lock that the lanes of a warp wait for") {
  Ptx gpu;
  const Array<int> i(std::vector<int>(5));
  const Array<float> f(std::vector<float>(1));
  const Array<uint64_t> u(std::vector<uint64_t>(1));
  const Array<double> d(std::vector<double>(1));
  check(gpu.launch("atomics", {4}, {100}, 0, i.address(), f.address(), u.address(), d.address()));
  check(cuCtxSynchronize());
  CHECK(i.read() == std::vector<int>{400, 99, -1, 5, 400 % 11});
  CHECK(f.read().at(0) == 400);
  CHECK(u.read().at(0) == 7);
  CHECK(d.read().at(0) == 400);
  const Array<int> sum(std::vector<int>(1));
  check(gpu.launch("locked", {3}, {64}, 0, sum.address()));
  check(cuCtxSynchronize());
  CHECK(sum.read().at(0) == 3 * 64);
}

TEST_CASE("PTX: what lanes of a warp tell each other") {
  Ptx gpu;
  const Array<unsigned> out(std::vector<unsigned>(7 * 32));
  check(gpu.launch("lanes", {1}, {32}, 0, out.address()));
  check(cuCtxSynchronize());
  const std::vector<unsigned> got = out.read();
  unsigned thirds = 0;
  for (unsigned j = 0; j < 32; j += 3) thirds |= 1U << j;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned expected[] = {thirds,
                                 0x1111'1111U << lane % 4,
                                 496,
                                 lane == 0 ? 0 : lane - 1,
                                 lane % 8 < 6 ? lane + 2 : lane,
                                 32,
                                 3};
    for (size_t k = 0; k < 7; ++k) CHECK(got[32 * k + lane] == expected[k]);
  }
}

// Text of PTX, one kernel "one" of 32 threads: what it counts.
Counts counted_text(const std::string& body) {
  Ptx gpu;
  CUmodule module = nullptr;
  check(cuModuleLoadData(&module, (".version 8.6\n.target sm_90\n.address_size 64\n"
                                   ".visible .entry one()\n{\n" +
                                   body + "ret;\n}\n")
                                      .c_str()));
  CUfunction function = nullptr;
  check(cuModuleGetFunction(&function, module, "one"));
  Recorder recorder;
  check(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
  check(cuCtxSynchronize());
  return recorder.runs.at(0).counts;
}

TEST_CASE("PTX: one half counts apart from two, two floats in one instruction count twice") {
  const Counts halves = counted_text(
      ".reg .b16 %h;\n.reg .b32 %p;\nmov.b16 %h, 0x3c00;\nmov.b32 %p, 0x3c003c00;\n"
      "add.f16 %h, %h, %h;\nsub.bf16 %h, %h, %h;\nmul.f16 %h, %h, %h;\n"
      "fma.rn.bf16 %h, %h, %h, %h;\nfma.rn.f16x2 %p, %p, %p, %p;\nadd.bf16x2 %p, %p, %p;\n");
  CHECK(halves[Count::kHaddOne] == 2 * 32);
  CHECK(halves[Count::kHmulOne] == 32);
  CHECK(halves[Count::kHfmaOne] == 32);
  CHECK(halves[Count::kHadd] == 32);
  CHECK(halves[Count::kHmul] == 0);
  CHECK(halves[Count::kHfma] == 32);

  const Counts floats = counted_text(
      ".reg .b64 %f;\nmov.b64 %f, 0;\nadd.rn.f32x2 %f, %f, %f;\nmul.rn.f32x2 %f, %f, %f;\n"
      "fma.rn.f32x2 %f, %f, %f, %f;\n");
  for (const Count count : {Count::kFadd, Count::kFmul, Count::kFfma})
    CHECK(floats[count] == 2 * 32);
}

TEST_CASE("PTX: a sine and a cosine of one value count once, of another value again") {
  const std::string functions = "sin.approx.f32 %s, %x;\ncos.approx.f32 %c, %x;\n";
  const std::string text = ".reg .f32 %x, %s, %c;\nmov.f32 %x, 0f3f800000;\n" + functions;
  CHECK(counted_text(text)[Count::kApproxSinCosF32] == 32);
  CHECK(counted_text(text + "add.f32 %x, %x, %x;\n" + functions)[Count::kApproxSinCosF32] == 64);
  CHECK(counted_text(text + "again:\n" + functions)[Count::kApproxSinCosF32] == 64);
}

TEST_CASE("PTX: sums of floats count as atomic sums in shared memory alone") {
  const Counts counts = counted_text(
      ".reg .f32 %x;\n.reg .f64 %y;\n.shared .align 8 .b8 shared[8];\nmov.f32 %x, 0f3f800000;\n"
      "mov.f64 %y, 0d3ff0000000000000;\nred.shared.add.f32 [shared], %x;\n"
      "atom.shared.add.f64 %y, [shared], %y;\n");
  CHECK(counts[Count::kSharedAddF32] == 32);
  CHECK(counts[Count::kSharedAddF64] == 32);
  CHECK(counts[Count::kFadd] + counts[Count::kDadd] == 0);
}

TEST_CASE("PTX: halves are rounded once, functions are as close as CUDA promises") {
  Ptx gpu;
  // From 1 on, upwards by units of the last place: most products are between two halves.
  const auto a = made<uint32_t>(32, [](size_t i) { return 0x3c00'3c00U + (i << 16 | i); });
  const Array<uint32_t> device_a(a), c(std::vector<uint32_t>(32));
  const Array<uint16_t> x(made<uint16_t>(32, [](size_t i) { return 0x3f80 + i; })),
      y(std::vector<uint16_t>(32));
  const Counts counts = gpu.counted("halves", {1}, {32}, device_a.address(), device_a.address(),
                                    c.address(), x.address(), y.address());
  CHECK(counts[Count::kHfma] == 32);
  CHECK(counts[Count::kHadd] == 32);
  CHECK(counts[Count::kHmul] == 0);
  // A product and a sum in bf16, which nvcc makes multiply-adds of for compute capability 8.0.
  CHECK(counts[Count::kHaddOne] + counts[Count::kHmulOne] + counts[Count::kHfmaOne] == 2 * 32);
  const std::vector<uint32_t> got = c.read();
  for (size_t i = 0; i < 32; ++i) {
    const double v = half(static_cast<uint16_t>(a[i]));
    const double exact = v * v + 2 * v;  // 2 v is a half
    const double ulp = exact < 4 ? 0x1p-9 : 0x1p-8;
    CHECK(std::abs(half(static_cast<uint16_t>(got[i])) - exact) <= ulp / 2);
    CHECK(got[i] >> 16 == (got[i] & 0xffff));
  }

  const auto d = made<double>(32, [](size_t i) { return 0.1 + 0.37 * static_cast<double>(i); });
  const auto f = made<float>(32, [](size_t i) { return 0.2 + 0.11 * static_cast<double>(i); });
  const auto k = made<int>(32, [](size_t i) { return i * i - 200; });
  const Array<double> device_d(d), e(std::vector<double>(32));
  const Array<float> device_f(f);
  const Array<int> device_k(k);
  check(gpu.launch("functions", {1}, {32}, 0, device_d.address(), e.address(), device_f.address(),
                   device_k.address()));
  check(cuCtxSynchronize());
  const std::vector<double> doubles = e.read();
  const std::vector<float> floats = device_f.read();
  for (size_t i = 0; i < 32; ++i) {
    const double v = d[i], w = static_cast<double>(f[i]);
    const double expected = std::sqrt(v) / (v + 3) + std::sin(v) + std::exp(v) + std::pow(v, 1.5);
    CHECK(std::abs(doubles[i] / expected - 1) < 1e-14);
    const double single = std::sin(w) + std::exp(w) + std::log(w) + std::tanh(w) +
                          std::pow(w, 1.3) + std::erf(w) + w / 3 + std::sqrt(w);
    CHECK(std::abs(static_cast<double>(floats[i]) / single - 1) < 1e-6);
  }
  const std::vector<int> integers = device_k.read();
  for (size_t i = 0; i < 32; ++i)
    CHECK(integers[i] == k[i] / 7 + k[i] % 5 + static_cast<int>(f[i]) +
                             static_cast<int>(std::nearbyint(f[i])) +
                             static_cast<int>(std::llrint(d[i])));
}

TEST_CASE("PTX: local, constant and shared memory, and variables of the module") {
  Ptx gpu;
  CUdeviceptr table = 0;
  size_t bytes = 0;
  check(cuModuleGetGlobal(&table, &bytes, gpu.module, "table"));
  CHECK(bytes == 32 * sizeof(float));
  CHECK(cuModuleGetGlobal(&table, &bytes, gpu.module, "no_such") == CUDA_ERROR_NOT_FOUND);
  const auto values = made<float>(32, [](size_t i) { return static_cast<double>(i) + 0.5; });
  check(cuMemcpyHtoD(table, values.data(), bytes));
  const Array<float> out(std::vector<float>(256));
  check(gpu.launch("locals", {1}, {32}, 0, 20, out.address()));
  check(cuCtxSynchronize());
  float sum = 0;
  for (size_t i = 0; i < 20; ++i) sum += static_cast<float>(i * 7 % 32) * values[i * 7 % 32];
  CHECK(out.read().at(31) == sum + 5 + 1);
  check(gpu.launch("shared", {1}, {100}, 100 * sizeof(float), out.address()));
  check(cuCtxSynchronize());
  const std::vector<float> got = out.read();
  for (size_t i = 0; i < 100; ++i) {
    CHECK(got[i] == static_cast<float>(99 - i) + 2);
    CHECK(got[100 + i] == 34);
  }
  CUfunction shared = nullptr;
  int fixed = 0;
  check(cuModuleGetFunction(&shared, gpu.module, "shared"));
  check(cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, shared));
  CHECK(fixed == 4 * sizeof(float));
}

// The lines before nvcc's text have what ptxas said of each kernel.
TEST_CASE("PTX: registers and shared memory of a kernel are those that ptxas says") {
  const Ptx gpu;
  for (const char* const path : {PTX_KERNELS, HOPPER_KERNELS, TEST_KERNELS}) {
    CUmodule module = nullptr;
    check(cuModuleLoad(&module, path));
    std::ifstream file(path);
    int kernels = 0;
    for (std::string line; std::getline(file, line) && line.starts_with("// ptxas");) {
      char name[128];
      int registers = 0, shared = 0;
      REQUIRE(std::sscanf(line.c_str(), "// ptxas %*[^:]: %127[^:]: %d registers, %d bytes shared",
                          name, &registers, &shared) == 3);
      INFO(name);
      ++kernels;
      CUfunction function = nullptr;
      check(cuModuleGetFunction(&function, module, name));
      int said = 0;
      check(cuFuncGetAttribute(&said, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
      CHECK(said == registers);
      check(cuFuncGetAttribute(&said, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
      CHECK(said <= shared);
      CHECK(said + 8 >= shared);  // of few variables ptxas makes more
      // A multiprocessor has 65,536 registers, a warp of it a multiple of 256.
      check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&said, function, 256, 0));
      CHECK(said <= 65536 / (8 * ((registers * 32 + 255) / 256 * 256)));
    }
    unsigned all = 0;
    check(cuModuleGetFunctionCount(&all, module));
    CHECK(kernels == static_cast<int>(all));
    check(cuModuleUnload(module));
  }
  const char silent[] = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\nret;\n}\n";
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  int registers = 0;
  check(cuModuleLoadData(&module, silent));
  check(cuModuleGetFunction(&function, module, "k"));
  check(cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  CHECK(registers == 32);
}

TEST_CASE("PTX: lanes that leave a loop at different times, blocks that wait for later ones") {
  Ptx gpu;
  const Array<int> x(made<int>(64, [](size_t i) { return i + 1; })), out(std::vector<int>(64));
  check(gpu.launch("diverges", {1}, {64}, 0, x.address(), out.address()));
  check(cuCtxSynchronize());
  const std::vector<int> got = out.read();
  for (int i = 0; i < 64; ++i) {
    int v = i + 1, n = 0;
    for (; v != 1; ++n) v = v % 2 != 0 ? 3 * v + 1 : v / 2;
    const int ends[] = {n + 10, n * 3, -n, n ^ 5};
    CHECK(got[static_cast<size_t>(i)] == ends[n % 4]);
  }
  check(gpu.launch("waits_for_another_block", {50}, {32}, 0, out.address()));
  check(cuCtxSynchronize());
  CHECK(out.read().at(0) == 42);
}

TEST_CASE("PTX: a kernel's fault is its context's, and the process goes on") {
  struct Case {
    const char* kernel;
    CUdeviceptr first;
    CUresult error;
  };
  for (const Case& one :
       {Case{"reads", 0, CUDA_ERROR_ILLEGAL_ADDRESS},
        Case{"reads", 0x1000, CUDA_ERROR_ILLEGAL_ADDRESS},
        Case{"reads", 2, CUDA_ERROR_MISALIGNED_ADDRESS}, Case{"says", 0, CUDA_ERROR_ASSERT},
        Case{"waits_for_ever", 0, CUDA_ERROR_LAUNCH_TIMEOUT}}) {
    CAPTURE(one.kernel, one.first);
    Ptx gpu;
    const Array<int> memory(std::vector<int>(32));
    const CUdeviceptr from = one.first == 2 ? memory.address() + 2 : one.first;
    check(gpu.launch(one.kernel, {1}, {32}, 0, from, memory.address()));
    CHECK(cuCtxSynchronize() == one.error);
    CHECK(cuCtxSynchronize() == one.error);
    CHECK(gpu.launch("diverges", {1}, {32}, 0, memory.address(), memory.address()) == one.error);
  }
  Ptx another;
  const Array<int> from(made<int>(32, [](size_t i) { return i; })), to(std::vector<int>(32));
  check(another.launch("reads", {1}, {32}, 0, from.address(), to.address()));
  check(cuCtxSynchronize());
  CHECK(to.read() == from.read());
}

TEST_CASE("PTX: text that cannot be run is refused when it is loaded") {
  const Ptx gpu;
  const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";
  const auto load = [&](const std::string& text) {
    CUmodule module = nullptr;
    return cuModuleLoadData(&module, text.c_str());
  };
  const auto with = [&](const std::string& body) {
    return load(
        head +
        ".visible .entry k(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p; " +
        body + " ret; }");
  };
  CHECK(with("") == CUDA_SUCCESS);
  for (const char* const body : {
           "frobnicate.b32 %r1, %r2;",        // no such instruction
           "add.s32 %r1, %r2;",               // an operand is missing
           "add.s32 %r1, %r2, %rd1;",         // of another size
           "add.s32 %r1, %r2, %unknown;",     // no such register
           "bra nowhere;",                    // no such label
           "call nowhere;",                   // no such function
           "mov.b64 %rd1, nothing;",          // no such variable
           "tcgen05.wait::ld.sync.aligned;",  // not yet
           "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};",
           "ld.global.u32 %r1, [%rd1;",
           "@%r1 bra nowhere;",
           "{ { ",
       }) {
    CAPTURE(body);
    CHECK(with(body) == CUDA_ERROR_INVALID_PTX);
  }
  CHECK(load(".target sm_90\n.version") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(head + ".global .align 8 .b8 x[0x10000000000];") == CUDA_ERROR_INVALID_PTX);
}

TEST_CASE("PTX: an address beyond the end of all addresses is none") {
  const char* const spaces[] = {"shared", "local", "global"};
  for (const char* const space : spaces) {
    CAPTURE(space);
    const Ptx gpu;
    const std::string text = std::string(R"(.version 9.0
      .target sm_90
      .address_size 64
      .visible .entry beyond() {
        .reg .b32 %r<5>; .reg .b64 %rd<2>;
        .shared .align 16 .b8 here[64];
        .local .align 16 .b8 there[64];
        mov.u64 %rd1, 0xfffffffffffffff0;
        ld.)") + space + R"(.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];
        ret;
      })";
    CUmodule module = nullptr;
    CUfunction beyond = nullptr;
    check(cuModuleLoadData(&module, text.c_str()));
    check(cuModuleGetFunction(&beyond, module, "beyond"));
    check(cuLaunchKernel(beyond, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
}

TEST_CASE("PTX: a signed value in a wider register is extended") {
  const Ptx gpu;
  const char text[] = R"(.version 9.0
    .target sm_90
    .address_size 64
    .visible .entry narrow(.param .u64 p) {
      .reg .b32 %r<4>; .reg .b16 %h<3>; .reg .b64 %rd<3>; .reg .pred %p;
      ld.param.u64 %rd1, [p];
      ld.global.u32 %r1, [%rd1];
      cvt.s8.s32 %r2, %r1;
      st.global.u32 [%rd1+4], %r2;
      cvt.s8.u32 %h1, %r1;
      setp.lt.s16 %p, %h1, 0;
      selp.u32 %r3, 1, 0, %p;
      st.global.u32 [%rd1+8], %r3;
      cvt.s8.s32 %rd2, %r1;
      st.global.u64 [%rd1+16], %rd2;
      ret;
    })";
  CUmodule module = nullptr;
  CUfunction narrow = nullptr;
  check(cuModuleLoadData(&module, text));
  check(cuModuleGetFunction(&narrow, module, "narrow"));
  const Array<int> memory(std::vector<int>{200, 0, 0, 0, 0, 0});
  CUdeviceptr address = memory.address();
  void* params[] = {&address};
  check(cuLaunchKernel(narrow, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
  check(cuCtxSynchronize());
  CHECK(memory.read() == std::vector<int>{200, -56, 1, 0, -56, -1});
}

TEST_CASE("PTX: modules that come and go leave memory as it was") {
  const Ptx gpu;
  size_t before = 0, after = 0, total = 0;
  check(cuMemGetInfo(&before, &total));
  for (int i = 0; i < 20; ++i) {
    CUmodule module = nullptr;
    check(cuModuleLoad(&module, PTX_KERNELS));
    check(cuModuleUnload(module));
  }
  check(cuMemGetInfo(&after, &total));
  CHECK(after == before);
}
