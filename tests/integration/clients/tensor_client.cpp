// Matrix instructions of every kind: tensor_client PTX LAUNCHES KERNEL...
// The module is that of tests/unit/simgpu/ptx/hopper.cu. The kernels run in turn, each so often, on
// zeros.
#include <cstdint>
#include <string_view>

#include "client.h"

using client::check;

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuModuleLoad(&module, argv[1]), "cuModuleLoad");
  CUdeviceptr memory = 0;
  constexpr size_t kBytes = 1 << 18;
  check(cuMemAlloc(&memory, kBytes), "cuMemAlloc");
  check(cuMemsetD8(memory, 0, kBytes), "cuMemsetD8");
  void* of_a_warp[] = {&memory, &memory, &memory, &memory};
  unsigned units = 0;
  uint64_t descriptor = 0;
  int add = 0;
  void* of_a_group[] = {&memory, &units, &descriptor, &descriptor, &add, &memory};
  for (int launch = 0; launch < std::atoi(argv[2]); ++launch)
    for (int kernel = 3; kernel < argc; ++kernel) {
      const bool group = std::string_view(argv[kernel]).substr(0, 5) == "wgmma";
      CUfunction function = nullptr;
      check(cuModuleGetFunction(&function, module, argv[kernel]), argv[kernel]);
      const unsigned group_threads = std::string_view(argv[kernel]) == "wgmma_large" ? 384 : 128;
      check(cuLaunchKernel(function, 1, 1, 1, group ? group_threads : 32, 1, 1, group ? 1 << 14 : 0,
                           nullptr, group ? of_a_group : of_a_warp, nullptr),
            argv[kernel]);
    }
  check(cuCtxSynchronize(), "cuCtxSynchronize");
}
