// The activity API against its headers' rules. The version of CUPTI comes from the environment of
// the test.
#include <cupti.h>
#include <sys/wait.h>
#include <unistd.h>

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
  std::vector<CUpti_ActivityMemcpyPtoP4> peer_copies;
  std::vector<CUpti_ActivityMemset4> fills;
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
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
      g_tool.peer_copies.push_back(*reinterpret_cast<CUpti_ActivityMemcpyPtoP4*>(record));
    else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
      g_tool.fills.push_back(*reinterpret_cast<CUpti_ActivityMemset4*>(record));
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
    g_tool.peer_copies.clear();
    g_tool.fills.clear();
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

// Of CUpti_ActivityKernel9 to 13, from the headers of each version.
size_t kernel_size() {
  const uint32_t v = version();
  if (v < 130000) return 208;
  return v < 130100 ? 216 : v < 130300 ? 224 : v < 130400 ? 232 : 248;
}

uint8_t per_thread() {
  uint8_t on = 99;
  size_t size = sizeof on;
  REQUIRE(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &on) ==
          CUPTI_SUCCESS);
  return on;
}
void set_per_thread(uint8_t on) {
  size_t size = sizeof on;
  REQUIRE(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, &size, &on) ==
          CUPTI_SUCCESS);
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

TEST_CASE("copies within and between devices and fills are three kinds of records") {
  const Session session;
  const auto run_all = [] {
    simgpu::MemoryCopy copy{};
    copy.kind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
    copy.bytes = 100;
    copy.from = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    copy.to = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
    FakeDriver::get().copy(copy);
    copy.kind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
    copy.to = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
    copy.bytes = 200;
    copy.from_device_id = 1;
    copy.to_device_id = 2;
    FakeDriver::get().copy(copy);
    copy.kind = CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
    copy.bytes = 300;
    copy.value = 7;
    FakeDriver::get().copy(copy);
  };
  run_all();  // none is on
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY2) == CUPTI_SUCCESS);
  run_all();
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY) == CUPTI_SUCCESS);
  run_all();
  run_all();
  REQUIRE(cuptiActivityFlushAll(1) == CUPTI_SUCCESS);
  CHECK(g_tool.end == CUPTI_ERROR_MAX_LIMIT_REACHED);
  REQUIRE(g_tool.copies.size() == 2);
  CHECK(g_tool.copies[1].bytes == 100);
  CHECK(g_tool.copies[1].srcKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE);
  CHECK(g_tool.copies[1].dstKind == CUPTI_ACTIVITY_MEMORY_KIND_PINNED);
  REQUIRE(g_tool.peer_copies.size() == 3);
  CHECK(g_tool.peer_copies[2].bytes == 200);
  CHECK(g_tool.peer_copies[2].srcDeviceId == 1);
  CHECK(g_tool.peer_copies[2].dstDeviceId == 2);
  REQUIRE(g_tool.fills.size() == 2);
  CHECK(g_tool.fills[1].bytes == 300);
  CHECK(g_tool.fills[1].value == 7);
  CHECK(g_tool.fills[1].start == 10);
  CHECK(g_tool.fills[1].end == 20);
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
  if (version() >= 27) SECTION("no buffer") {
      g_tool.refuse = true;
    }
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

TEST_CASE("a null buffer is a refusal from 12.9 on, and a crash before", "[fork]") {
  const Session session;
  g_tool.refuse = true;
  const pid_t child = fork();
  if (child == 0) {
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    FakeDriver::get().launch({});
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0) == (version() >= 27));
}

TEST_CASE("a forked child records again and again while its parent's thread waits", "[fork]") {
  const Session session;
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  FakeDriver::get().launch({});
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  usleep(20'000);  // the thread that hands buffers back waits for the next one
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    for (int i = 0; i < 5; ++i) {
      cuptiActivityRegisterCallbacks(request, complete);
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      FakeDriver::get().launch({});
      usleep(1'000);
      cuptiFinalize();
    }
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("each thread has a buffer of its own where the attribute says so: by default from 13.0") {
  const uint8_t by_default = per_thread();
  CHECK(by_default == (version() >= 130000 ? 1 : 0));
  for (const uint8_t on : {by_default, uint8_t{0}, uint8_t{1}}) {
    const Session session;
    set_per_thread(on);
    REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
    for (int t = 0; t < 12; ++t) std::thread([] { FakeDriver::get().launch({}); }).join();
    CHECK(g_tool.buffers_out == (on != 0 ? 12 : 1));
    CHECK(g_tool.buffers_back == 0);
    REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
    CHECK(g_tool.kernels.size() == 12);
    CHECK(g_tool.buffers_back == g_tool.buffers_out);
  }
  set_per_thread(by_default);
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

namespace {
uint64_t CUPTIAPI other_clock() { return 123456789 + 1'000'000; }  // the fake driver's, and 1 ms
}  // namespace

TEST_CASE("records have the times of a registered clock") {
  const Session session;
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  FakeDriver::Launch launch;  // on streams that have been idle
  launch.stream_id = 31;
  FakeDriver::get().launch(launch);
  REQUIRE(cuptiActivityRegisterTimestampCallback(other_clock) == CUPTI_SUCCESS);
  launch.stream_id = 32;
  FakeDriver::get().launch(launch);
  REQUIRE(cuptiActivityFlushAll(0) == CUPTI_SUCCESS);
  REQUIRE(g_tool.kernels.size() == 2);
  CHECK(g_tool.kernels[1].start == g_tool.kernels[0].start + 1'000'000);
  CHECK(cuptiActivityRegisterTimestampCallback(nullptr) == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_CASE("external correlation ids are a stack for each kind and thread") {
  constexpr auto kKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  uint64_t last = 0;
  CHECK(cuptiActivityPopExternalCorrelationId(kKind, &last) == CUPTI_ERROR_QUEUE_EMPTY);
  REQUIRE(cuptiActivityPushExternalCorrelationId(kKind, 5) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityPushExternalCorrelationId(kKind, 6) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1, 7) ==
          CUPTI_SUCCESS);
  std::thread([&] {
    CHECK(cuptiActivityPopExternalCorrelationId(kKind, &last) == CUPTI_ERROR_QUEUE_EMPTY);
  }).join();
  REQUIRE(cuptiActivityPopExternalCorrelationId(kKind, &last) == CUPTI_SUCCESS);
  CHECK(last == 6);
  CHECK(cuptiActivityPopExternalCorrelationId(kKind, nullptr) == CUPTI_SUCCESS);
  CHECK(cuptiActivityPopExternalCorrelationId(kKind, &last) == CUPTI_ERROR_QUEUE_EMPTY);
  CHECK(cuptiActivityPushExternalCorrelationId(CUPTI_EXTERNAL_CORRELATION_KIND_INVALID, 1) ==
        CUPTI_ERROR_INVALID_PARAMETER);
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
