// Launches that just fit: tight_client CASE. Instrumented code, which needs more registers and
// memory, would not.
#include "client.h"

namespace {

using client::check;
using client::Gpu;

constexpr int kLaunches = 20;

CUresult try_launch(const Gpu& gpu, unsigned grid, unsigned block, bool cooperative) {
  int n = static_cast<int>(grid * block) < 1000 ? static_cast<int>(grid * block) : 1000;
  float a = 2.0F;
  CUdeviceptr x = gpu.x, y = gpu.y;
  void* parameters[] = {&n, &a, &x, &y};
  const CUfunction axpy = gpu.function("axpy");
  return cooperative
             ? cuLaunchCooperativeKernel(axpy, grid, 1, 1, block, 1, 1, 0, nullptr, parameters)
             : cuLaunchKernel(axpy, grid, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr);
}

void launch(const Gpu& gpu, unsigned grid, unsigned block, bool cooperative) {
  check(try_launch(gpu, grid, block, cooperative), "axpy");
}

// All blocks that can be resident at once.
void cooperative(const Gpu& gpu) {
  int multiprocessors = 0, blocks = 0;
  check(
      cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device),
      "cuDeviceGetAttribute");
  check(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, gpu.function("axpy"), 1024, 0),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  for (int i = 0; i < kLaunches; ++i)
    launch(gpu, static_cast<unsigned>(multiprocessors * blocks), 1024, true);
}

// The largest block.
void wide(const Gpu& gpu) {
  for (int i = 0; i < kLaunches; ++i) launch(gpu, 2, 1024, false);
}

// Half the largest block; says how many launches failed, and goes on.
void roomy(const Gpu& gpu) {
  int failed = 0;
  for (int i = 0; i < 2 * kLaunches; ++i)
    if (try_launch(gpu, 2, 512, false) != CUDA_SUCCESS) ++failed;
  std::printf("failed %d of %d\n", failed, 2 * kLaunches);
}

// All but 64 MiB is taken, as a caching allocator does.
void full_memory(const Gpu& gpu) {
  size_t free = 0, total = 0;
  check(cuMemGetInfo(&free, &total), "cuMemGetInfo");
  CUdeviceptr taken = 0;
  check(cuMemAlloc(&taken, free - (size_t{64} << 20)), "cuMemAlloc");
  for (int i = 0; i < kLaunches; ++i) launch(gpu, 1, 32, false);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  const Gpu gpu(argv[0]);
  if (which == "cooperative")
    cooperative(gpu);
  else if (which == "wide")
    wide(gpu);
  else if (which == "roomy")
    roomy(gpu);
  else if (which == "full_memory")
    full_memory(gpu);
  else
    return 2;
  Gpu::synchronize();
}
