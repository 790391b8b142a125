// Many of everything, again and again: stress_client CASE [NUMBER]. Prints the process's memory
// after every round: "rss BYTES".
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>
#include <vector>

#include "client.h"

namespace {

using client::check;
using client::Gpu;

void tell_memory() {
  std::ifstream statm("/proc/self/statm");
  long pages = 0, resident = 0;
  statm >> pages >> resident;
  std::printf("rss %ld\n", resident * sysconf(_SC_PAGESIZE));
}

void launch_dot(const Gpu& gpu, CUfunction dot, int k, unsigned shared_bytes,
                CUstream stream = nullptr) {
  void* parameters[] = {&k, const_cast<CUdeviceptr*>(&gpu.x), const_cast<CUdeviceptr*>(&gpu.y)};
  check(cuLaunchKernel(dot, 1, 1, 1, 1, 1, 1, shared_bytes, stream, parameters, nullptr), "dot");
}

// 10,000 signatures: shared memory is part of them.
void signatures(Gpu& gpu, int rounds) {
  CUfunction dot = gpu.function("dot");
  for (int round = 0; round < rounds; ++round) {
    for (unsigned i = 0; i < 10'000; ++i) launch_dot(gpu, dot, 1, i);
    Gpu::synchronize();
    usleep(30'000);  // the writer keeps up: a full ring would drop launches
    tell_memory();
  }
}

// 64 threads at once, all of them new in every round. 15 rounds of 64 x 200 launches.
void threads(Gpu& gpu) {
  CUfunction dot = gpu.function("dot");
  for (int round = 0; round < 15; ++round) {
    std::vector<std::thread> all;
    for (int t = 0; t < 64; ++t)
      all.emplace_back([&] {
        gpu.use();
        nvtxRangePushA("worker");
        for (int i = 0; i < 200; ++i) launch_dot(gpu, dot, 3, 0);
        nvtxRangePop();
      });
    for (auto& thread : all) thread.join();
    Gpu::synchronize();
    usleep(300'000);  // what is still on its way is no growth
    tell_memory();
  }
}

// Modules, each loaded, used once and unloaded. Memory is said five times.
void modules(Gpu& gpu, int count) {
  for (int i = 1; i <= count; ++i) {
    gpu.unload();
    gpu.load();
    launch_dot(gpu, gpu.function("dot"), 2, 0);
    Gpu::synchronize();
    if (i % (count / 5) == 0) tell_memory();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  Gpu gpu(argv[0]);
  if (name == "signatures")
    signatures(gpu, number);
  else if (name == "threads")
    threads(gpu);
  else if (name == "modules")
    modules(gpu, number);
  else
    return 2;
  return 0;
}
