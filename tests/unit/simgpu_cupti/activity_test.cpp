// The activity API against its headers' rules. The version of CUPTI comes from the environment of
// the test.
#include <cupti.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "fake_driver.h"

namespace {

// A tool as the CUPTI samples have it. Plain functions: CUPTI passes no pointer of the client.
struct Tool {
  std::mutex mutex;
  std::vector<CUpti_ActivityKernel9> kernels;  // the part that all versions share
  std::vector<CUpti_ActivityMemcpy5> copies;
  size_t buffers_out = 0, buffers_back = 0, misaligned = 0, bytes = 1 << 16, max_records = 0;
  bool refuse = false;
  CUptiResult end = CUPTI_SUCCESS;
  CUptiResult flush_inside = CUPTI_SUCCESS;
  std::thread::id thread;
} g_tool;

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records) {
  const std::scoped_lock lock(g_tool.mutex);
  *buffer = g_tool.refuse ? nullptr : static_cast<uint8_t*>(std::aligned_alloc(8, g_tool.bytes));
  *size = g_tool.refuse ? 0 : g_tool.bytes;
  *max_records = g_tool.max_records;
  if (!g_tool.refuse) ++g_tool.buffers_out;
}

void CUPTIAPI complete(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  const std::scoped_lock lock(g_tool.mutex);
  CUpti_Activity* record = nullptr;
  while ((g_tool.end = cuptiActivityGetNextRecord(buffer, valid, &record)) == CUPTI_SUCCESS) {
    if (reinterpret_cast<uintptr_t>(record) % 8 != 0) ++g_tool.misaligned;
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
      g_tool.copies.push_back(*reinterpret_cast<CUpti_ActivityMemcpy5*>(record));
    else
      g_tool.kernels.push_back(*reinterpret_cast<CUpti_ActivityKernel9*>(record));
  }
  g_tool.flush_inside = cuptiActivityFlushAll(0);
  g_tool.thread = std::this_thread::get_id();
  ++g_tool.buffers_back;
  std::free(buffer);
}

struct Session {
  Session() {
    const std::scoped_lock lock(g_tool.mutex);
    g_tool.kernels.clear();
    g_tool.copies.clear();
    g_tool.buffers_out = g_tool.buffers_back = g_tool.max_records = 0;
    g_tool.bytes = 1 << 16;
    g_tool.refuse = false;
    REQUIRE(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
  }
  ~Session() {
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    cuptiFinalize();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

uint32_t version() {
  uint32_t result = 0;
  cuptiGetVersion(&result);
  return result;
}

size_t kernel_size() {
  return version() >= 130000 ? sizeof(CUpti_ActivityKernel10) : sizeof(CUpti_ActivityKernel9);
}

}  // namespace

TEST_CASE("the emulated version is what the environment says") {
  const char* wanted = std::getenv("EXPECTED_VERSION");
  CHECK(std::to_string(version()) ==
        (wanted == nullptr ? std::to_string(CUPTI_API_VERSION) : std::string(wanted)));
}

TEST_CASE("a kernel record tells what ran, and arrives on another thread") {
  const Session session;
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  FakeDriver::Launch launch;
  launch.symbol = "_Z3addv";
  launch.dynamic_shared_bytes = 48;
  launch.graph_id = 5;
  launch.graph_node_id = 77;
  const uint32_t correlation = FakeDriver::get().launch(launch);
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  REQUIRE(g_tool.kernels.size() == 1);
  const CUpti_ActivityKernel9& kernel = g_tool.kernels[0];
  CHECK(kernel.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  CHECK(std::string(kernel.name) == "_Z3addv");
  CHECK(kernel.correlationId == correlation);
  CHECK(kernel.start == 1000);
  CHECK(kernel.end == 1500);
  CHECK(kernel.contextId == 1);
  CHECK(kernel.streamId == 7);
  CHECK(kernel.gridX == 2);
  CHECK(kernel.gridY == 3);
  CHECK(kernel.blockX == 32);
  CHECK(kernel.dynamicSharedMemory == 48);
  CHECK(kernel.graphId == 5);
  CHECK(kernel.graphNodeId == 77);
  CHECK(g_tool.end == CUPTI_ERROR_MAX_LIMIT_REACHED);
  CHECK(g_tool.flush_inside == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(g_tool.thread != std::this_thread::get_id());
}

TEST_CASE("records come only while their kind is on, in the order of the launches") {
  const Session session;
  FakeDriver::get().launch({});
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_SUCCESS);
  std::vector<uint32_t> launched;
  for (int i = 0; i < 1000; ++i) launched.push_back(FakeDriver::get().launch({}));
  FakeDriver::get().copy(4096);
  REQUIRE(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_KERNEL) == CUPTI_SUCCESS);
  FakeDriver::get().launch({});
  REQUIRE(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
  std::vector<uint32_t> got;
  for (const auto& kernel : g_tool.kernels) got.push_back(kernel.correlationId);
  CHECK(got == launched);
  REQUIRE(g_tool.copies.size() == 1);
  CHECK(g_tool.copies[0].bytes == 4096);
  CHECK(g_tool.copies[0].copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD);
  CHECK(g_tool.buffers_back == g_tool.buffers_out);
  CHECK(g_tool.buffers_back > 1);
  CHECK(g_tool.misaligned == 0);
}

TEST_CASE("the two kernel kinds exclude each other, and unknown kinds are refused") {
  const Session session;
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_KERNEL) == CUPTI_ERROR_NOT_COMPATIBLE);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_OVERHEAD) == CUPTI_SUCCESS);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_INVALID) == CUPTI_ERROR_INVALID_KIND);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING) == CUPTI_ERROR_INVALID_KIND);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE) == CUPTI_ERROR_NOT_COMPATIBLE);
}

TEST_CASE("a full buffer goes back with what fits, by bytes and by records") {
  const Session session;
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  SECTION("bytes") { g_tool.bytes = 3 * kernel_size() + 8; }
  SECTION("records") { g_tool.max_records = 3; }
  for (int i = 0; i < 10; ++i) FakeDriver::get().launch({});
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  CHECK(g_tool.kernels.size() == 10);
  CHECK(g_tool.buffers_back == 4);
}

TEST_CASE("records that find no buffer are dropped, counted once, and the count restarts") {
  const Session session;
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  SECTION("no buffer") { g_tool.refuse = true; }
  SECTION("too small") { g_tool.bytes = kernel_size() - 8; }
  for (int i = 0; i < 5; ++i) FakeDriver::get().launch({});
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  CHECK(g_tool.kernels.empty());
  REQUIRE(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == CUPTI_SUCCESS);
  CHECK(g_tool.buffers_back == g_tool.buffers_out);  // empty ones too
  size_t dropped = 0;
  REQUIRE(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS);
  CHECK(dropped == 5);
  REQUIRE(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS);
  CHECK(dropped == 0);
}

TEST_CASE("a flush period delivers full buffers and leaves others to a flush") {
  const Session session;
  g_tool.max_records = 2;
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityFlushPeriod(1) == CUPTI_SUCCESS);
  for (int i = 0; i < 5; ++i) FakeDriver::get().launch({});
  size_t back = 0;
  for (int i = 0; i < 5000 && back < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::scoped_lock lock(g_tool.mutex);
    back = g_tool.buffers_back;
  }
  CHECK(back == 2);
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  CHECK(g_tool.kernels.size() == 5);
}

TEST_CASE("flushing needs registered callbacks") {
  cuptiFinalize();
  CHECK(cuptiActivityFlushAll(0) == CUPTI_ERROR_INVALID_OPERATION);
  CHECK(cuptiActivityRegisterCallbacks(request, nullptr) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(cuptiActivityRegisterCallbacks(nullptr, complete) == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_CASE("reading records stops at the end and at bytes that are none") {
  alignas(8) uint8_t bytes[512] = {};
  CUpti_Activity* record = nullptr;
  CHECK(cuptiActivityGetNextRecord(bytes, 0, &record) == CUPTI_ERROR_MAX_LIMIT_REACHED);
  CHECK(cuptiActivityGetNextRecord(nullptr, 0, &record) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(cuptiActivityGetNextRecord(bytes, sizeof bytes, &record) == CUPTI_ERROR_INVALID_KIND);
  reinterpret_cast<CUpti_Activity*>(bytes)->kind = CUPTI_ACTIVITY_KIND_KERNEL;
  CHECK(cuptiActivityGetNextRecord(bytes, kernel_size() - 1, &record) == CUPTI_ERROR_INVALID_KIND);
  REQUIRE(cuptiActivityGetNextRecord(bytes, kernel_size(), &record) == CUPTI_SUCCESS);
  CHECK(cuptiActivityGetNextRecord(bytes, kernel_size(), &record) == CUPTI_ERROR_MAX_LIMIT_REACHED);
}

TEST_CASE("threads that launch at the same time lose no record") {
  const Session session;
  g_tool.bytes = 4096;
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      FakeDriver::Launch launch;
      launch.stream_id = 10 + t;
      for (int i = 0; i < 500; ++i) {
        FakeDriver::get().launch(launch);
        if (i % 100 == 0) cuptiActivityFlushAll(0);
      }
    });
  for (auto& thread : threads) thread.join();
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  CHECK(g_tool.kernels.size() == 2000);
}

TEST_CASE("attributes are kept, and their sizes checked") {
  size_t value = 12345, size = sizeof value;
  CHECK(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value) ==
        CUPTI_SUCCESS);
  value = 0;
  CHECK(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value) ==
        CUPTI_SUCCESS);
  CHECK(value == 12345);
  size = 4;
  CHECK(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &size, &value) ==
        CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
  CHECK(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_FORCE_INT, &size, &value) ==
        CUPTI_ERROR_INVALID_PARAMETER);
}
