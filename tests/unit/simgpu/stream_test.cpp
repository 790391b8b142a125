// Streams, events, threads, and the observer coming and going among them.
#include <atomic>
#include <thread>

#include "gpu.h"

TEST_CASE("work on a stream follows one after the other, and streams wait for events") {
  const Gpu gpu;
  CUstream a = nullptr, b = nullptr;
  CUevent done = nullptr, start = nullptr;
  check(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  check(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  check(cuEventCreate(&start, 0));
  check(cuEventCreate(&done, 0));
  Recorder recorder;
  check(cuEventRecord(start, a));
  for (int i = 0; i < 3; ++i) check(Gpu::try_launch(gpu.function("nothing"), 1, 1, 0, a));
  check(cuEventRecord(done, a));
  check(cuStreamWaitEvent(b, done, 0));
  check(Gpu::try_launch(gpu.function("nothing"), 1, 1, 0, b));
  check(cuStreamSynchronize(b));
  REQUIRE(recorder.runs.size() == 4);
  for (size_t i = 1; i < 4; ++i) CHECK(recorder.runs[i].start_ns >= recorder.runs[i - 1].end_ns);
  CHECK(recorder.runs[3].stream_id != recorder.runs[2].stream_id);
  CHECK(recorder.runs[3].stream_id == hooks().stream_id(gpu.context, b));
  CHECK(hooks().timestamp_ns() >= recorder.runs[3].end_ns);  // synchronised
  CHECK(cuStreamQuery(b) == CUDA_SUCCESS);
  float milliseconds = 0;
  check(cuEventElapsedTime(&milliseconds, start, done));
  CHECK(milliseconds >= 3 * 1500e-6F);  // three launches of 1500 ns
  check(cuStreamDestroy(a));
  CHECK(cuStreamSynchronize(a) == CUDA_ERROR_INVALID_HANDLE);
  check(cuEventDestroy(done));
  CHECK(cuEventSynchronize(done) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("the legacy default stream waits for blocking streams and they for it") {
  const Gpu gpu;
  CUstream blocking = nullptr, free = nullptr;
  check(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  check(cuStreamCreate(&free, CU_STREAM_NON_BLOCKING));
  const CUfunction f = gpu.function("nothing");
  Recorder recorder;
  check(Gpu::try_launch(f, 1, 1, 0, blocking));
  check(Gpu::try_launch(f, 1, 1, 0, CU_STREAM_LEGACY));
  check(Gpu::try_launch(f, 1, 1, 0, blocking));
  REQUIRE(recorder.runs.size() == 3);
  CHECK(recorder.runs[1].start_ns >= recorder.runs[0].end_ns);
  CHECK(recorder.runs[2].start_ns >= recorder.runs[1].end_ns);
  CHECK(hooks().stream_id(gpu.context, nullptr) == recorder.runs[1].stream_id);
}

TEST_CASE("each thread has its own default stream where asked for") {
  const Gpu gpu;
  const CUfunction f = gpu.function("nothing");
  Recorder recorder;
  check(Gpu::try_launch(f, 1, 1, 0, CU_STREAM_PER_THREAD));
  std::thread([&] {
    check(cuCtxSetCurrent(gpu.context));
    check(Gpu::try_launch(f, 1, 1, 0, CU_STREAM_PER_THREAD));
  }).join();
  // The same through the entry point that per-thread compiled programs use.
  using Launch = CUresult (*)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, unsigned, CUstream, void**, void**);
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  check(cuGetProcAddress("cuLaunchKernel", &found, 12000,
                         CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  check(reinterpret_cast<Launch>(found)(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  REQUIRE(recorder.runs.size() == 3);
  CHECK(recorder.runs[0].stream_id != recorder.runs[1].stream_id);
  CHECK(recorder.runs[0].stream_id == recorder.runs[2].stream_id);
  CHECK(recorder.words().back() == "exit cuLaunchKernel_ptsz");
  CHECK(hooks().stream_id(gpu.context, nullptr) != recorder.runs[0].stream_id);
}

TEST_CASE("a call is reported around what it does, with one correlation id") {
  const Gpu gpu;
  const CUfunction f = gpu.function("nothing");
  Recorder recorder;
  check(Gpu::try_launch(f, 1, 1, 0, nullptr));
  check(cuCtxSynchronize());
  CHECK(recorder.words() ==
        std::vector<std::string>{"enter cuLaunchKernel", "begin nothing", "end nothing",
                                 "exit cuLaunchKernel", "enter cuCtxSynchronize",
                                 "context synchronized", "exit cuCtxSynchronize"});
  for (size_t i = 1; i < 4; ++i)
    CHECK(recorder.events[i].correlation_id == recorder.events[0].correlation_id);
  CHECK(recorder.events[4].correlation_id != recorder.events[0].correlation_id);
  CHECK(recorder.symbols == std::vector<std::string>{"nothing", ""});
  CHECK(recorder.data_kept);
}

TEST_CASE("an observer can be removed from within its own call") {
  const Gpu gpu;
  static simgpu::Observer observer;
  static int calls;
  calls = 0;
  observer = {};
  observer.api_enter = [](void*, simgpu::ApiCall*) {
    ++calls;
    check(cuCtxSynchronize());  // a tool's own calls are not reported back to it
    hooks().set_observer(nullptr);
  };
  observer.api_exit = [](void*, simgpu::ApiCall*) { calls += 100; };
  hooks().set_observer(&observer);
  check(cuCtxSynchronize());
  check(cuCtxSynchronize());
  CHECK(calls == 1);
}

TEST_CASE("threads launch on their own streams while observers come and go") {
  const Gpu gpu;
  constexpr int kThreads = 4, kLaunches = 200;
  const Array<int> x(std::vector<int>(kThreads, 0));
  const CUfunction f = gpu.function("add_one");
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      try {
        check(cuCtxSetCurrent(gpu.context));
        CUstream stream = nullptr;
        check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        for (int i = 0; i < kLaunches; ++i)
          check(Gpu::try_launch(f, 1, 1, 0, stream, x.address() + 4 * static_cast<unsigned>(t)));
        check(cuStreamSynchronize(stream));
        check(cuStreamDestroy(stream));
      } catch (const std::exception&) {
        ++failures;
      }
    });
  for (int i = 0; i < 50; ++i) {
    const Recorder recorder;
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(x.read() == std::vector<int>(kThreads, kLaunches));
}

TEST_CASE("reports of concurrent launches are whole") {
  const Gpu gpu;
  constexpr unsigned kThreads = 4, kLaunches = 100;
  const CUfunction f = gpu.function("reduce");
  const Array<float> x(std::vector<float>(64, 1.0F)), totals(std::vector<float>(kThreads * 8));
  Recorder recorder;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (unsigned t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      if (cuCtxSetCurrent(gpu.context) != CUDA_SUCCESS) ++failures;
      for (unsigned i = 0; i < kLaunches; ++i)
        if (Gpu::try_launch(f, 1, 64, 256, nullptr, x.address(), totals.address() + 32 * t) !=
            CUDA_SUCCESS)
          ++failures;
    });
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  REQUIRE(recorder.runs.size() == kThreads * kLaunches);
  for (const auto& run : recorder.runs) REQUIRE(run.counts[simgpu::Count::kFadd] == 63);
  const auto sums = totals.read();
  for (unsigned t = 0; t < kThreads; ++t) CHECK(sums[8 * t] == 64.0F * kLaunches);
}

TEST_CASE("host functions run in stream order") {
  const Gpu gpu;
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, 0));
  static int seen;
  const Array<int> x({5});
  seen = 0;
  check(Gpu::try_launch(gpu.function("add_one"), 1, 1, 0, stream, x.address()));
  check(cuLaunchHostFunc(
      stream, [](void* data) { seen = *static_cast<const int*>(data); },
      reinterpret_cast<void*>(x.address())));
  check(cuStreamSynchronize(stream));
  CHECK(seen == 6);
}
