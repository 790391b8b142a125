// Launches of every kind, by name of the case: launch_client CASE.
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "client.h"
#include "effort.h"

namespace {

using client::check;
using client::Gpu;

// The same grid with another K, many times: never one signature.
void same_grid(Gpu& gpu) {
  for (int repeat = 0; repeat < 20; ++repeat)
    for (const int k : {1, 17, 1000}) gpu.dot(k);
}

// Launches that fail are not launches.
void failed(Gpu& gpu) {
  for (int i = 0; i < 10; ++i) {
    gpu.axpy(100);
    int n = 100;
    void* parameters[] = {&n};
    if (cuLaunchKernel(gpu.function("axpy"), 1, 1, 1, 4096, 1, 1, 0, nullptr, parameters,
                       nullptr) == CUDA_SUCCESS)
      std::exit(1);
  }
}

// A module is unloaded and loaded again: handles come back, perhaps for other functions.
void reload(Gpu& gpu) {
  for (int round = 0; round < 50; ++round) {
    if (round % 2 == 0)
      gpu.axpy(64);
    else
      gpu.dot(10);
    Gpu::synchronize();
    gpu.unload();
    gpu.load();
  }
}

// A library is loaded anew for each two launches of its kernel, a dot product of 10.
void library_in_rounds(const Gpu& gpu) {
  int k = 10;
  CUdeviceptr x = gpu.x, y = gpu.y;
  void* parameters[] = {&k, &x, &y};
  for (int round = 0; round < 25; ++round) {
    CUlibrary library = nullptr;
    check(cuLibraryLoadFromFile(&library, gpu.module_path.c_str(), nullptr, nullptr, 0, nullptr,
                                nullptr, 0),
          "cuLibraryLoadFromFile");
    CUkernel kernel = nullptr;
    check(cuLibraryGetKernel(&kernel, library, "dot"), "cuLibraryGetKernel");
    for (int i = 0; i < 2; ++i)
      check(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr,
                           parameters, nullptr),
            "dot");
    Gpu::synchronize();
    check(cuLibraryUnload(library), "cuLibraryUnload");
  }
}

// Eight threads on one context, each with a stream and a size of its own.
void threads(Gpu& gpu, int launches) {
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t)
    all.emplace_back([&gpu, launches, t] {
      gpu.use();
      CUstream stream = nullptr;
      check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      const std::string name = "thread " + std::string(1, static_cast<char>('a' + t));
      nvtxRangePushA(name.c_str());
      for (int i = 0; i < launches; ++i) gpu.axpy(100 + t, stream);
      nvtxRangePop();
      check(cuStreamSynchronize(stream), "cuStreamSynchronize");
      check(cuStreamDestroy(stream), "cuStreamDestroy");
    });
  for (auto& t : all) t.join();
}

// cuLaunchKernelEx, cooperative launches and a packed parameter buffer.
void entry_points(Gpu& gpu) {
  for (int i = 0; i < 10; ++i) {
    int n = 50;
    float a = 1.0F;
    void* parameters[] = {&n, &a, &gpu.x, &gpu.y};
    CUlaunchConfig config{};
    config.gridDimX = 2, config.gridDimY = 1, config.gridDimZ = 1;
    config.blockDimX = 32, config.blockDimY = 1, config.blockDimZ = 1;
    check(cuLaunchKernelEx(&config, gpu.function("axpy"), parameters, nullptr), "cuLaunchKernelEx");
    check(
        cuLaunchCooperativeKernel(gpu.function("axpy"), 2, 1, 1, 32, 1, 1, 0, nullptr, parameters),
        "cuLaunchCooperativeKernel");
    struct {
      int n;
      float a;
      CUdeviceptr x, y;
    } packed = {n, a, gpu.x, gpu.y};
    size_t bytes = sizeof packed;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    check(cuLaunchKernel(gpu.function("axpy"), 2, 1, 1, 32, 1, 1, 0, nullptr, nullptr, extra),
          "extra");
  }
}

// A captured graph, launched, its kernel changed in the executable graph, launched again; and a
// child graph.
void graphs(Gpu& gpu) {
  // Eager first: this is where their counts come from, one launch for each of the two groups.
  for (int i = 0; i < 2; ++i) gpu.dot(5), gpu.dot(9), gpu.axpy(40);
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "begin");
  nvtxRangePushA("captured");
  gpu.dot(5, stream);
  gpu.axpy(40, stream);
  nvtxRangePop();
  CUgraph graph = nullptr;
  check(cuStreamEndCapture(stream, &graph), "end");
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "instantiate");
  for (int i = 0; i < 3; ++i) check(cuGraphLaunch(exec, stream), "launch");

  CUgraphNode nodes[8];
  size_t count = 8;
  check(cuGraphGetNodes(graph, nodes, &count), "nodes");
  for (size_t i = 0; i < count; ++i) {
    CUDA_KERNEL_NODE_PARAMS old{};
    check(cuGraphKernelNodeGetParams(nodes[i], &old), "params");
    if (old.func != gpu.function("dot")) continue;
    int k = 9;
    void* parameters[] = {&k, &gpu.x, &gpu.y};
    old.kernelParams = parameters;
    old.extra = nullptr;
    check(cuGraphExecKernelNodeSetParams(exec, nodes[i], &old), "set params");
  }
  for (int i = 0; i < 2; ++i) check(cuGraphLaunch(exec, stream), "launch after update");

  CUgraph parent = nullptr;
  check(cuGraphCreate(&parent, 0), "parent");
  CUgraphNode child = nullptr;
  check(cuGraphAddChildGraphNode(&child, parent, nullptr, 0, graph), "child");
  CUgraphExec parent_exec = nullptr;
  check(cuGraphInstantiateWithFlags(&parent_exec, parent, 0), "instantiate parent");
  check(cuGraphLaunch(parent_exec, stream), "launch parent");
  check(cuStreamSynchronize(stream), "sync");
  check(cuGraphExecDestroy(parent_exec), "destroy");
  check(cuGraphExecDestroy(exec), "destroy");
  check(cuGraphDestroy(parent), "destroy");
  check(cuGraphDestroy(graph), "destroy");
}

// Work that no parameter tells: samples disagree.
void varying(Gpu& gpu) {
  for (int i = 0; i < 40; ++i) {
    const int k = 10 + i;
    check(cuMemcpyHtoD(gpu.x, &k, sizeof k), "copy");
    void* parameters[] = {&gpu.x, &gpu.y};
    check(cuLaunchKernel(gpu.function("data_dependent"), 1, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                         nullptr),
          "data_dependent");
  }
}

void precisions(Gpu& gpu) {
  for (int i = 0; i < 5; ++i) {
    int n = 64;
    void* parameters[] = {&n, &gpu.x, &gpu.y};
    check(cuLaunchKernel(gpu.function("mixed_precision"), 2, 1, 1, 32, 1, 1, 0, nullptr, parameters,
                         nullptr),
          "mixed_precision");
  }
}

// C = A * B on tensor cores, sizes that no tile divides. Ends the program if the product is wrong.
void product(Gpu& gpu, const char* kernel, int m, int n, int k) {
  CUdeviceptr b = gpu.x + gpu.kBytes / 2;
  void* parameters[] = {&m, &n, &k, &gpu.x, &b, &gpu.y};
  check(cuLaunchKernel(gpu.function(kernel), static_cast<unsigned>((n + 15) / 16),
                       static_cast<unsigned>((m + 15) / 16), 1, 32, 1, 1, 4096, nullptr, parameters,
                       nullptr),
        kernel);
}

void tensor(Gpu& gpu, int repeats) {
  std::vector<float> a(gpu.kBytes / 2 / sizeof(float)), b(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<float>(i % 7) - 3.0F;  // exact in every source, and so are the sums
    b[i] = static_cast<float>(i % 5) - 2.0F;
  }
  check(cuMemcpyHtoD(gpu.x, a.data(), gpu.kBytes / 2), "cuMemcpyHtoD");
  check(cuMemcpyHtoD(gpu.x + gpu.kBytes / 2, b.data(), gpu.kBytes / 2), "cuMemcpyHtoD");
  const struct {
    const char* kernel;
    int m, n, k;
  } products[] = {
      {"product_fp16", 33, 50, 70}, {"product_bf16", 17, 16, 100}, {"product_tf32", 5, 90, 31}};
  for (int i = 0; i < repeats; ++i) {
    for (const auto& p : products) {
      product(gpu, p.kernel, p.m, p.n, p.k);
      if (i > 0) continue;
      std::vector<float> c(static_cast<size_t>(p.m) * static_cast<size_t>(p.n));
      check(cuMemcpyDtoH(c.data(), gpu.y, c.size() * sizeof(float)), "cuMemcpyDtoH");
      for (int row = 0; row < p.m; ++row)
        for (int column = 0; column < p.n; ++column) {
          float sum = 0;
          for (int d = 0; d < p.k; ++d)
            sum += a[static_cast<size_t>(row * p.k + d)] * b[static_cast<size_t>(d * p.n + column)];
          if (c[static_cast<size_t>(row * p.n + column)] != sum) std::exit(1);
        }
    }
    gpu.axpy(64);
  }
}

// A matrix times a vector, and an outer product with its row sums: equal FLOP, twice the traffic.
void vectors(Gpu& gpu) {
  int n = 256;
  const auto blocks = static_cast<unsigned>(n / 32);
  CUdeviceptr matrix = gpu.x;
  CUdeviceptr left = gpu.y;
  CUdeviceptr right = gpu.y + 4096;
  CUdeviceptr result = gpu.y + 8192;
  const auto launch = [&](const char* kernel, void** parameters) {
    check(cuLaunchKernel(gpu.function(kernel), blocks, 1, 1, 32, 1, 1, 0, nullptr, parameters,
                         nullptr),
          kernel);
  };
  for (int i = 0; i < 10; ++i) {
    nvtxRangePushA("matrix x vector");
    void* product[] = {&n, &matrix, &left, &result};
    launch("matrix_vector", product);
    nvtxRangePop();
    nvtxRangePushA("outer product, row sum");
    void* outer[] = {&n, &left, &right, &matrix};
    launch("outer_product", outer);
    void* sum[] = {&n, &matrix, &result};
    launch("row_sum", sum);
    nvtxRangePop();
  }
}

// One kernel, its work always the same, with a scalar that never comes again: a seed, a step
// counter.
void seeds(Gpu& gpu, std::chrono::milliseconds apart) {
  for (int i = 0; i < 40; ++i) {
    gpu.axpy(64, nullptr, 1.0F + static_cast<float>(i));
    std::this_thread::sleep_for(apart);
  }
}

void collective(Gpu& gpu) {
  for (int i = 0; i < 5; ++i) {
    gpu.axpy(32);
    gpu.all_reduce(32);
  }
}

// All devices, each with other work.
void devices(const char* argv0) {
  int count = 0;
  check(cuDeviceGetCount(&count), "cuDeviceGetCount");
  std::vector<std::unique_ptr<Gpu>> gpus;
  for (int d = 0; d < count; ++d) gpus.push_back(std::make_unique<Gpu>(argv0, d));
  for (int i = 0; i < 10; ++i)
    for (int d = 0; d < count; ++d) {
      gpus[static_cast<size_t>(d)]->use();
      gpus[static_cast<size_t>(d)]->axpy(10 * (d + 1));
    }
}

// A child that does not use CUDA, one that ends by _exit and one by exit.
void forks(Gpu& gpu) {
  gpu.axpy(10);
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      if (!flopinj::test::kSanitized) {  // whose allocator may be locked
        nvtxRangePushA("in the child");
        nvtxRangePop();
      }
      if (i == 0) _exit(0);
      std::exit(0);
    }
  }
  gpu.axpy(10);
  sleep(1);
}

// Launches for ever, one every half millisecond, telling how many were made.
void endless(Gpu& gpu) {
  for (unsigned long i = 1;; ++i) {
    gpu.axpy(16);
    if (i % 100 == 0) std::printf("%lu\n", i), std::fflush(stdout);
    usleep(500);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  Gpu gpu(argv[0]);
  const std::map<std::string, std::function<void()>> cases = {
      {"same_grid", [&] { same_grid(gpu); }},
      {"failed", [&] { failed(gpu); }},
      {"reload", [&] { reload(gpu); }},
      {"library_in_rounds", [&] { library_in_rounds(gpu); }},
      {"threads", [&] { threads(gpu, 500); }},
      {"threads_briefly", [&] { threads(gpu, 20); }},
      {"entry_points", [&] { entry_points(gpu); }},
      {"graphs", [&] { graphs(gpu); }},
      {"varying", [&] { varying(gpu); }},
      {"precisions", [&] { precisions(gpu); }},
      {"tensor", [&] { tensor(gpu, 100); }},
      {"tensor_a_dozen", [&] { tensor(gpu, 12); }},
      {"tensor_briefly", [&] { tensor(gpu, 2); }},
      {"vectors", [&] { vectors(gpu); }},
      {"seeds", [&] { seeds(gpu, std::chrono::milliseconds(20)); }},
      {"seeds_slowly", [&] { seeds(gpu, std::chrono::milliseconds(500)); }},
      {"collective", [&] { collective(gpu); }},
      {"devices", [&] { devices(argv[0]); }},
      {"forks", [&] { forks(gpu); }},
      {"endless", [&] { endless(gpu); }},
  };
  const auto known = cases.find(name);
  if (known == cases.end()) return 2;
  known->second();
  Gpu::synchronize();
  return argc > 2 ? std::atoi(argv[2]) : 0;
}
