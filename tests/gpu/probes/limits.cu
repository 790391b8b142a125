// Launches at the limits of the device: cooperative grids of the largest size, many registers, full
// memory. An instrumented kernel needs more of each, and a failure is the program's.
#include <cooperative_groups.h>

#include "probe.h"

namespace probe {
namespace {

__global__ void cooperate(float* out) {
  cooperative_groups::this_grid().sync();
  if (threadIdx.x == 0) out[blockIdx.x % 1024] = static_cast<float>(gridDim.x);
}
__global__ void __launch_bounds__(1024) full_blocks(float a, float* out) {
  float x[32];
  for (int i = 0; i < 32; ++i) x[i] = a * static_cast<float>(i + static_cast<int>(threadIdx.x));
  for (int round = 0; round < 64; ++round)
    for (int i = 0; i < 32; ++i) x[i] = __fmaf_rn(x[i], x[(i + 7) % 32], a);
  float sum = 0;
  for (const float value : x) sum += value;
  out[threadIdx.x] = sum;
}
__global__ void __launch_bounds__(256) many_registers(float a, float* out) {
  float x[200];
#pragma unroll
  for (int i = 0; i < 200; ++i) x[i] = a * static_cast<float>(i + static_cast<int>(threadIdx.x));
  for (int round = 0; round < 64; ++round)
#pragma unroll
    for (int i = 0; i < 200; ++i) x[i] = __fmaf_rn(x[i], x[(i + 7) % 200], a);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 200; ++i) sum += x[i];
  out[threadIdx.x] = sum;
}

std::string outcome(cudaError_t launched) {
  const cudaError_t ended = cudaDeviceSynchronize();
  cudaGetLastError();
  return std::string(cudaGetErrorName(launched)) + ", then " + cudaGetErrorName(ended);
}
cudaError_t launch_cooperative() {
  int device = 0, blocks = 0, processors = 0;
  cudaGetDevice(&device);
  observe(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, cooperate, 256, 0), "occupancy");
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  void* arguments[] = {&scratch};
  return cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(cooperate),
                                     dim3(static_cast<unsigned>(blocks * processors)), dim3(256),
                                     arguments, 0, nullptr);
}
void say_launches(const std::string& where) {
  say("cooperative grid of the largest size" + where, outcome(launch_cooperative()).c_str());
  full_blocks<<<1, 1024>>>(0.5f, scratch);
  say("1,024 threads a block" + where, outcome(cudaGetLastError()).c_str());
  many_registers<<<1, 256>>>(0.5f, scratch);
  say("255 registers a thread" + where, outcome(cudaGetLastError()).c_str());
}
void say_registers(const char* name, const void* kernel) {
  cudaFuncAttributes attributes{};
  observe(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  say_count(std::string("registers of ") + name, static_cast<uint64_t>(attributes.numRegs));
}

}  // namespace

void launch_limits() {
  say_registers("the cooperative kernel", reinterpret_cast<const void*>(cooperate));
  say_registers("the kernel of 1,024 threads", reinterpret_cast<const void*>(full_blocks));
  say_registers("the kernel of many registers", reinterpret_cast<const void*>(many_registers));
  say_launches(", no window");
  RangeWindows windows;
  if (!windows.enable()) return;
  void* ballast = nullptr;
  for (const bool full : {false, true}) {
    if (full) {
      size_t free_bytes = 0, total = 0;
      cudaMemGetInfo(&free_bytes, &total);
      const size_t left = size_t{64} << 20;
      if (free_bytes > left) observe(cudaMalloc(&ballast, free_bytes - left), "cudaMalloc");
      cudaMemGetInfo(&free_bytes, &total);
      say_count("free device memory in the runs with full memory", free_bytes >> 20, "MiB");
    }
    for (const Metrics* metrics : {&kInstructions, &kHardware}) {
      const std::string where = std::string(full ? ", memory full, " : ", ") + metrics->front();
      if (!windows.plan(*metrics) || !windows.open(16)) {
        say("window" + where, "is refused");
        continue;
      }
      say_launches(where);
      say_count("ranges of 3 launches" + where, windows.close());
    }
  }
  if (ballast != nullptr) cudaFree(ballast);
  windows.disable();
}

}  // namespace probe
