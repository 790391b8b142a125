// Activity records of many threads and of large graphs: how many buffers CUPTI asks for, and
// whether every launch has a record.
#include <atomic>
#include <cstdlib>
#include <thread>

#include "probe.h"

namespace probe {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
std::atomic<int> held{0}, most_held{0}, asked{0};
std::atomic<uint64_t> records{0}, without_times{0};

void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most) {
  *size = kBufferBytes;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *most = 0;
  ++asked;
  const int now = ++held;
  for (int before = most_held; now > before && !most_held.compare_exchange_weak(before, now);) {
  }
}
void CUPTIAPI take_buffer(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      ++records;
      // Start and end are where they have been in every layout since CUPTI 12.0.
      const auto* times = reinterpret_cast<const uint64_t*>(record) + 2;
      if (times[0] == 0 || times[1] <= times[0]) ++without_times;
    }
  std::free(buffer);
  --held;
}

void start() {
  observe(cuptiActivityRegisterCallbacks(give_buffer, take_buffer),
          "cuptiActivityRegisterCallbacks");
  observe(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
}
void say_records(const std::string& what, uint64_t launches) {
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  observe(cuptiActivityFlushAll(1), "cuptiActivityFlushAll");
  uint64_t dropped = 0;
  cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped);
  say_count(what + ": records of " + std::to_string(launches), records.exchange(0));
  say_count(what + ": records without valid times", without_times.exchange(0));
  say_count(what + ": records that CUPTI dropped", dropped);
  say_count(what + ": buffers asked for", static_cast<uint64_t>(asked.exchange(0)));
  say_count(what + ": buffers held at once", static_cast<uint64_t>(most_held.exchange(0)));
}

}  // namespace

void sixteen_threads() {
  constexpr int kThreads = 16, kLaunches = 2000;
  uint8_t per_thread = 255;
  size_t size = sizeof per_thread;
  // Enumerator 9 is CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER; headers before 12.3 lack it.
  const auto attribute = static_cast<CUpti_ActivityAttribute>(9);
  observe(cuptiActivityGetAttribute(attribute, &size, &per_thread), "cuptiActivityGetAttribute");
  say_count("CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER by default", per_thread);
  start();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([] {
      cudaStream_t stream = nullptr;
      observe(cudaSetDevice(0), "cudaSetDevice");
      observe(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
      for (int i = 0; i < kLaunches; ++i) launch(10, stream);
    });
  for (auto& thread : threads) thread.join();
  say_records("16 threads", uint64_t{kThreads} * kLaunches);
}

void large_graph() {
  constexpr int kNodes = 10000, kLaunches = 20;
  start();
  cudaStream_t stream = nullptr;
  observe(cudaStreamCreate(&stream), "cudaStreamCreate");
  observe(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
  for (int i = 0; i < kNodes; ++i) launch(1, stream);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  observe(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  observe(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < kLaunches; ++i)
    observe(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
  say_records("20 launches of a graph of 10,000 kernels", uint64_t{kNodes} * kLaunches);
}

}  // namespace probe
