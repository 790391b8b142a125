// Kernels of one name in several modules, and parameters that never repeat: module_client CASE.
// dot(k) is 2k FLOP in client_kernels.ptx and 3k in other_kernels.ptx.
#include <string>
#include <vector>

#include "client.h"

namespace {

using client::check;
using client::Gpu;

constexpr int kTimes = 10, kK = 5;

std::string other_path(const Gpu& gpu) {
  return gpu.module_path.substr(0, gpu.module_path.rfind('/')) + "/other_kernels.ptx";
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

CUlibrary load_library(const std::string& path) {
  CUlibrary library = nullptr;
  check(cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadFromFile");
  return library;
}

CUkernel kernel_in(CUlibrary library, const char* name) {
  CUkernel kernel = nullptr;
  check(cuLibraryGetKernel(&kernel, library, name), name);
  return kernel;
}

CUfunction cast(CUkernel kernel) { return reinterpret_cast<CUfunction>(kernel); }

// Kernels of libraries, whose modules the driver loads at the first launch.
void libraries(Gpu& gpu) {
  for (const std::string& path : {gpu.module_path, other_path(gpu)}) {
    const CUkernel dot = kernel_in(load_library(path), "dot");
    for (int i = 0; i < kTimes; ++i) launch_dot(gpu, cast(dot));
  }
}

void launch_ten(CUfunction ten) {
  check(cuLaunchKernel(ten, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), "ten");
}

// A kernel without parameters, by a handle of each kind: 20 FLOP each.
void without_parameters(Gpu& gpu) {
  const CUfunction function = function_in(load_other(gpu), "ten");
  const CUkernel kernel = kernel_in(load_library(other_path(gpu)), "ten");
  for (int i = 0; i < kTimes; ++i) {
    launch_ten(function);
    launch_ten(cast(kernel));
  }
}

bool is_ten(CUfunction function) {
  const char* name = nullptr;
  check(cuFuncGetName(&name, function), "cuFuncGetName");
  return std::string(name) == "ten";
}

// Handles that come many in one call; launches by the module's function, by the library's kernel
// and by the function of that kernel.
void enumerated(Gpu& gpu) {
  const CUmodule module = load_other(gpu);
  const CUlibrary library = load_library(other_path(gpu));
  unsigned int count = 0, kernel_count = 0;
  check(cuModuleGetFunctionCount(&count, module), "cuModuleGetFunctionCount");
  check(cuLibraryGetKernelCount(&kernel_count, library), "cuLibraryGetKernelCount");
  std::vector<CUfunction> functions(count);
  std::vector<CUkernel> kernels(kernel_count);
  check(cuModuleEnumerateFunctions(functions.data(), count, module), "cuModuleEnumerateFunctions");
  check(cuLibraryEnumerateKernels(kernels.data(), kernel_count, library),
        "cuLibraryEnumerateKernels");
  std::vector<CUfunction> ten;
  for (const CUfunction function : functions)
    if (is_ten(function)) ten.push_back(function);
  for (const CUkernel kernel : kernels) {
    CUfunction function = nullptr;
    check(cuKernelGetFunction(&function, kernel), "cuKernelGetFunction");
    if (is_ten(function)) ten.insert(ten.end(), {function, cast(kernel)});
  }
  for (const CUfunction handle : ten)
    for (int i = 0; i < kTimes; ++i) launch_ten(handle);
}

CUDA_KERNEL_NODE_PARAMS one_thread() {
  CUDA_KERNEL_NODE_PARAMS node{};
  node.gridDimX = node.gridDimY = node.gridDimZ = 1;
  node.blockDimX = node.blockDimY = node.blockDimZ = 1;
  return node;
}

// A graph of nodes with a CUkernel: cast, as such, and as it is read back from a node. Beside it,
// launches that tell its count.
void in_graphs(Gpu& gpu) {
  const CUkernel ten = kernel_in(load_library(other_path(gpu)), "ten");
  for (int i = 0; i < kTimes; ++i) launch_ten(cast(ten));
  CUgraph graph = nullptr;
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUDA_KERNEL_NODE_PARAMS by_cast = one_thread(), by_kernel = one_thread(), read_back{};
  by_cast.func = cast(ten);
  by_kernel.kern = ten;
  CUgraphNode node = nullptr;
  check(cuGraphAddKernelNode(&node, graph, nullptr, 0, &by_cast), "cuGraphAddKernelNode");
  check(cuGraphKernelNodeGetParams(node, &read_back), "cuGraphKernelNodeGetParams");
  check(cuGraphAddKernelNode(&node, graph, nullptr, 0, &by_kernel), "cuGraphAddKernelNode");
  check(cuGraphAddKernelNode(&node, graph, nullptr, 0, &read_back), "cuGraphAddKernelNode");
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  for (int i = 0; i < kTimes; ++i) check(cuGraphLaunch(exec, nullptr), "cuGraphLaunch");
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
  else if (name == "without_parameters")
    without_parameters(gpu);
  else if (name == "enumerated")
    enumerated(gpu);
  else if (name == "in_graphs")
    in_graphs(gpu);
  else if (name == "never_repeating")
    never_repeating(gpu);
  else
    return 2;
  Gpu::synchronize();
  return 0;
}
