// The counting scalars by themselves: rounding and what counts.
#include <simgpu/kernel_sim.h>

#include <cmath>
#include <cstring>

#include "catch.h"

using simgpu::Count;

namespace {

// Counts what happens while it lives, on this thread.
struct Counting {
  Counting() { simgpu::execution = &execution; }
  ~Counting() { simgpu::execution = nullptr; }
  uint64_t operator[](Count kind) const { return execution.counts[kind]; }
  uint64_t all() const {
    uint64_t sum = 0;
    for (const uint64_t n : execution.counts.value) sum += n;
    return sum;
  }
  simgpu::Execution execution{};
};

}  // namespace

TEST_CASE("half conversion is exact for every half and rounds ties to even between them") {
  for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
    const double low = simgpu::half_value(static_cast<uint16_t>(bits));
    REQUIRE(simgpu::half_bits(low) == bits);
    REQUIRE(simgpu::half_bits(-low) == (bits | 0x8000));
    // The next one; past the largest comes 65536, which stands for infinity.
    const double high =
        bits + 1 < 0x7c00 ? simgpu::half_value(static_cast<uint16_t>(bits + 1)) : 65536.0;
    const double middle = (low + high) / 2;
    REQUIRE(simgpu::half_bits(middle) == (bits % 2 == 0 ? bits : bits + 1));
    REQUIRE(simgpu::half_bits(std::nextafter(middle, 0.0)) == bits);
    REQUIRE(simgpu::half_bits(std::nextafter(middle, 1e9)) == bits + 1);
  }
  CHECK(simgpu::half_bits(INFINITY) == 0x7c00);
  CHECK(simgpu::half_bits(1e300) == 0x7c00);
  CHECK(simgpu::half_bits(5e-324) == 0);
  CHECK((simgpu::half_bits(NAN) & 0x7fff) > 0x7c00);
  CHECK(std::isnan(simgpu::half_value(0x7e00)));
}

TEST_CASE("a fused half multiply-add rounds once") {
  const Counting counting;
  // 1.0009765625^2 = 1.00195407867431640625: rounding the product first loses what makes the sum
  // differ.
  const gpu::f16 a = 1.0009765625, c = -1.001953125;
  CHECK(double(gpu::fma(a, a, c)) == 0x1p-20);
  CHECK(double(a * a + c) == 0.0);
}

TEST_CASE("each operator counts as the instruction it is") {
  const Counting counting;
  gpu::f32 a = 2.0F, b = 3.0F;
  CHECK(float(a + b) == 5.0F);
  CHECK(float(a - b) == -1.0F);
  a += b;
  a -= b;
  CHECK(counting[Count::kFadd] == 4);
  a *= b;
  CHECK(float(a * -b) == -18.0F);
  CHECK(counting[Count::kFmul] == 2);
  CHECK(float(gpu::fma(a, b, 1.0F)) == 19.0F);
  CHECK(counting[Count::kFfma] == 1);
  const gpu::f64 d = gpu::f64(a) * 0.5 + gpu::fma(gpu::f64(1), gpu::f64(b), gpu::f64(0));
  CHECK(double(d) == 6.0);
  CHECK(counting[Count::kDmul] == 1);
  CHECK(counting[Count::kDadd] == 1);
  CHECK(counting[Count::kDfma] == 1);
  CHECK(counting.all() == 10);
}

TEST_CASE("comparison, negation, conversion, division and special functions are not counted") {
  const Counting counting;
  const gpu::f32 a = 2.0F, b = -3.0F;
  CHECK((a > b && b < a && a != b && a >= b && !(a == b)));
  CHECK(float(-a) == -2.0F);
  CHECK(float(gpu::max(a, b)) == 2.0F);
  CHECK(float(gpu::f32(gpu::f64(a))) == 2.0F);
  CHECK(float(gpu::f32(7)) == 7.0F);
  CHECK(float(a / b) == Approx(-2.0F / 3.0F));
  CHECK(float(gpu::exp(gpu::f32(0.0F))) == 1.0F);
  CHECK(float(gpu::log(gpu::f32(1.0F))) == 0.0F);
  CHECK(counting.all() == 0);
}

TEST_CASE("an assignment from one device element to another is a load and a store") {
  alignas(2048) static float memory[1024];
  static simgpu::SectorChunk chunks[2];
  Counting counting;
  counting.execution.sectors = {reinterpret_cast<uint64_t>(memory), sizeof memory, chunks, 1};
  const gpu::ptr<float> p(memory);
  memory[0] = 5;
  p[512] = p[0];
  CHECK(memory[512] == 5);
  CHECK(counting[Count::kDramReadBytes] == 32);
  CHECK(counting[Count::kDramWriteBytes] == 32);
  p[7] = p[1] + p[2];  // the sector of p[0]: read already, not yet written
  CHECK(counting[Count::kDramReadBytes] == 32);
  CHECK(counting[Count::kDramWriteBytes] == 64);
  float on_stack = 1;
  const gpu::ptr<float> host(&on_stack);
  host[0] = host[0] + 1;  // not device memory
  CHECK(counting[Count::kDramWriteBytes] == 64);
  struct Wide {
    float v[10];
  };
  const gpu::ptr<Wide> wide(
      reinterpret_cast<Wide*>(memory + 100));  // bytes 400 to 439: sectors 12 and 13
  const Wide w = wide[0];
  CHECK(w.v[0] == 0);
  CHECK(counting[Count::kDramReadBytes] == 32 + 64);
}
