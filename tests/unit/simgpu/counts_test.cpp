// What kernels count, against what their source says they do.
#include <cmath>

#include "gpu.h"

using simgpu::Count;
using simgpu::Counts;

namespace {

uint64_t floating_point(const Counts& c) {
  uint64_t sum = 0;
  for (uint32_t kind = 0; kind <= static_cast<uint32_t>(Count::kHfma); ++kind)
    sum += c[static_cast<Count>(kind)];
  return sum;
}

// Bytes of the 32-byte sectors that an array starting on a sector covers.
uint64_t sectors(uint64_t bytes) { return (bytes + 31) / 32 * 32; }

template <class... Args>
simgpu::KernelRun run(const Gpu& gpu, const char* name, unsigned grid, unsigned block,
                      unsigned shared, Args... args) {
  Recorder recorder;
  gpu.launch(name, grid, block, shared, args...);
  REQUIRE(recorder.runs.size() == 1);
  return recorder.runs[0];
}

}  // namespace

TEST_CASE("axpy counts one fused multiply-add per element") {
  const Gpu gpu;
  constexpr int kN = 1000;  // not a multiple of the block: the last threads do nothing
  std::vector<float> x(kN), y(kN, 1.0F);
  for (int i = 0; i < kN; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i);
  const Array<float> dx(x), dy(y);
  const auto counts = run(gpu, "axpy", 8, 128, 0, kN, 2.0F, dx.address(), dy.address()).counts;
  CHECK(counts[Count::kFfma] == kN);
  CHECK(floating_point(counts) == kN);
  CHECK(counts[Count::kThreads] == 8 * 128);
  CHECK(counts[Count::kDramReadBytes] == 2 * sectors(kN * 4));
  CHECK(counts[Count::kDramWriteBytes] == sectors(kN * 4));
  const auto result = dy.read();
  for (size_t i = 0; i < kN; ++i) REQUIRE(result[i] == 2.0F * x[i] + 1.0F);
}

TEST_CASE("unfused double precision counts a multiply and an add") {
  const Gpu gpu;
  constexpr int kN = 77;
  const Array<double> x(std::vector<double>(kN, 3.0)), y(std::vector<double>(kN, 0.5));
  const auto counts =
      run(gpu, "daxpy_unfused", 1, 128, 0, kN, 2.0, x.address(), y.address()).counts;
  CHECK(counts[Count::kDmul] == kN);
  CHECK(counts[Count::kDadd] == kN);
  CHECK(floating_point(counts) == 2 * kN);
  CHECK(y.read() == std::vector<double>(kN, 6.5));
}

TEST_CASE("a packed half operation counts as one instruction") {
  const Gpu gpu;
  constexpr int kPairs = 64;
  const uint32_t one = 0x3c003c00, two = 0x40004000,
                 nine = 0x48804880;  // pairs of 1.0, 2.0, 9.0 in binary16
  const Array<uint32_t> x(std::vector<uint32_t>(kPairs, two)),
      y(std::vector<uint32_t>(kPairs, one));
  const auto counts =
      run(gpu, "half2_axpy", 1, kPairs, 0, kPairs, two, x.address(), y.address()).counts;
  CHECK(counts[Count::kHfma] == kPairs);
  CHECK(counts[Count::kHmul] == kPairs);
  CHECK(counts[Count::kHadd] == kPairs);
  CHECK(floating_point(counts) == 3 * kPairs);
  CHECK(y.read() == std::vector<uint32_t>(kPairs, nine));  // (2*2 + 1) + 2*2
}

TEST_CASE("a matrix product counts m*n*k fused multiply-adds and each matrix once") {
  const Gpu gpu;
  constexpr int kM = 13, kN = 16, kK = 24;
  std::vector<float> a(kM * kK), b(kK * kN);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 7);
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5);
  const Array<float> da(a), db(b), dc(std::vector<float>(kM * kN));
  Recorder recorder;
  int m = kM, n = kN, k = kK;
  CUdeviceptr pa = da.address(), pb = db.address(), pc = dc.address();
  void* params[] = {&m, &n, &k, &pa, &pb, &pc};
  check(cuLaunchKernel(gpu.function("matmul"), 2, 2, 1, 8, 8, 1, 0, nullptr, params, nullptr));
  REQUIRE(recorder.runs.size() == 1);
  const Counts& counts = recorder.runs[0].counts;
  CHECK(counts[Count::kFfma] == kM * kN * kK);
  CHECK(floating_point(counts) == kM * kN * kK);
  CHECK(counts[Count::kDramReadBytes] == sectors(kM * kK * 4) + sectors(kK * kN * 4));
  CHECK(counts[Count::kDramWriteBytes] == sectors(kM * kN * 4));
  const auto c = dc.read();
  for (size_t row = 0; row < kM; ++row)
    for (size_t col = 0; col < kN; ++col) {
      float sum = 0;
      for (size_t i = 0; i < kK; ++i) sum += a[row * kK + i] * b[i * kN + col];
      REQUIRE(c[row * kN + col] == sum);
    }
}

TEST_CASE("a tree reduction over barriers counts one add less than elements") {
  const Gpu gpu;
  constexpr unsigned kBlock = 128, kBlocks = 5;
  std::vector<float> x(kBlock * kBlocks);
  float expected = 0;
  for (size_t i = 0; i < x.size(); ++i) expected += x[i] = static_cast<float>(i % 10);
  const Array<float> dx(x), total({0.0F});
  const auto counts =
      run(gpu, "reduce", kBlocks, kBlock, kBlock * 4, dx.address(), total.address()).counts;
  CHECK(counts[Count::kFadd] == kBlocks * (kBlock - 1));  // the atomic add is the memory system's
  CHECK(floating_point(counts) == kBlocks * (kBlock - 1));
  CHECK(counts[Count::kDramReadBytes] == sectors(x.size() * 4) + 32);
  CHECK(counts[Count::kDramWriteBytes] == 32);
  CHECK(total.read()[0] == expected);
}

TEST_CASE("threads may leave a block before the others meet again") {
  const Gpu gpu;
  constexpr unsigned kBlock = 33;
  const Array<int> order(std::vector<int>(kBlock + 1));
  gpu.launch("staggered_exit", 1, kBlock, 0, order.address());
  const auto result = order.read();
  for (unsigned t = 0; t < kBlock; ++t)
    CHECK(result[t] == static_cast<int>(t));  // thread t leaves in round t
}

TEST_CASE("every thread of a three-dimensional launch runs once") {
  const Gpu gpu;
  const Array<unsigned> out(std::vector<unsigned>(2 * 3 * 4 * 5 * 6 * 7));
  CUdeviceptr p = out.address();
  void* params[] = {&p};
  check(cuLaunchKernel(gpu.function("indices"), 2, 3, 4, 5, 6, 7, 0, nullptr, params, nullptr));
  const auto result = out.read();
  for (unsigned block = 0; block < 24; ++block)
    for (unsigned thread = 0; thread < 210; ++thread)
      REQUIRE(result[block * 210 + thread] == block * 1000 + thread);
}

TEST_CASE("in a profiler's session a kernel runs once, and all of it is counted") {
  const Gpu gpu;
  const Array<int> x({20});
  hooks().set_session(gpu.context, {1, 1, 0});
  const auto once = run(gpu, "add_one", 1, 1, 0, x.address());
  const auto next = run(gpu, "add_one", 1, 1, 0, x.address());
  hooks().set_session(gpu.context, {0, 0, 0});
  CHECK(x.read()[0] == 22);
  CHECK(next.grid_id == once.grid_id + 1);
  CHECK(once.counts[Count::kThreads] == 1);
  CHECK(once.counts[Count::kDramReadBytes] == 32);
}

TEST_CASE("duration follows the documented model and repeats exactly") {
  const Gpu gpu;
  constexpr int kN = 1 << 16;
  const Array<float> x(std::vector<float>(kN, 1.0F)), y(std::vector<float>(kN, 1.0F));
  const auto first = run(gpu, "axpy", kN / 256, 256, 0, kN, 2.0F, x.address(), y.address());
  const auto second = run(gpu, "axpy", kN / 256, 256, 0, kN, 2.0F, x.address(), y.address());
  // GH100: 3352 GB/s. 3 arrays of 256 KiB take longer than 65536 instructions on 132 x 128 lanes
  // at 1.98 GHz.
  const double expected = 1500.0 + 3.0 * kN * 4 / 3352.0;
  CHECK(static_cast<double>(first.end_ns - first.start_ns) == Approx(std::floor(expected)));
  CHECK(second.end_ns - second.start_ns == first.end_ns - first.start_ns);
  CHECK(second.start_ns >= first.end_ns);
  CHECK(first.cycles == (first.end_ns - first.start_ns) * 1980 / 1000);
}
