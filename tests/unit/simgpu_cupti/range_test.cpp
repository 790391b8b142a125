// The range profiler: what it measures, and the rules it enforces.
#include <cmath>
#include <string>
#include <vector>

#include "catch.h"
#include "fake_driver.h"
#include "range_client.h"

namespace {

using simgpu::Count;

const CUcontext kContext = FakeDriver::context(1);

FakeDriver::Launch ffma_kernel(uint64_t ffma) {
  FakeDriver::Launch launch;
  launch.counts[Count::kFfma] = ffma;
  return launch;
}

// An enabled object that is gone at the end of the test.
struct Session : RangeClient {
  Session() {
    REQUIRE(initialize_profiler() == CUPTI_SUCCESS);
    REQUIRE(enable(kContext) == CUPTI_SUCCESS);
  }
  ~Session() { cuptiFinalize(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void configure(const HostPlan& plan, const Metrics& metrics, size_t ranges) {
    REQUIRE(make_image(metrics, ranges) == CUPTI_SUCCESS);
    REQUIRE(set_config(plan, ranges) == CUPTI_SUCCESS);
  }
};

}  // namespace

TEST_CASE("auto range: one range per launch, in order, with exactly its counts") {
  Session session;
  const HostPlan plan(kSassMetrics);
  session.configure(plan, kSassMetrics, 10);
  FakeDriver::get().launch(ffma_kernel(999));  // before the window
  REQUIRE(session.start() == CUPTI_SUCCESS);
  for (uint64_t i = 1; i <= 3; ++i) FakeDriver::get().launch(ffma_kernel(10 * i));
  auto other = ffma_kernel(999);
  other.context = FakeDriver::context(2);
  FakeDriver::get().launch(other);  // another context is not ours
  REQUIRE(session.stop() == CUPTI_SUCCESS);
  CHECK(session.all_passes);
  FakeDriver::get().launch(ffma_kernel(999));  // after it
  CHECK(session.ranges() == 0);                // nothing before decoding
  REQUIRE(session.decode() == CUPTI_SUCCESS);
  CHECK(session.dropped == 0);
  REQUIRE(session.ranges() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(session.name(i) == std::to_string(i));
    std::vector<double> expected(9, 0.0);
    expected[2] = 10.0 * static_cast<double>(i + 1);
    CHECK(session.values(plan, kSassMetrics, i) == expected);
  }
}

TEST_CASE("all passes of a configuration are collected from the one run of a kernel") {
  Session session;
  const Metrics metrics = kSassMetrics + kScreening;
  const HostPlan plan(metrics);
  REQUIRE(plan.passes == 2);
  session.configure(plan, metrics, 4);
  CHECK(!FakeDriver::get().in_session(kContext));
  REQUIRE(session.start() == CUPTI_SUCCESS);
  CHECK(FakeDriver::get().in_session(kContext));
  auto launch = ffma_kernel(5);
  launch.counts[Count::kDramReadBytes] = 4096;
  launch.counts[Count::kTensorInstructions] = 12;
  launch.counts[Count::kTensorBf16] = 1000;
  FakeDriver::get().launch(launch);
  REQUIRE(session.stop() == CUPTI_SUCCESS);
  CHECK(!FakeDriver::get().in_session(kContext));
  REQUIRE(session.decode() == CUPTI_SUCCESS);
  const auto values = session.values(plan, metrics, 0);
  REQUIRE(values.size() == 17);
  CHECK(values[2] == 5);      // FFMA
  CHECK(values[9] == 12);     // HMMA instructions
  CHECK(values[13] == 4096);  // bytes read
  CHECK(values[15] == 500);   // 1000 to 1500 ns
  CHECK(values[16] == 700);   // cycles on each SM
}

TEST_CASE("every kernel node of a graph is a range") {
  Session session;
  const HostPlan plan(kSassMetrics);
  session.configure(plan, kSassMetrics, 10);
  REQUIRE(session.start() == CUPTI_SUCCESS);
  FakeDriver::get().launch_graph({ffma_kernel(1), ffma_kernel(2), ffma_kernel(3)});
  REQUIRE(session.stop() == CUPTI_SUCCESS);
  REQUIRE(session.decode() == CUPTI_SUCCESS);
  REQUIRE(session.ranges() == 3);
  CHECK(session.values(plan, kSassMetrics, 2)[2] == 3);
}

TEST_CASE("ranges beyond the limits are dropped and reported") {
  Session session;
  const HostPlan plan(kSassMetrics);
  size_t image_ranges = 0, pass_ranges = 0;
  SECTION("of the pass") { image_ranges = 10, pass_ranges = 4; }
  SECTION("of the image") { image_ranges = 4, pass_ranges = 10; }
  REQUIRE(session.make_image(kSassMetrics, image_ranges) == CUPTI_SUCCESS);
  REQUIRE(session.set_config(plan, pass_ranges) == CUPTI_SUCCESS);
  REQUIRE(session.start() == CUPTI_SUCCESS);
  for (uint64_t i = 0; i < 7; ++i) FakeDriver::get().launch(ffma_kernel(i));
  REQUIRE(session.stop() == CUPTI_SUCCESS);
  REQUIRE(session.decode() == CUPTI_SUCCESS);
  CHECK(session.ranges() == 4);
  CHECK(session.dropped == 3);
  CHECK(session.values(plan, kSassMetrics, 3)[2] == 3);
}

TEST_CASE("an image that is not initialized again keeps its ranges and fills up") {
  Session session;
  const HostPlan plan(kSassMetrics);
  session.configure(plan, kSassMetrics, 3);
  for (int window = 0; window < 2; ++window) {
    REQUIRE(session.start() == CUPTI_SUCCESS);
    FakeDriver::get().launch(ffma_kernel(1));
    FakeDriver::get().launch(ffma_kernel(2));
    REQUIRE(session.stop() == CUPTI_SUCCESS);
    REQUIRE(session.decode() == CUPTI_SUCCESS);
  }
  CHECK(session.ranges() == 3);
  CHECK(session.dropped == 1);
  REQUIRE(session.reinitialize_image() == CUPTI_SUCCESS);
  CHECK(session.ranges() == 0);
}

TEST_CASE("user ranges add up their kernels, nested ones included") {
  Session session;
  const Metrics metrics = {"dram__bytes_read.sum"};
  const HostPlan plan(metrics);
  REQUIRE(session.make_image(metrics, 10) == CUPTI_SUCCESS);
  REQUIRE(session.set_config(plan, 10, CUPTI_UserRange, CUPTI_UserReplay, 0, 2) == CUPTI_SUCCESS);
  CHECK(session.push("early") == CUPTI_ERROR_INVALID_OPERATION);
  REQUIRE(session.start() == CUPTI_SUCCESS);
  FakeDriver::Launch launch;
  launch.counts[Count::kDramReadBytes] = 32;
  FakeDriver::get().launch(launch);  // outside any range
  REQUIRE(session.push("outer") == CUPTI_SUCCESS);
  FakeDriver::get().launch(launch);
  REQUIRE(session.push("inner") == CUPTI_SUCCESS);
  FakeDriver::get().launch(launch);
  FakeDriver::get().launch(launch);
  CHECK(session.stop() == CUPTI_ERROR_INVALID_OPERATION);  // ranges are open
  REQUIRE(session.pop() == CUPTI_SUCCESS);
  REQUIRE(session.pop() == CUPTI_SUCCESS);
  CHECK(session.pop() == CUPTI_ERROR_INVALID_OPERATION);
  REQUIRE(session.stop() == CUPTI_SUCCESS);
  REQUIRE(session.decode() == CUPTI_SUCCESS);
  REQUIRE(session.ranges() == 2);
  CHECK(session.name(0) == "outer/inner");
  CHECK(session.name(0, "::") == "outer::inner");
  CHECK(session.values(plan, metrics, 0)[0] == 64);
  CHECK(session.name(1) == "outer");
  CHECK(session.values(plan, metrics, 1)[0] == 96);
}

TEST_CASE("user replay collects one pass per window and merges by name") {
  Session session;
  const Metrics metrics = {kSassMetrics[2], "dram__bytes_write.sum"};
  const HostPlan plan(metrics);
  REQUIRE(plan.passes == 2);
  REQUIRE(session.make_image(metrics, 10) == CUPTI_SUCCESS);
  REQUIRE(session.set_config(plan, 10, CUPTI_UserRange, CUPTI_UserReplay) == CUPTI_SUCCESS);
  auto launch = ffma_kernel(11);
  launch.counts[Count::kDramWriteBytes] = 64;
  for (int pass = 0; pass < 2; ++pass) {
    REQUIRE(session.start() == CUPTI_SUCCESS);
    REQUIRE(session.push("step") == CUPTI_SUCCESS);
    FakeDriver::get().launch(launch);
    REQUIRE(session.pop() == CUPTI_SUCCESS);
    REQUIRE(session.stop() == CUPTI_SUCCESS);
    CHECK(session.all_passes == (pass == 1));
    REQUIRE(session.decode() == CUPTI_SUCCESS);
    REQUIRE(session.ranges() == 1);
    const auto values = session.values(plan, metrics, 0);
    CHECK(values[1] == 64);  // hardware counters come first
    if (pass == 0)
      CHECK(std::isnan(values[0]));  // not collected yet: not a number, never 0
    else
      CHECK(values[0] == 11);
  }
  CHECK(session.start() == CUPTI_ERROR_INVALID_OPERATION);  // no pass is left
}

TEST_CASE("calls out of order are refused") {
  RangeClient client;
  cuptiFinalize();
  CHECK(client.enable(kContext) == CUPTI_ERROR_NOT_INITIALIZED);
  Session session;
  CHECK(client.enable(kContext) == CUPTI_ERROR_INVALID_OPERATION);  // one object per context
  CHECK(client.enable(nullptr) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(client.enable(FakeDriver::context(99)) == CUPTI_ERROR_INVALID_CONTEXT);
  CHECK(session.start() == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(session.stop() == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(session.decode() == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(session.reinitialize_image() == CUPTI_ERROR_INVALID_OPERATION);  // its size was never asked
  const HostPlan plan(kSassMetrics);
  CHECK(session.set_config(plan, 4) == CUPTI_ERROR_INVALID_PARAMETER);  // no image
  session.configure(plan, kSassMetrics, 4);
  CHECK(session.decode() == CUPTI_ERROR_INVALID_OPERATION);  // nothing was measured
  REQUIRE(session.start() == CUPTI_SUCCESS);
  CHECK(session.start() == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(session.set_config(plan, 4) == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(session.decode() == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(session.disable() == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(session.push("x") == CUPTI_ERROR_INVALID_OPERATION);  // auto range
  REQUIRE(session.stop() == CUPTI_SUCCESS);
  CHECK(session.stop() == CUPTI_ERROR_INVALID_OPERATION);
  REQUIRE(session.decode() == CUPTI_SUCCESS);
  REQUIRE(session.disable() == CUPTI_SUCCESS);
  CHECK(session.disable() == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.start() == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_CASE("configurations that do not fit are refused") {
  Session session;
  const HostPlan sass(kSassMetrics), screening(kScreening),
      ampere({"dram__bytes_read.sum"}, "GA100");
  const auto check = [&](const HostPlan& plan) { return session.set_config(plan, 4); };
  REQUIRE(session.make_image(kSassMetrics, 4) == CUPTI_SUCCESS);
  CHECK(check(screening) == CUPTI_ERROR_INVALID_PARAMETER);  // the image has no place for these
  CHECK(check(ampere) == CUPTI_ERROR_INVALID_PARAMETER);     // another chip
  CHECK(check(sass) == CUPTI_SUCCESS);
  CHECK(session.set_config(sass, 0) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.set_config(sass, 4, CUPTI_Range_INVALID) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.set_config(sass, 4, CUPTI_AutoRange, CUPTI_Replay_COUNT) ==
        CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.set_config(sass, 4, CUPTI_UserRange, CUPTI_KernelReplay) ==
        CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.set_config(sass, 4, CUPTI_AutoRange, CUPTI_KernelReplay, 1) ==
        CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.set_config(sass, 4, CUPTI_AutoRange, CUPTI_KernelReplay, 0, 2) ==
        CUPTI_ERROR_INVALID_PARAMETER);
  session.image.resize(session.image.size() - 1);
  CHECK(check(sass) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.reinitialize_image() == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.make_image({"nonsense.sum"}, 4) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.make_image({}, 4) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.make_image(kSassMetrics, 0) == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_CASE("damaged images are refused") {
  Session session;
  HostPlan plan(kSassMetrics);
  session.configure(plan, kSassMetrics, 2);
  plan.config[plan.config.size() - 1] ^= 1;
  CHECK(session.set_config(plan, 2) == CUPTI_ERROR_INVALID_PARAMETER);
  session.image.assign(session.image.size(), 0xa5);
  CHECK(session.ranges() == SIZE_MAX);
  CHECK(session.name(0) == "(none)");
  CHECK(session.values(plan, kSassMetrics, 0).empty());
}

TEST_CASE("structures of another size are refused") {
  Session session;
  CUpti_RangeProfiler_Start_Params params{CUpti_RangeProfiler_Start_Params_STRUCT_SIZE + 8, nullptr,
                                          session.object};
  CHECK(cuptiRangeProfilerStart(&params) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(cuptiRangeProfilerStart(nullptr) == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_CASE("a destroyed context takes its object with it") {
  Session session;
  const simgpu::Observer& driver = *FakeDriver::get().observer();
  driver.context_destroying(driver.self, kContext, 1, 0);
  CHECK(session.disable() == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(session.enable(kContext) == CUPTI_SUCCESS);
}
