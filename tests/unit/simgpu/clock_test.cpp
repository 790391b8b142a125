// The simulated clock: what moves it, and that nothing else does.
#include "driver/execution/clock.h"

#include <chrono>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "gpu.h"

namespace {

uint64_t spent(const std::function<void()>& call) {
  const uint64_t before = hooks().timestamp_ns();
  call();
  return hooks().timestamp_ns() - before;
}

std::string grouped(uint32_t number) {
  std::string text = std::to_string(number);
  if (text.size() > 3) text.insert(text.size() - 3, ",");
  return text;
}

constexpr uint64_t kKernel = 1500;  // one that does nothing

}  // namespace

TEST_CASE("the table in the README has the costs of the list, in its order") {
  std::string wanted;
  for (const simgpu::HostCost& cost : simgpu::kHostCosts)
    wanted += "| `" + std::string(cost.calls) + "` | " + grouped(cost.ns) + " | " +
              std::string(cost.what) + " |\n";
  std::ifstream file(README);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string readme = text.str();
  const std::string header = "| Calls that begin with | ns | |\n|---|---:|---|\n";
  const size_t table = readme.find(header);
  REQUIRE(table != std::string::npos);
  const size_t begin = table + header.size();
  CHECK(readme.substr(begin, readme.find("\n\n", begin) + 1 - begin) == wanted);
}

TEST_CASE("each row of the costs is the first for some call") {
  for (const simgpu::HostCost& cost : simgpu::kHostCosts)
    for (const simgpu::HostCost& before : simgpu::kHostCosts) {
      if (&before == &cost) break;
      CHECK_FALSE(cost.calls.starts_with(before.calls));
    }
}

TEST_CASE("calls cost their host time, waiting moves the clock to the end of the work") {
  const Gpu gpu;
  const CUfunction nothing = gpu.function("nothing");
  const auto launch = [&] { check(Gpu::try_launch(nothing, 1, 1, 0, nullptr)); };
  check(cuCtxSynchronize());
  CHECK(spent([] { check(cuCtxSynchronize()); }) == 1000);
  CHECK(spent(launch) == 2000);
  CHECK(spent([] { check(cuCtxSynchronize()); }) == kKernel);  // which is longer than the call
  CHECK(spent([&] {
          for (int i = 0; i < 3; ++i) launch();
        }) == 6000);
  CHECK(spent([] { check(cuCtxSynchronize()); }) == kKernel);  // the host is slower than the GPU
  int value = 0;
  CHECK(spent([&] { check(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0)); }) == 0);
  CHECK(spent([] { std::this_thread::sleep_for(std::chrono::milliseconds(3)); }) == 0);
}

TEST_CASE("a copy that is waited for costs the call and its model") {
  const Gpu gpu;
  const std::vector<float> values(550);  // 2,200 bytes: 40 ns at 55 GB/s
  const Array<float> there(values);
  CHECK(spent([&] { there.read(); }) == 1500 + 1000 + 40);
}

TEST_CASE("asking again and again comes to the end of the work") {
  const Gpu gpu;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  check(cuEventCreate(&event, 0));
  for (int i = 0; i < 4; ++i) check(Gpu::try_launch(gpu.function("nothing"), 64, 64, 0, stream));
  check(cuEventRecord(event, stream));
  int asked = 0;
  for (; cuEventQuery(event) == CUDA_ERROR_NOT_READY; ++asked) REQUIRE(asked < 100);
  for (; cuStreamQuery(stream) == CUDA_ERROR_NOT_READY; ++asked) REQUIRE(asked < 100);
  check(cuEventDestroy(event));
  check(cuStreamDestroy(stream));
}

TEST_CASE("a tool's calls cost nothing") {
  const Gpu gpu;
  const CUfunction nothing = gpu.function("nothing");
  simgpu::Observer observer{};
  observer.api_enter = [](void*, simgpu::ApiCall*) { cuStreamQuery(nullptr); };
  observer.api_exit = [](void*, simgpu::ApiCall*) { cuStreamQuery(nullptr); };
  hooks().set_observer(&observer);
  CHECK(spent([&] { check(Gpu::try_launch(nothing, 1, 1, 0, nullptr)); }) == 2000);
  hooks().set_observer(nullptr);
}

TEST_CASE("in several threads the clock never goes back, and no call's time is lost") {
  const Gpu gpu;
  constexpr int kThreads = 4, kCalls = 500;
  const uint64_t before = hooks().timestamp_ns();
  std::vector<std::thread> threads;
  std::atomic<bool> steady{true};
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      check(cuCtxSetCurrent(gpu.context));
      uint64_t last = 0;
      for (int i = 0; i < kCalls; ++i) {
        check(Gpu::try_launch(gpu.function("nothing"), 1, 1, 0, CU_STREAM_PER_THREAD));
        check(cuStreamSynchronize(CU_STREAM_PER_THREAD));
        const uint64_t now = hooks().timestamp_ns();
        if (now < last + 3000) steady = false;
        last = now;
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(steady);
  CHECK(hooks().timestamp_ns() >= before + uint64_t{kThreads} * kCalls * 3000);
}
