// Windows and counters beside work that waits, behind the library's callback.
#include <chrono>
#include <thread>

#include "catch.h"
#include "unit/injector/played_gpu.h"

using namespace flopinj;
using namespace std::chrono_literals;
using test::PlayedGpu;

namespace {

// A program whose collectives are in flight whenever `gpu.busy`.
struct Program {
  Program() { REQUIRE(gpu.enable()); }

  void collective() { made(gpu.call(CUPTI_DRIVER_TRACE_CBID_cuLaunchHostFunc, host_function)); }
  // A call that waits for the GPU, and returns when all that was in flight has ended.
  void synchronize(std::chrono::milliseconds takes = 3ms) {
    const auto call = gpu.call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, none);
    gpu.enter(call);
    std::this_thread::sleep_for(takes);
    gpu.busy = false;
    gpu.exit(call);
  }
  // Of a kernel that wants to be measured. Whether it was.
  bool launch() {
    PlayedGpu::Launch launch;
    gpu.prepare(launch);
    const uint32_t before = gpu.measured;
    gpu.enter(launch.call);
    gpu.run();
    gpu.exit(launch.call);
    return gpu.measured > before;
  }
  void made(const PlayedGpu::Call& call) {
    gpu.enter(call);
    gpu.exit(call);
    gpu.busy = true;
  }

  PlayedGpu gpu;
  cuLaunchHostFunc_params host_function{reinterpret_cast<CUstream>(uintptr_t{0x2000}), nullptr,
                                        nullptr};
  int none = 0;
};

template <class Condition>
bool comes_true(Condition condition, std::chrono::milliseconds most) {
  const auto give_up = std::chrono::steady_clock::now() + most;
  while (!condition() && std::chrono::steady_clock::now() < give_up)
    std::this_thread::sleep_for(1ms);
  return condition();
}

}  // namespace

TEST_CASE("behind a call that waits for the GPU windows open; before it none does") {
  Program program;
  program.launch();
  program.collective();
  const uint32_t before = program.gpu.windows;
  for (int i = 0; i < 50; ++i) CHECK_FALSE(program.launch());
  CHECK(program.gpu.windows == before);
  program.synchronize();
  CHECK(program.launch());
  CHECK(program.gpu.windows > before);
}

TEST_CASE("a window is closed before a collective, and a launch behind it waits for its end") {
  Program program;
  program.launch();
  program.collective();
  program.synchronize(400ms);  // of which a launch may wait for a half
  REQUIRE(program.launch());
  program.collective();
  CHECK_FALSE(program.gpu.window_open);
  std::thread gpu([&] {
    std::this_thread::sleep_for(5ms);
    program.gpu.busy = false;
  });
  CHECK(program.launch());
  gpu.join();
}

TEST_CASE("a launch does not wait for ever, and no launch where the program never waits") {
  Program program;
  program.launch();
  program.collective();
  const auto began = std::chrono::steady_clock::now();
  const uint32_t asked = program.gpu.streams_asked;
  for (int i = 0; i < 20; ++i) CHECK_FALSE(program.launch());
  // A launch that waits asks twenty times in a millisecond.
  const auto ms = (std::chrono::steady_clock::now() - began) / 1ms;
  CHECK(program.gpu.streams_asked - asked <= static_cast<uint64_t>(ms) + 2);
  program.synchronize(20ms);
  program.collective();  // it never ends
  const auto waits = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) CHECK_FALSE(program.launch());
  const auto took = std::chrono::steady_clock::now() - waits;
  CHECK(took > 10ms);  // one has waited
  CHECK(took < 1s);
}

TEST_CASE("counters are given back at a call that waits for the GPU, and not beside collectives") {
  Program program;
  REQUIRE(program.launch());
  program.collective();
  REQUIRE(program.gpu.enabled == 1);
  // Longer than a lease lasts.
  CHECK_FALSE(comes_true([&] { return program.gpu.disabled != 0; }, 2'500ms));
  program.synchronize();
  CHECK(program.gpu.disabled == 1);
  CHECK_FALSE(program.gpu.window_open);
}

TEST_CASE("while counters are given back collectives are held up, and no other launch is") {
  std::atomic<bool> began{false}, may_end{false}, collective_made{false};
  Program program;
  program.gpu.disabling = [&] {
    began = true;
    while (!may_end) std::this_thread::sleep_for(1ms);
  };
  REQUIRE(program.launch());
  REQUIRE(comes_true([&] { return began.load(); }, 10s));  // nothing was launched for a while
  std::thread other([&] {
    program.collective();
    collective_made = true;
  });
  CHECK_FALSE(program.launch());  // at once
  CHECK_FALSE(comes_true([&] { return collective_made.load(); }, 100ms));
  may_end = true;
  other.join();
  CHECK(collective_made);
}

TEST_CASE("counters that a launch has asked for in vain are kept for it") {
  Program program;
  REQUIRE(program.launch());
  program.collective();
  std::this_thread::sleep_for(2'500ms);
  CHECK_FALSE(program.launch());
  program.synchronize();
  CHECK(program.gpu.disabled == 0);
  CHECK(program.launch());
  CHECK(program.gpu.enabled == 1);
}

TEST_CASE("counters come back to a launch behind a call that waits for the GPU") {
  Program program;
  REQUIRE(program.launch());
  REQUIRE(comes_true([&] { return program.gpu.disabled == 1; }, 10s));
  program.collective();
  program.synchronize(20ms);
  std::this_thread::sleep_for(1'200ms);  // the pause behind a short lease
  CHECK(comes_true([&] { return program.launch(); }, 5s));
  CHECK(program.gpu.enabled == 2);
}

TEST_CASE("what was not measured is said, and how often") {
  Program program;
  program.collective();
  for (int i = 0; i < 30; ++i) CHECK_FALSE(program.launch());
  std::this_thread::sleep_for(500ms);  // the writer counts launches
  const std::string& trace = program.gpu.trace();
  CHECK(trace.find("counters.in_flight") != std::string::npos);
  CHECK(trace.find("(30 times)") != std::string::npos);
}

TEST_CASE("where all was measured nothing is said") {
  Program program;
  for (int i = 0; i < 8; ++i) {
    program.collective();
    program.synchronize();
    CHECK(program.launch());
  }
  CHECK(program.gpu.trace().find("counters.in_flight") == std::string::npos);
}
