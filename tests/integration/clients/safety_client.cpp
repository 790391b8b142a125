// What a profiler could break: safety_client CASE.
#include <pthread.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "client.h"
#include "profiler_calls.h"

namespace {

using client::check;
using client::Gpu;
using client::ScarceMemory;

CUstream stream() {
  CUstream made = nullptr;
  check(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return made;
}

void end_capture(CUstream of, int launches) {
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(of, &graph), "cuStreamEndCapture");
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  for (int i = 0; i < launches; ++i) check(cuGraphLaunch(exec, of), "cuGraphLaunch");
}

// One stream is captured in global mode while another one runs axpy(100), 6 times and then 3 times.
void capture_beside(const Gpu& gpu) {
  const CUstream captured = stream(), other = stream();
  check(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  for (int i = 0; i < 6; ++i) gpu.axpy(100, other);
  gpu.axpy(100, captured);
  end_capture(captured, 1);
  for (int i = 0; i < 3; ++i) gpu.axpy(100, other);
}

// A window is open when the capture begins: axpy(100) 3 times, and twice in a graph.
void window_before_capture(const Gpu& gpu) {
  const CUstream captured = stream();
  for (int i = 0; i < 3; ++i) gpu.axpy(100);
  check(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  gpu.axpy(100, captured);
  end_capture(captured, 2);
}

template <class F>
F per_thread(const char* name, F) {
  void* found = nullptr;
  check(cuGetProcAddress(name, &found, CUDA_VERSION, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                         nullptr),
        name);
  return reinterpret_cast<F>(found);
}

// The thread's own default stream, by entry points to which stream 0 is that one: axpy(100) 3
// times, and twice in a graph.
void capture_own_stream(const Gpu& gpu) {
  int n = 100;
  float a = 2.0F;
  CUdeviceptr x = gpu.x, y = gpu.y;
  void* parameters[] = {&n, &a, &x, &y};
  const CUfunction axpy = gpu.function("axpy");
  const auto launch = per_thread("cuLaunchKernel", cuLaunchKernel);
  const auto run = [&] {
    check(launch(axpy, 4, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), "axpy");
  };
  check(per_thread("cuStreamBeginCapture", cuStreamBeginCapture)(nullptr,
                                                                 CU_STREAM_CAPTURE_MODE_GLOBAL),
        "cuStreamBeginCapture");
  run();
  CUgraph graph = nullptr;
  check(per_thread("cuStreamEndCapture", cuStreamEndCapture)(nullptr, &graph),
        "cuStreamEndCapture");
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  for (int i = 0; i < 2; ++i) check(cuGraphLaunch(exec, stream()), "cuGraphLaunch");
  for (int i = 0; i < 3; ++i) run();
}

// A kernel's first launch of all is captured in global mode, which loads its module: axpy(100)
// twice in a graph. Then it is launched 3 times more.
void first_launch_in_capture(const Gpu& gpu) {
  CUlibrary library = nullptr;
  check(cuLibraryLoadFromFile(&library, gpu.module_path.c_str(), nullptr, nullptr, 0, nullptr,
                              nullptr, 0),
        "cuLibraryLoadFromFile");
  CUkernel kernel = nullptr;
  check(cuLibraryGetKernel(&kernel, library, "axpy"), "cuLibraryGetKernel");
  int n = 100;
  float a = 2.0F;
  CUdeviceptr x = gpu.x, y = gpu.y;
  void* parameters[] = {&n, &a, &x, &y};
  const CUstream captured = stream();
  const auto launch = [&] {
    check(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 4, 1, 1, 32, 1, 1, 0, captured,
                         parameters, nullptr),
          "axpy");
  };
  check(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  launch();
  end_capture(captured, 2);
  for (int i = 0; i < 3; ++i) launch();
}

// A capture is given up with its stream; then axpy(100) 3 times.
void capture_given_up(const Gpu& gpu) {
  const CUstream captured = stream();
  check(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
  check(cuStreamDestroy(captured), "cuStreamDestroy");
  for (int i = 0; i < 3; ++i) gpu.axpy(100);
}

// axpy(100) 3 times, then nothing until standard input ends, then no exit handlers.
void idle(const Gpu& gpu) {
  for (int i = 0; i < 3; ++i) gpu.axpy(100);
  Gpu::synchronize();
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  _exit(0);
}

// The profiler's n-th allocation of a launch fails: for many n, where the launch loads its kernel's
// module, with a window open. Then axpy(100) 3 times with memory.
void no_memory(const Gpu& gpu) {
  constexpr int kMost = 150;
  for (int n = 0; n < kMost; ++n) {
    CUlibrary library = nullptr;
    check(cuLibraryLoadFromFile(&library, gpu.module_path.c_str(), nullptr, nullptr, 0, nullptr,
                                nullptr, 0),
          "cuLibraryLoadFromFile");
    CUkernel kernel = nullptr;
    check(cuLibraryGetKernel(&kernel, library, "dot"), "cuLibraryGetKernel");
    gpu.axpy(1'001 + n);
    int k = n + 1;
    CUdeviceptr x = gpu.x, y = gpu.y;
    void* parameters[] = {&k, &x, &y};
    {
      const ScarceMemory scarce(n, ScarceMemory::Fails::kOne, ScarceMemory::Of::kThisThread);
      check(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                           parameters, nullptr),
            "dot without memory");
    }
    check(cuLibraryUnload(library), "cuLibraryUnload");
  }
  for (int i = 0; i < 3; ++i) gpu.axpy(100);
}

void take_all_thread_keys() {
  pthread_key_t key{};
  while (pthread_key_create(&key, nullptr) == 0) {
  }
}

// 20 threads, one after another, each with one axpy(100).
void threads_that_end(const Gpu& gpu) {
  for (int i = 0; i < 20; ++i) std::thread([&] { gpu.use(), gpu.axpy(100); }).join();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "no_thread_keys") take_all_thread_keys();
  Gpu gpu(argv[0]);
  if (name == "capture_beside")
    capture_beside(gpu);
  else if (name == "window_before_capture")
    window_before_capture(gpu);
  else if (name == "capture_own_stream")
    capture_own_stream(gpu);
  else if (name == "capture_given_up")
    capture_given_up(gpu);
  else if (name == "first_launch_in_capture")
    first_launch_in_capture(gpu);
  else if (name == "idle")
    idle(gpu);
  else if (name == "no_memory")
    no_memory(gpu);
  else if (name == "no_thread_keys" || name == "threads_that_end")
    threads_that_end(gpu);
  else
    return 2;
  Gpu::synchronize();
  return 0;
}
