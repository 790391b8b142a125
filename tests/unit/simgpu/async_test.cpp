// Asynchronous work, where SIMGPU_ASYNC=1 in the environment of the test.
#include <atomic>
#include <chrono>
#include <thread>

#include "gpu.h"

namespace {

using namespace std::chrono_literals;

CUstream make_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream made = nullptr;
  check(cuStreamCreate(&made, flags));
  return made;
}

// A host function that runs until it is let go.
struct Gate {
  static void CUDA_CB run(void* self) {
    auto& gate = *static_cast<Gate*>(self);
    gate.entered = true;
    gate.thread = std::this_thread::get_id();
    while (!gate.open) std::this_thread::sleep_for(1ms);
  }
  void close(CUstream stream) { check(cuLaunchHostFunc(stream, run, this)); }
  std::atomic<bool> open{false}, entered{false};
  std::thread::id thread;
};

// What is true soon is so within a minute, on a loaded machine too; what is not stays so for 50 ms.
template <class Condition>
bool soon(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!condition() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  return condition();
}
template <class Condition>
bool never(Condition condition) {
  for (int i = 0; i < 50; ++i, std::this_thread::sleep_for(1ms))
    if (condition()) return false;
  return true;
}

bool idle(CUstream stream) { return cuStreamQuery(stream) == CUDA_SUCCESS; }

}  // namespace

TEST_CASE("work waits in its stream, on a thread of its own, and others go on", "[.async]") {
  const Gpu gpu;
  const CUstream a = make_stream(), b = make_stream();
  Gate gate;
  gate.close(a);
  const Array<int> x({3}), y({3});
  const CUfunction add_one = gpu.function("add_one");
  const auto launch = [&](CUstream stream, CUdeviceptr p) {
    void* parameters[] = {&p};
    check(cuLaunchKernel(add_one, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  };
  launch(a, x.address());
  launch(b, y.address());
  check(cuStreamSynchronize(b));
  const auto value = [](CUdeviceptr p) { return *reinterpret_cast<const volatile int*>(p); };
  CHECK(value(y.address()) == 4);
  CHECK(never([&] { return idle(a) || value(x.address()) != 3; }));
  CHECK(soon([&] { return gate.entered.load(); }));
  CHECK(gate.thread != std::this_thread::get_id());
  gate.open = true;
  check(cuStreamSynchronize(a));
  CHECK(value(x.address()) == 4);
  CHECK(idle(a));
}

TEST_CASE("events and the legacy default stream order what is not done yet", "[.async]") {
  const Gpu gpu;
  const CUstream a = make_stream(), b = make_stream(), blocking = make_stream(CU_STREAM_DEFAULT);
  CUevent event = nullptr;
  check(cuEventCreate(&event, 0));
  {
    Gate gate;
    gate.close(a);
    check(cuEventRecord(event, a));
    check(cuStreamWaitEvent(b, event, 0));
    CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
    CHECK(never([&] { return idle(b); }));
    gate.open = true;
    check(cuEventSynchronize(event));
    CHECK(soon([&] { return idle(b); }));
  }
  Gate gate;
  gate.close(blocking);
  const CUfunction nothing = gpu.function("nothing");
  check(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  CHECK(never([&] { return idle(nullptr); }));
  gate.open = true;
  check(cuCtxSynchronize());
}

TEST_CASE("streams wait for values", "[.async]") {
  const Gpu gpu;
  const CUstream a = make_stream(), b = make_stream();
  const Array<unsigned> flag({0});
  check(cuStreamWaitValue32(a, flag.address(), 2, CU_STREAM_WAIT_VALUE_GEQ));
  CHECK(never([&] { return idle(a); }));
  check(cuStreamWriteValue32(b, flag.address(), 1, 0));
  CHECK(never([&] { return idle(a); }));
  check(cuStreamWriteValue32(b, flag.address(), 3, 0));
  CHECK(soon([&] { return idle(a); }));
}

TEST_CASE("a launch in a profiler session waits for all work in flight", "[.async]") {
  const Gpu gpu;
  const CUstream a = make_stream(), b = make_stream();
  Gate gate;
  gate.close(a);
  hooks().set_session(gpu.context, {1, 0, 0});
  std::atomic<bool> returned{false};
  std::thread launcher([&] {
    check(cuCtxSetCurrent(gpu.context));
    const CUfunction nothing = gpu.function("nothing");
    check(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, b, nullptr, nullptr));
    returned = true;
  });
  CHECK(never([&] { return returned.load(); }));
  gate.open = true;
  launcher.join();
  hooks().set_session(gpu.context, {0, 0, 0});
}

TEST_CASE("a profiler that changes a session waits for all work in flight", "[.async]") {
  const Gpu gpu;
  const CUstream a = make_stream();
  Gate gate;
  gate.close(a);
  std::atomic<bool> returned{false};
  std::thread tool([&] {
    CHECK(hooks().synchronize_for_tool(gpu.context) == CUDA_SUCCESS);
    returned = true;
  });
  CHECK(never([&] { return returned.load(); }));
  gate.open = true;
  tool.join();
}

TEST_CASE("the error of work that was given shows at the next synchronisation", "[.async]") {
  const Gpu gpu;
  CHECK(Gpu::try_launch(gpu.function("traps"), 1, 2, 0, nullptr) == CUDA_SUCCESS);
  CHECK(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
}

TEST_CASE("a graph in flight is launched as it was, and is there until it has run", "[.async]") {
  const Gpu gpu;
  const CUstream a = make_stream();
  const Array<int> x({3});
  check(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr p = x.address();
  void* parameters[] = {&p};
  check(cuLaunchKernel(gpu.function("add_one"), 1, 1, 1, 1, 1, 1, 0, a, parameters, nullptr));
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(a, &graph));
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0));
  Gate gate;
  gate.close(a);
  check(cuGraphLaunch(exec, a));
  std::thread opener([&] {
    std::this_thread::sleep_for(20ms);
    gate.open = true;
  });
  check(cuGraphExecDestroy(exec));
  check(cuStreamSynchronize(a));
  opener.join();
  CHECK(x.read()[0] == 4);
}
