// Programs whose work in flight waits for what they do later: waiting_client CASE. They need a GPU
// whose work is asynchronous (SIMGPU_ASYNC=1), and end there in a moment; a profiler that makes a
// launch wait for all work in flight makes them wait for ever.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "client.h"

namespace {

using client::check;
using client::Gpu;

constexpr int kSteps = 20;

CUstream make_stream() {
  CUstream made = nullptr;
  check(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return made;
}

// A word that host and kernels see; `memory` is null for memory of this process.
struct Flag {
  explicit Flag(void* memory = nullptr) : host(static_cast<unsigned*>(memory)) {
    if (host == nullptr) {
      void* made = nullptr;
      check(cuMemHostAlloc(&made, sizeof *host, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
      host = static_cast<unsigned*>(made);
    } else {
      check(cuMemHostRegister(host, sizeof *host, CU_MEMHOSTREGISTER_DEVICEMAP),
            "cuMemHostRegister");
    }
    check(cuMemHostGetDevicePointer(&device, host, 0), "cuMemHostGetDevicePointer");
    set(0);
  }
  void set(unsigned value) const { __atomic_store_n(host, value, __ATOMIC_RELEASE); }
  unsigned get() const { return __atomic_load_n(host, __ATOMIC_ACQUIRE); }
  // A kernel that runs until the flag is not `value`.
  void wait_while(const Gpu& gpu, unsigned value, CUstream stream,
                  const char* kernel = "wait_for_flag") const {
    void* parameters[] = {const_cast<CUdeviceptr*>(&device), &value};
    check(cuLaunchKernel(gpu.function(kernel), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr),
          kernel);
  }
  unsigned* host;
  CUdeviceptr device = 0;
};

// Three launches that are measured, so that a profiler has begun.
void warm_up(const Gpu& gpu, CUstream stream) {
  for (int i = 0; i < 3; ++i) gpu.axpy(100, stream);
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

// A host function takes a lock that the launching thread holds, as a function in Python takes the
// interpreter's lock while PyTorch holds it to launch.
std::mutex g_lock;
void locked(void*) { const std::scoped_lock lock(g_lock); }
void host_function(const Gpu& gpu) {
  const CUstream compute = make_stream(), other = make_stream();
  warm_up(gpu, compute);
  for (int step = 0; step < kSteps; ++step) {
    {
      const std::scoped_lock lock(g_lock);
      check(cuLaunchHostFunc(other, locked, nullptr), "cuLaunchHostFunc");
      gpu.axpy(100, compute);
    }
    Gpu::synchronize();
  }
}

// The same through the older call.
void CUDA_CB locked_callback(CUstream, CUresult, void*) { locked(nullptr); }
void callback(const Gpu& gpu) {
  const CUstream compute = make_stream(), other = make_stream();
  warm_up(gpu, compute);
  for (int step = 0; step < kSteps; ++step) {
    {
      const std::scoped_lock lock(g_lock);
      check(cuStreamAddCallback(other, locked_callback, nullptr, 0), "cuStreamAddCallback");
      gpu.axpy(100, compute);
    }
    Gpu::synchronize();
  }
}

// A kernel runs until a flag is set, which is set behind the next launch.
void kernel(const Gpu& gpu) {
  const CUstream compute = make_stream(), other = make_stream();
  const Flag flag;
  warm_up(gpu, compute);
  for (int step = 0; step < kSteps; ++step) {
    flag.set(0);
    flag.wait_while(gpu, 0, other);
    gpu.axpy(100, compute);
    flag.set(1);
    Gpu::synchronize();
  }
}

// A stream waits for the value, no kernel.
void stream_wait(const Gpu& gpu) {
  const CUstream compute = make_stream(), other = make_stream();
  const Flag flag;
  warm_up(gpu, compute);
  for (int step = 0; step < kSteps; ++step) {
    flag.set(0);
    check(cuStreamWaitValue32(other, flag.device, 1, CU_STREAM_WAIT_VALUE_EQ),
          "cuStreamWaitValue32");
    gpu.axpy(100, compute);
    flag.set(1);
    Gpu::synchronize();
  }
}

// Graphs that wait until the flag is set, by a host function or by a kernel. That came into them in
// one of many ways.
void CUDA_CB until_set(void* flag) {
  while (static_cast<const Flag*>(flag)->get() == 0) std::this_thread::yield();
}

struct FlagKernel {
  FlagKernel(const Gpu& gpu, const Flag& flag) : device(flag.device) {
    node.func = gpu.function("wait_for_flag");
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = parameters;
  }
  FlagKernel(const FlagKernel&) = delete;
  FlagKernel& operator=(const FlagKernel&) = delete;

  CUdeviceptr device;
  unsigned value = 0;
  void* parameters[2] = {&device, &value};
  CUDA_KERNEL_NODE_PARAMS node{};
};

template <class Launch>
CUgraph capture(CUstream stream, Launch launch) {
  CUgraph graph = nullptr;
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  launch();
  check(cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  return graph;
}

CUgraphExec instantiate(CUgraph graph) {
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  return exec;
}

CUgraphExec waiting_graph(const Gpu& gpu, const Flag& flag, CUstream stream,
                          const std::string& how) {
  const auto host = [&] {
    check(cuLaunchHostFunc(stream, until_set, const_cast<Flag*>(&flag)), "cuLaunchHostFunc");
  };
  const auto kernel = [&] { flag.wait_while(gpu, 0, stream); };
  if (how == "host") return instantiate(capture(stream, host));
  if (how == "kernel") return instantiate(capture(stream, kernel));
  CUgraph graph = nullptr;
  if (how == "clone") {
    check(cuGraphClone(&graph, capture(stream, host)), "cuGraphClone");
    return instantiate(graph);
  }
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUgraphNode node = nullptr;
  if (how == "child") {
    check(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, capture(stream, host)),
          "cuGraphAddChildGraphNode");
    return instantiate(graph);
  }
  const FlagKernel waits(gpu, flag);
  if (how == "by_hand") {
    check(cuGraphAddKernelNode(&node, graph, nullptr, 0, &waits.node), "cuGraphAddKernelNode");
    return instantiate(graph);
  }
  CUgraph plain = capture(stream, [&] { gpu.axpy(100, stream); });
  const CUgraphExec exec = instantiate(plain);
  size_t one = 1;
  check(cuGraphGetNodes(plain, &node, &one), "cuGraphGetNodes");
  if (how == "exchanged") {
    check(cuGraphExecKernelNodeSetParams(exec, node, &waits.node),
          "cuGraphExecKernelNodeSetParams");
  } else {
    CUgraphExecUpdateResultInfo result{};
    check(cuGraphExecUpdate(exec, capture(stream, kernel), &result), "cuGraphExecUpdate");
  }
  return exec;
}

void graph(const Gpu& gpu, const std::string& how) {
  const CUstream compute = make_stream(), other = make_stream();
  const Flag flag;
  warm_up(gpu, compute);
  const CUgraphExec exec = waiting_graph(gpu, flag, other, how);
  for (int step = 0; step < kSteps; ++step) {
    flag.set(0);
    check(cuGraphLaunch(exec, other), "cuGraphLaunch");
    gpu.axpy(100, compute);
    flag.set(1);
    Gpu::synchronize();
  }
}

// The stream that carries the waiting kernel is destroyed; the driver lets the kernel finish. Once
// it has, dot(7) is launched 10 times.
void destroyed_stream(const Gpu& gpu) {
  const CUstream compute = make_stream();
  const Flag flag;
  warm_up(gpu, compute);
  for (int step = 0; step < kSteps; ++step) {
    const CUstream other = make_stream();
    flag.set(0);
    flag.wait_while(gpu, 0, other);
    check(cuStreamDestroy(other), "cuStreamDestroy");
    gpu.axpy(100, compute);
    flag.set(1);
    Gpu::synchronize();
  }
  for (int i = 0; i < 10; ++i) gpu.dot(7, compute);
}

// A host function in the own stream of a thread that has ended: nobody else can name that stream.
void ended_thread(const Gpu& gpu) {
  const CUstream compute = make_stream();
  warm_up(gpu, compute);
  {
    const std::unique_lock lock(g_lock);
    std::thread([&] {
      check(cuCtxSetCurrent(gpu.context), "cuCtxSetCurrent");
      check(cuLaunchHostFunc(CU_STREAM_PER_THREAD, locked, nullptr), "cuLaunchHostFunc");
    }).join();
    gpu.axpy(100, compute);
  }
  Gpu::synchronize();
  for (int i = 0; i < 10; ++i) gpu.dot(7, compute);
}

// Waiting work that is captured and never launched holds nothing up.
void only_captured(const Gpu& gpu) {
  const CUstream compute = make_stream(), other = make_stream();
  const Flag flag;
  warm_up(gpu, compute);
  check(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  flag.wait_while(gpu, 0, other);
  check(cuLaunchHostFunc(other, locked, nullptr), "cuLaunchHostFunc");
  CUgraph unused = nullptr;
  check(cuStreamEndCapture(other, &unused), "cuStreamEndCapture");
  for (int i = 0; i < 10; ++i) gpu.dot(7, compute);
}

// A kernel that runs to the end of the input: under a profiler its launch returns when it ends.
void long_launch(const Gpu& gpu) {
  const CUstream compute = make_stream();
  const Flag flag;
  warm_up(gpu, compute);
  std::thread host([&] {
    while (std::getchar() != EOF) {
    }
    flag.set(1);
  });
  flag.wait_while(gpu, 0, compute, "spin");
  host.join();
  Gpu::synchronize();
}

// Two stages of a pipeline. The first posts its receive (of a gradient), computes, sends (an
// activation) and awaits the receive; the second receives, computes and sends. A receive is a
// kernel that waits for the other's send, so if computing in the first waits for its receive, it
// never sends.
void rank(const char* argv0, void* shared, int number) {
  const Gpu gpu(argv0);
  const CUstream compute = make_stream(), communication = make_stream();
  auto* const words = static_cast<unsigned char*>(shared);
  const Flag mine(words + 4096 * number), others(words + 4096 * (1 - number));
  warm_up(gpu, compute);
  auto* const ready = reinterpret_cast<std::atomic<int>*>(words + 8192);
  ready->fetch_add(1);
  while (ready->load() != 2) usleep(1000);  // both flags are 0
  for (unsigned step = 0; step < kSteps; ++step) {
    mine.wait_while(gpu, step, communication);  // receive
    if (number == 1) check(cuStreamSynchronize(communication), "cuStreamSynchronize");
    gpu.axpy(100, compute);
    check(cuStreamSynchronize(compute), "cuStreamSynchronize");
    others.set(step + 1);  // send
    check(cuStreamSynchronize(communication), "cuStreamSynchronize");
  }
}
int pipeline(const char* argv0) {
  void* const shared =
      mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  for (int number = 0; number < 2; ++number) {
    if (fork() != 0) continue;
    setenv("RANK", number == 0 ? "0" : "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("LOCAL_RANK", number == 0 ? "0" : "1", 1);
    rank(argv0, shared, number);
    std::exit(0);
  }
  int worst = 0;
  for (int number = 0; number < 2; ++number) {
    int status = 0;
    wait(&status);
    if (status != 0) worst = 1;
  }
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "pipeline") return pipeline(argv[0]);
  const Gpu gpu(argv[0]);
  if (which == "host_function")
    host_function(gpu);
  else if (which == "callback")
    callback(gpu);
  else if (which == "kernel")
    kernel(gpu);
  else if (which == "stream_wait")
    stream_wait(gpu);
  else if (which.starts_with("graph_"))
    graph(gpu, which.substr(6));
  else if (which == "destroyed_stream")
    destroyed_stream(gpu);
  else if (which == "ended_thread")
    ended_thread(gpu);
  else if (which == "only_captured")
    only_captured(gpu);
  else if (which == "long_launch")
    long_launch(gpu);
  else
    return 2;
  std::puts("done");
  return 0;
}
