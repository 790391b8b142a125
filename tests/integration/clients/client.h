// A few lines around the driver API for the test clients. They end the program on any error.
#pragma once
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace client {

inline void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = "?";
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "client: %s: %s\n", what, name);
  std::exit(1);
}

// Device 0, its primary context and the module beside the program.
struct Gpu {
  explicit Gpu(const char* argv0, int ordinal = 0) {
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, ordinal), "cuDeviceGet");
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    use();
    const std::string program = argv0;
    module_path = program.substr(0, program.rfind('/')) + "/client_kernels.ptx";
    load();
    check(cuMemAlloc(&x, kBytes), "cuMemAlloc");
    check(cuMemAlloc(&y, kBytes), "cuMemAlloc");
    check(cuMemsetD8(x, 0, kBytes), "cuMemsetD8");
    check(cuMemsetD8(y, 0, kBytes), "cuMemsetD8");
  }
  void use() const { check(cuCtxSetCurrent(context), "cuCtxSetCurrent"); }
  void load() { check(cuModuleLoad(&module, module_path.c_str()), "cuModuleLoad"); }
  void unload() { check(cuModuleUnload(module), "cuModuleUnload"); }
  CUfunction function(const char* name) const {
    CUfunction f = nullptr;
    check(cuModuleGetFunction(&f, module, name), name);
    return f;
  }

  // 2n FLOP.
  CUresult try_axpy(int n, CUstream stream = nullptr, float a = 2.0F) const {
    void* parameters[] = {&n, &a, const_cast<CUdeviceptr*>(&x), const_cast<CUdeviceptr*>(&y)};
    return cuLaunchKernel(function("axpy"), static_cast<unsigned>((n + 31) / 32), 1, 1, 32, 1, 1, 0,
                          stream, parameters, nullptr);
  }
  void axpy(int n, CUstream stream = nullptr, float a = 2.0F) const {
    check(try_axpy(n, stream, a), "axpy");
  }
  // 2k FLOP, always the same grid.
  void dot(int k, CUstream stream = nullptr) const {
    void* parameters[] = {&k, const_cast<CUdeviceptr*>(&x), const_cast<CUdeviceptr*>(&y)};
    check(cuLaunchKernel(function("dot"), 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr), "dot");
  }
  // Named as a collective: it is never measured. n FLOP.
  void all_reduce(int n, CUstream stream = nullptr) const {
    void* parameters[] = {&n, const_cast<CUdeviceptr*>(&y)};
    check(cuLaunchKernel(function("ncclDevKernel_AllReduce_Sum_f32_RING_LL"), 1, 1, 1, 32, 1, 1, 0,
                         stream, parameters, nullptr),
          "all_reduce");
  }
  static void synchronize() { check(cuCtxSynchronize(), "cuCtxSynchronize"); }

  static constexpr size_t kBytes =
      1 << 18;  // under kernel replay all of it is copied several times a launch
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUdeviceptr x = 0, y = 0;
  std::string module_path;
};

}  // namespace client
