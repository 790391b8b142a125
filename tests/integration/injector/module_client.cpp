// Kernels of one name in several modules, and parameters that never repeat: module_client CASE.
// dot(k) is 2k FLOP in client_kernels.simgpu and 3k in other_kernels.simgpu.
#include <string>

#include "client.h"

namespace {

using client::check;
using client::Gpu;

constexpr int kTimes = 10, kK = 5;

std::string other_path(const Gpu& gpu) {
  return gpu.module_path.substr(0, gpu.module_path.rfind('/')) + "/other_kernels.simgpu";
}

CUfunction function_in(CUmodule module, const char* name) {
  CUfunction function = nullptr;
  check(cuModuleGetFunction(&function, module, name), name);
  return function;
}

CUmodule load_other(const Gpu& gpu) {
  CUmodule module = nullptr;
  check(cuModuleLoad(&module, other_path(gpu).c_str()), "cuModuleLoad");
  return module;
}

void launch_dot(const Gpu& gpu, CUfunction dot) {
  int k = kK;
  CUdeviceptr x = gpu.x, y = gpu.y;
  void* parameters[] = {&k, &x, &y};
  check(cuLaunchKernel(dot, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr), "dot");
}

// Both alive, in turns.
void side_by_side(Gpu& gpu) {
  const CUmodule other = load_other(gpu);
  for (int i = 0; i < kTimes; ++i) {
    launch_dot(gpu, gpu.function("dot"));
    launch_dot(gpu, function_in(other, "dot"));
  }
}

// One after the other, again and again; handles come back.
void reloaded(Gpu& gpu) {
  for (int i = 0; i < kTimes; ++i) {
    gpu.load();
    launch_dot(gpu, gpu.function("dot"));
    Gpu::synchronize();
    gpu.unload();
    const CUmodule other = load_other(gpu);
    launch_dot(gpu, function_in(other, "dot"));
    Gpu::synchronize();
    check(cuModuleUnload(other), "cuModuleUnload");
  }
}

// Kernels of libraries, whose modules the driver loads at the first launch.
void libraries(Gpu& gpu) {
  for (const std::string& path : {gpu.module_path, other_path(gpu)}) {
    CUlibrary library = nullptr;
    CUkernel kernel = nullptr;
    check(cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cuLibraryLoadFromFile");
    check(cuLibraryGetKernel(&kernel, library, "dot"), "cuLibraryGetKernel");
    for (int i = 0; i < kTimes; ++i) launch_dot(gpu, reinterpret_cast<CUfunction>(kernel));
  }
}

// A step counter and a random seed: 500 launches of 8 FLOP, no two with the same parameters.
void never_repeating(Gpu& gpu) {
  const CUfunction dropout = function_in(load_other(gpu), "dropout");
  unsigned long long seed = 88'172'645'463'325'252ULL;
  for (int step = 0; step < 500; ++step) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    int n = 8;
    CUdeviceptr x = gpu.x;
    void* parameters[] = {&n, &seed, &step, &x};
    check(cuLaunchKernel(dropout, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), "dropout");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  Gpu gpu(argv[0]);
  if (name == "side_by_side")
    side_by_side(gpu);
  else if (name == "reloaded")
    reloaded(gpu);
  else if (name == "libraries")
    libraries(gpu);
  else if (name == "never_repeating")
    never_repeating(gpu);
  else
    return 2;
  Gpu::synchronize();
  return 0;
}
