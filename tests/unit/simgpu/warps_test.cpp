// Threads of one warp (ptx/warps.cu) that have ended or are at different instructions: they
// exchange values as CUDA's guide and PTX define it for sm_70 and later, reckoned here thread by
// thread.
#include <numeric>
#include <vector>

#include "gpu.h"

namespace {

using Numbers = std::vector<unsigned>;

class Warps {
 public:
  Warps() {
    check(cuInit(0));
    check(cuCtxCreate(&context_, nullptr, 0, 0));
    check(cuModuleLoad(&module_, WARP_KERNELS));
  }
  ~Warps() { cuCtxDestroy(context_); }
  Warps(const Warps&) = delete;
  Warps& operator=(const Warps&) = delete;

  struct Shape {
    unsigned blocks = 1, x = 32, y = 1;
  };
  template <class... Args>
  CUresult run(const char* name, Shape shape, Args... args) {
    CUfunction function = nullptr;
    check(cuModuleGetFunction(&function, module_, name));
    void* params[] = {&args..., nullptr};
    check(cuLaunchKernel(function, shape.blocks, 1, 1, shape.x, shape.y, 1, 0, nullptr, params,
                         nullptr));
    return cuCtxSynchronize();
  }

 private:
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

constexpr unsigned kUntouched = 0xdeadbeef;

}  // namespace

TEST_CASE("PTX: threads that have ended are not waited for") {
  struct Range {
    int from, to;
  };
  for (const Range& live :
       {Range{0, 32}, Range{0, 20}, Range{0, 1}, Range{13, 32}, Range{31, 32}, Range{7, 19}}) {
    CAPTURE(live.from, live.to);
    Warps gpu;
    const Array<unsigned> out(Numbers(6 * 32, kUntouched));
    REQUIRE(gpu.run("some_end", {}, live.from, live.to, out.address()) == CUDA_SUCCESS);
    const Numbers got = out.read();
    const auto is_live = [&](int lane) { return lane >= live.from && lane < live.to; };
    unsigned votes = 0, sum = 0, same[4] = {};
    for (int lane = live.from; lane < live.to; ++lane) {
      if (lane % 3 != 0) votes |= 1U << lane;
      sum += static_cast<unsigned>(lane);
      same[lane % 4] |= 1U << lane;
    }
    for (int lane = 0; lane < 32; ++lane) {
      CAPTURE(lane);
      const unsigned* const mine = &got[6 * static_cast<size_t>(lane)];
      if (!is_live(lane)) {
        for (int i = 0; i < 6; ++i) CHECK(mine[i] == kUntouched);
        continue;
      }
      // What is read of a thread that has ended is not defined.
      if (is_live(lane ^ 1)) CHECK(mine[0] == 100U + static_cast<unsigned>(lane ^ 1));
      CHECK(mine[1] == votes);
      CHECK(mine[2] == sum);
      CHECK(mine[3] == same[lane % 4]);
      CHECK(mine[4] == (is_live(31) ? 3U : 2U));
      CHECK(mine[5] == static_cast<unsigned>(live.to - live.from));
    }
  }
}

TEST_CASE("PTX: threads that end while others wait for them") {
  Warps gpu;
  for (const int ends : {1, 20, 31}) {
    CAPTURE(ends);
    const Array<unsigned> out(Numbers(32, kUntouched));
    REQUIRE(gpu.run("some_end_later", {}, ends, out.address()) == CUDA_SUCCESS);
    const Numbers got = out.read();
    for (int lane = 0; lane < 32; ++lane)
      CHECK(got[static_cast<size_t>(lane)] ==
            (lane < ends ? static_cast<unsigned>(ends - 1) : kUntouched));
  }
}

TEST_CASE("PTX: a sum over a block whose last shuffles are by half of a warp") {
  Warps gpu;
  std::vector<float> x(256);
  std::iota(x.begin(), x.end(), 1.F);
  const Array<float> device_x(x), sum(std::vector<float>(1));
  REQUIRE(gpu.run("sum_of_tile", {1, 16, 16}, device_x.address(), sum.address()) == CUDA_SUCCESS);
  CHECK(sum.read().at(0) == 256.F * 257 / 2);
}

TEST_CASE("PTX: threads in both branches of an if exchange with each other") {
  Warps gpu;
  const Array<unsigned> out(Numbers(7 * 32));
  REQUIRE(gpu.run("both_branches", {}, out.address()) == CUDA_SUCCESS);
  const Numbers got = out.read();
  const auto even = [](unsigned lane) { return lane % 2 == 0; };
  // What each thread gives to the second to seventh instruction of its branch.
  const auto voted = [&](unsigned lane) { return lane % 8 == (even(lane) ? 0U : 1U); };
  const auto added = [&](unsigned lane) { return even(lane) ? 3 * lane : lane * lane; };
  const auto matched = [&](unsigned lane) { return even(lane) ? lane / 8 : lane / 8 + 1; };
  const auto wide = [&](unsigned lane) { return even(lane) ? lane / 4 : lane % 4; };
  unsigned votes = 0, sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (voted(lane)) votes |= 1U << lane;
    sum += added(lane);
  }
  for (unsigned lane = 0; lane < 32; ++lane) {
    CAPTURE(lane);
    const unsigned* const mine = &got[7 * static_cast<size_t>(lane)];
    const unsigned other = lane ^ 1;
    unsigned same = 0, same_wide = 0;
    for (unsigned l = 0; l < 32; ++l) {
      if (matched(l) == matched(lane)) same |= 1U << l;
      if (wide(l) == wide(lane)) same_wide |= 1U << l;
    }
    CHECK(mine[0] == (even(other) ? 10 * other : 1000 + other));
    CHECK(mine[1] == votes);
    CHECK(mine[2] == sum);
    CHECK(mine[3] == same);
    CHECK(mine[4] == (even(other) ? 7 * other : 9 * other));
    CHECK(mine[5] == 1);
    CHECK(mine[6] == same_wide);
  }
}

TEST_CASE("PTX: threads meet by their mask") {
  Warps gpu;
  for (const unsigned size : {1U, 2U, 8U, 16U, 32U}) {
    CAPTURE(size);
    const Array<unsigned> out(Numbers(3 * 32));
    REQUIRE(gpu.run("tiles", {}, static_cast<int>(size), out.address()) == CUDA_SUCCESS);
    const Numbers got = out.read();
    for (unsigned lane = 0; lane < 32; ++lane) {
      unsigned sum = 0, votes = 0;
      const unsigned first = lane / size * size;
      for (unsigned l = first; l < first + size; ++l) {
        sum += l * l;
        votes |= static_cast<unsigned>(l % 3 == 0) << l;
      }
      CHECK(got[lane] == sum);
      CHECK(got[32 + lane] == first + size - 1);
      CHECK(got[64 + lane] == votes);
    }
  }
  const Array<unsigned> out(Numbers(32));
  REQUIRE(gpu.run("halves_in_branches", {}, out.address()) == CUDA_SUCCESS);
  const Numbers got = out.read();
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned sum = 0;
    for (unsigned l = lane / 16 * 16; l < lane / 16 * 16 + 16; ++l) sum += l % 4 == 3 ? l : 2 * l;
    CHECK(got[lane] == (lane % 4 == 3 ? sum : 1000 + sum));
  }
}

TEST_CASE("PTX: threads in different calls exchange with each other") {
  Warps gpu;
  const Array<unsigned> out(Numbers(32));
  REQUIRE(gpu.run("in_functions", {}, out.address()) == CUDA_SUCCESS);
  const Numbers got = out.read();
  const auto gives = [](unsigned lane) {
    return lane % 2 == 0 ? lane + lane % 3 : lane % 4 == 1 ? 2 * lane : 3 * lane;
  };
  const auto adds = [](unsigned lane) {
    return lane % 2 == 0 ? lane % 3 : lane % 4 == 1 ? 5U : 7U;
  };
  for (unsigned lane = 0; lane < 32; ++lane) CHECK(got[lane] == gives(lane ^ 1) + adds(lane));

  const Array<unsigned> counts(Numbers(96));
  REQUIRE(gpu.run("barrier_in_function", {1, 96}, counts.address()) == CUDA_SUCCESS);
  CHECK(counts.read() == Numbers(96, 48 + 48 * 100));
}

TEST_CASE("PTX: a barrier of some warps counts warps, some of whose threads have ended") {
  Warps gpu;
  for (const unsigned ends : {32U, 20U, 7U, 1U}) {
    CAPTURE(ends);
    const Array<unsigned> out(Numbers(32, kUntouched));
    REQUIRE(gpu.run("named_barrier", {1, 64}, ends, out.address()) == CUDA_SUCCESS);
    const Numbers got = out.read();
    for (unsigned lane = 0; lane < 32; ++lane)
      CHECK(got[lane] == (lane < ends ? ends : kUntouched));
  }
}

TEST_CASE("PTX: each thread of a warp goes on, whatever the others do") {
  for (const int way : {0, 1, 2, 3}) {
    CAPTURE(way);
    Warps gpu;
    const Array<unsigned> sum(Numbers(34));
    REQUIRE(gpu.run("takes_lock", {2, 64}, way, sum.address()) == CUDA_SUCCESS);
    CHECK(sum.read().at(0) == 2 * 64);
  }
  for (const int up : {0, 1}) {
    CAPTURE(up);
    Warps gpu;
    const Array<unsigned> out(Numbers(32));
    REQUIRE(gpu.run("chain", {}, up, out.address()) == CUDA_SUCCESS);
    const Numbers got = out.read();
    for (unsigned lane = 0; lane < 32; ++lane) CHECK(got[lane] == (up != 0 ? 32 - lane : lane + 1));
  }
}

TEST_CASE("PTX: threads that never meet are found out, and so is one outside of its mask") {
  {
    Warps gpu;
    const Array<unsigned> out(Numbers(32));
    CHECK(gpu.run("never_meet", {}, out.address()) == CUDA_ERROR_LAUNCH_TIMEOUT);
  }
  Warps gpu;
  const Array<unsigned> out(Numbers(32));
  CHECK(gpu.run("not_in_its_mask", {}, out.address()) == CUDA_ERROR_ILLEGAL_INSTRUCTION);
}
