// Faults of windows and of times, one each, as SIMGPU_FAULT asks for in the environment of the
// test; EXPECTED_FAULT names it here.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catch.h"
#include "fake_driver.h"
#include "range_client.h"

namespace {

bool fault_is(const char* name) {
  const char* text = std::getenv("EXPECTED_FAULT");
  return text != nullptr && std::string(text) == name;
}

FakeDriver& driver() { return FakeDriver::get(); }

FakeDriver::Launch adding(uint64_t adds) {
  FakeDriver::Launch launch;
  launch.counts[simgpu::Count::kFadd] = adds;
  return launch;
}

// A client with an open window on context 1.
struct Window {
  Window() {
    REQUIRE(initialize_profiler() == CUPTI_SUCCESS);
    CUptiResult enabled = client.enable(FakeDriver::context(1));
    while (fault_is("hardware_busy_for") && enabled == CUPTI_ERROR_HARDWARE_BUSY) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      enabled = client.enable(FakeDriver::context(1));
    }
    REQUIRE(enabled == CUPTI_SUCCESS);
    REQUIRE(client.make_image(kSassMetrics, 20) == CUPTI_SUCCESS);
    open();
  }
  void open() {
    REQUIRE(client.set_config(plan, 20) == CUPTI_SUCCESS);
    REQUIRE(client.start() == CUPTI_SUCCESS);
  }
  // Of the first metric, fadd, in each range.
  std::vector<double> adds() {
    std::vector<double> out;
    REQUIRE(client.decode() == CUPTI_SUCCESS);
    for (size_t i = 0; i < client.ranges(); ++i)
      out.push_back(client.values(plan, kSassMetrics, i).at(0));
    return out;
  }
  HostPlan plan{kSassMetrics};
  RangeClient client;
};

// Runs `action` in the next callback at EXIT.
std::function<void()> g_at_exit;
void CUPTIAPI callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  if (call->callbackSite == CUPTI_API_EXIT && g_at_exit) std::exchange(g_at_exit, nullptr)();
}

struct Times {
  std::vector<CUpti_ActivityKernel9> kernels;
} g_times;
alignas(8) uint8_t g_memory[1 << 16];
void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = g_memory;
  *size = sizeof g_memory;
  *max_records = 0;
}
void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    g_times.kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel9*>(record));
}

}  // namespace

// First, for the fault begins with the first Enable of the process.
TEST_CASE("counters are busy for a while, and contexts of one device exclude each other") {
  REQUIRE(initialize_profiler() == CUPTI_SUCCESS);
  RangeClient first, second;
  if (fault_is("hardware_busy_for")) {
    const auto begin = std::chrono::steady_clock::now();
    CHECK(first.enable(FakeDriver::context(1)) == CUPTI_ERROR_HARDWARE_BUSY);
    const CUptiResult again = first.enable(FakeDriver::context(1));
    // The fault is for 300 ms; a loaded machine may let as much pass between two calls.
    if (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(290))
      CHECK(again == CUPTI_ERROR_HARDWARE_BUSY);
    if (again == CUPTI_SUCCESS) REQUIRE(first.disable() == CUPTI_SUCCESS);
    std::this_thread::sleep_for(std::chrono::milliseconds(320));
  }
  CHECK(first.enable(FakeDriver::context(1)) == CUPTI_SUCCESS);
  CHECK(second.enable(FakeDriver::context(2)) ==
        (fault_is("one_context") ? CUPTI_ERROR_HARDWARE_BUSY : CUPTI_SUCCESS));
  REQUIRE(first.disable() == CUPTI_SUCCESS);
  if (fault_is("one_context")) CHECK(second.enable(FakeDriver::context(2)) == CUPTI_SUCCESS);
  cuptiFinalize();
}

TEST_CASE("closing a window in the callback at EXIT of its last launch") {
  CUpti_SubscriberHandle handle{};
  REQUIRE(cuptiSubscribe(&handle, callback, nullptr) == CUPTI_SUCCESS);
  REQUIRE(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS);
  Window window;
  driver().launch(adding(1));
  CUptiResult stopped = CUPTI_ERROR_UNKNOWN;
  g_at_exit = [&] { stopped = window.client.stop(); };
  driver().launch(adding(2));
  if (fault_is("stop_at_exit")) {
    CHECK(stopped == CUPTI_ERROR_INVALID_OPERATION);
    CHECK(window.client.stop() == CUPTI_SUCCESS);  // outside it is well
  } else {
    CHECK(stopped == CUPTI_SUCCESS);
  }
  const std::vector<double> all = {1, 2}, one_short = {1};
  CHECK(window.adds() == (fault_is("short_at_exit") ? one_short : all));
  CHECK(window.client.dropped == 0);
  cuptiFinalize();
}

TEST_CASE("closing a window on another thread than the launching one") {
  Window window;
  CUptiResult stopped = CUPTI_ERROR_UNKNOWN;
  std::thread([&] { driver().launch(adding(1)); }).join();
  stopped = window.client.stop();
  CHECK(stopped == (fault_is("stop_elsewhere") ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS));
  if (stopped != CUPTI_SUCCESS) {
    driver().launch(adding(2));
    CHECK(window.client.stop() == CUPTI_SUCCESS);
  }
  cuptiFinalize();
}

TEST_CASE("memory copies in a window") {
  Window window;
  driver().launch(adding(1));
  driver().copy(4096);
  driver().launch(adding(2));
  REQUIRE(window.client.stop() == CUPTI_SUCCESS);
  const std::vector<double> kernels = {1, 2}, all = {1, 0, 2};
  CHECK(window.adds() == (fault_is("copy_ranges") ? all : kernels));
  cuptiFinalize();
}

TEST_CASE("a module that is loaded inside a window") {
  Window window;
  driver().load_module(2);
  auto loaded = adding(5);
  loaded.module_id = 2;
  driver().launch(adding(1));
  driver().launch(loaded);
  REQUIRE(window.client.stop() == CUPTI_SUCCESS);
  const double counted = fault_is("lazy_modules") ? 0 : 5;
  CHECK(window.adds() == std::vector<double>{1, counted});
  REQUIRE(window.client.reinitialize_image() == CUPTI_SUCCESS);
  window.open();  // the next one patches it
  driver().launch(loaded);
  REQUIRE(window.client.stop() == CUPTI_SUCCESS);
  CHECK(window.adds() == std::vector<double>{5});
  cuptiFinalize();
}

TEST_CASE("the device is said to be supported") {
  CUpti_Profiler_DeviceSupported_Params params{};
  params.structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE;
  REQUIRE(cuptiProfilerDeviceSupported(&params) == CUPTI_SUCCESS);
  int support = 0;  // older headers have no name for 4
  std::memcpy(&support, &params.isSupported, sizeof support);
  CHECK(support == (fault_is("limited_support") ? 4 : 3));
}

TEST_CASE("kernel records have their times, and reach who asked for them") {
  g_times.kernels.clear();
  REQUIRE(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  for (int i = 0; i < 5; ++i) driver().launch({});
  cuptiActivityFlushAll(0);
  if (fault_is("take_activity")) {
    CHECK(g_times.kernels.empty());  // the other client has our buffer
    for (int i = 5; i < 200; ++i) driver().launch({});
    cuptiActivityFlushAll(0);
    REQUIRE(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
    driver().launch({});  // kernel records are off
    REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
    driver().launch({});
    cuptiActivityFlushAll(0);
    CHECK(g_times.kernels.size() == 1);
  } else {
    REQUIRE(g_times.kernels.size() == 5);
    const bool spoilt = fault_is("invalid_times");  // from the third on
    for (size_t i = 0; i < 5; ++i) {
      const CUpti_ActivityKernel9& kernel = g_times.kernels[i];
      const bool valid = kernel.start != 0 && kernel.end >= kernel.start;
      CHECK(valid == (!spoilt || i < 2));
    }
  }
  cuptiFinalize();
}
