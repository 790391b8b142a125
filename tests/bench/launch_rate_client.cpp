// What a launch of an empty kernel costs this program, and what cuInit does. Knows nothing of us;
// run it with and without the profiler (launch_overhead.py does). launch_rate_client SECONDS
// THREADS prints "init_ns N" and "launch_ns N", the median over batches of 1,000 launches.
#include <cuda.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void check(CUresult result) {
  if (result != CUDA_SUCCESS) std::exit(1);
}
double ns_since(Clock::time_point began) {
  return std::chrono::duration<double, std::nano>(Clock::now() - began).count();
}

void launch(CUcontext context, CUfunction function, CUdeviceptr memory, double seconds,
            std::vector<double>& batches) {
  check(cuCtxSetCurrent(context));
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  int k = 0;
  void* parameters[] = {&k, &memory, &memory};
  for (const auto began = Clock::now(); ns_since(began) < seconds * 1e9;) {
    const auto batch = Clock::now();
    for (int i = 0; i < 1'000; ++i)
      check(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
    batches.push_back(ns_since(batch) / 1'000);
    check(cuStreamSynchronize(stream));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto began = Clock::now();
  check(cuInit(0));
  std::printf("init_ns %.0f\n", ns_since(began));
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction dot = nullptr;
  CUdeviceptr memory = 0;
  check(cuDeviceGet(&device, 0));
  check(cuDevicePrimaryCtxRetain(&context, device));
  check(cuCtxSetCurrent(context));
  check(cuModuleLoad(&module, argv[3]));
  check(cuModuleGetFunction(&dot, module, "dot"));
  check(cuMemAlloc(&memory, 64));
  const auto threads = static_cast<size_t>(std::max(1, std::atoi(argv[2])));
  std::vector<std::vector<double>> batches(threads);
  std::vector<std::thread> all;
  for (auto& mine : batches)
    all.emplace_back([&] { launch(context, dot, memory, std::atof(argv[1]), mine); });
  for (auto& thread : all) thread.join();
  std::vector<double> sorted;
  for (const auto& mine : batches) sorted.insert(sorted.end(), mine.begin(), mine.end());
  std::sort(sorted.begin(), sorted.end());
  std::printf("launch_ns %.0f\n", sorted[sorted.size() / 2]);
  return 0;
}
