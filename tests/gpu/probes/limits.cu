// Launches at the limits of the device: cooperative grids of the largest size, blocks that take
// all registers, full memory. An instrumented kernel needs more of each, and a failure is the
// program's.
#include <cooperative_groups.h>

#include <iterator>

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

// As many values a thread as its registers hold, so that the compiler gives it all that its block
// allows: 384 threads 168 registers, as products of Hopper have, and 512 threads 128.
template <int values>
__device__ void hold(float a, float* out) {
  float x[values];
#pragma unroll
  for (int i = 0; i < values; ++i) x[i] = a * static_cast<float>(i + static_cast<int>(threadIdx.x));
  for (int round = 0; round < 64; ++round)
#pragma unroll
    for (int i = 0; i < values; ++i) x[i] = __fmaf_rn(x[i], x[(i + 7) % values], a);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < values; ++i) sum += x[i];
  out[threadIdx.x] = sum;
}
__global__ void __launch_bounds__(384, 1) three_groups(float a, float* out) { hold<155>(a, out); }
__global__ void __launch_bounds__(512, 1) four_groups(float a, float* out) { hold<115>(a, out); }
__global__ void __launch_bounds__(1024, 1) full_registers(float a, float* out) { hold<52>(a, out); }
// Its first group hands registers to the others, which have 232 then.
__global__ void __launch_bounds__(384, 1) hand_registers(float a, float* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__CUDA_ARCH_FEAT_SM100_ALL)
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    hold<155>(a, out);
  }
#else
  out[threadIdx.x] = a;
#endif
}

struct Shape {
  const char* name;
  void (*kernel)(float, float*);
  unsigned threads;
};
constexpr Shape kShapes[] = {{"1,024 threads a block", full_blocks, 1024},
                             {"1,024 threads of 64 registers", full_registers, 1024},
                             {"512 threads of 128 registers", four_groups, 512},
                             {"384 threads of 168 registers", three_groups, 384},
                             {"255 registers a thread", many_registers, 256}};

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
  for (const Shape& shape : kShapes) {
    shape.kernel<<<1, shape.threads>>>(0.5f, scratch);
    say(shape.name + where, outcome(cudaGetLastError()).c_str());
  }
}
void say_registers(const std::string& name, const void* kernel) {
  cudaFuncAttributes attributes{};
  observe(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  say_count("registers of the kernel: " + name, static_cast<uint64_t>(attributes.numRegs));
}

}  // namespace

void handed_registers() {  // it may hang
  const auto say_launch = [](const std::string& where) {
    hand_registers<<<1, 384>>>(0.5f, scratch);
    say("384 threads of 168, then 40 and 232 registers" + where,
        outcome(cudaGetLastError()).c_str());
  };
  say_launch(", no window");
  RangeWindows windows;
  if (!windows.enable()) return;
  for (const Metrics* metrics : {&kHardware, &kInstructions}) {
    const std::string where = std::string(", ") + metrics->front();
    if (!windows.plan(*metrics) || !windows.open(16)) continue;
    say_launch(where);
    const size_t ranges = windows.close();
    say_count("ranges of 1 launch" + where, ranges);
    if (ranges == 1) say("value" + where, windows.values(0)[0], "");
  }
  windows.disable();
}

void launch_limits() {
  say_registers("cooperative", reinterpret_cast<const void*>(cooperate));
  for (const Shape& shape : kShapes)
    say_registers(shape.name, reinterpret_cast<const void*>(shape.kernel));
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
      say_count("ranges of " + std::to_string(1 + std::size(kShapes)) + " launches" + where,
                windows.close());
    }
  }
  if (ballast != nullptr) cudaFree(ballast);
  windows.disable();
}

}  // namespace probe
