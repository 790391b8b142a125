// Devices, contexts, modules, memory, errors, look-up.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "gpu.h"

TEST_CASE("the device says that it is simulated and looks like its chip") {
  const Gpu gpu;
  char name[64];
  check(cuDeviceGetName(name, sizeof name, gpu.device));
  CHECK(std::string(name) == "simgpu GH100 (simulated)");
  int major = 0, minor = 0, sms = 0, version = 0, count = 0;
  check(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu.device));
  check(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, gpu.device));
  check(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, gpu.device));
  CHECK(major == 9);
  CHECK(minor == 0);
  CHECK(sms == 132);
  check(cuDriverGetVersion(&version));
  CHECK(version == 13000);
  check(cuDeviceGetCount(&count));
  CHECK(count == 1);
  CHECK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_MAX, gpu.device) ==
        CUDA_ERROR_INVALID_VALUE);
  CUdevice other;
  CHECK(cuDeviceGet(&other, 1) == CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("contexts nest per thread") {
  const Gpu gpu;
  CUcontext second = nullptr, current = nullptr, popped = nullptr;
  check(cuCtxCreate(&second, nullptr, 0, gpu.device));
  check(cuCtxGetCurrent(&current));
  CHECK(current == second);
  check(cuCtxPopCurrent(&popped));
  CHECK(popped == second);
  check(cuCtxGetCurrent(&current));
  CHECK(current == gpu.context);
  check(cuCtxPushCurrent(second));
  check(cuCtxDestroy(second));
  check(cuCtxGetCurrent(&current));
  CHECK(current == gpu.context);
  CHECK(cuCtxPushCurrent(second) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxDestroy(second) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("the primary context lives as long as it is retained") {
  check(cuInit(0));
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 0;
  int active = 1;
  check(cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK(active == 0);
  check(cuDevicePrimaryCtxRetain(&first, 0));
  check(cuDevicePrimaryCtxRetain(&second, 0));
  CHECK(first == second);
  check(cuDevicePrimaryCtxRelease(0));
  check(cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK(active == 1);
  CHECK(flags == 0);
  check(cuDevicePrimaryCtxRelease(0));
  check(cuDevicePrimaryCtxGetState(0, &flags, &active));
  CHECK(active == 0);
  CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(cuCtxSetCurrent(first) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("parameters are packed by CUDA's rules") {
  const Gpu gpu;
  const CUfunction f = gpu.function("mixed_params");
  // char, double, short, pointer, struct {char; double}, half, int: natural alignment, in order.
  const size_t expected[][2] = {{0, 1}, {8, 8}, {16, 2}, {24, 8}, {32, 16}, {48, 2}, {52, 4}};
  for (size_t i = 0; i < std::size(expected); ++i) {
    size_t offset = 0, bytes = 0;
    check(cuFuncGetParamInfo(f, i, &offset, &bytes));
    CHECK(offset == expected[i][0]);
    CHECK(bytes == expected[i][1]);
  }
  size_t offset = 0, bytes = 0;
  CHECK(cuFuncGetParamInfo(f, 7, &offset, &bytes) == CUDA_ERROR_INVALID_VALUE);

  struct Mixed {
    char tag;
    double value;
  };
  const Array<double> out(std::vector<double>(7));
  const uint16_t half_1_5 = 0x3e00;
  gpu.launch("mixed_params", 1, 1, 0, 'A', 2.25, short{-3}, out.address(), Mixed{'B', -0.5},
             half_1_5, 42);
  const std::vector<double> values{65, 2.25, -3, 66, -0.5, 1.5, 42};
  CHECK(out.read() == values);

  SECTION("and may come as one buffer") {
    struct {
      char c = 'A';
      double d = 2.25;
      short s = -3;
      CUdeviceptr p;
      Mixed m{'B', -0.5};
      uint16_t h = 0x3e00;
      int n = 42;
    } packed;
    const Array<double> again(std::vector<double>(7));
    packed.p = again.address();
    size_t packed_bytes = sizeof packed;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &packed_bytes, CU_LAUNCH_PARAM_END};
    check(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
    CHECK(again.read() == values);
    packed_bytes = 10;
    CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra) ==
          CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_CASE("launches that cannot be are refused as CUDA does") {
  const Gpu gpu;
  const CUfunction f = gpu.function("nothing");
  const auto launch = [&](unsigned grid, unsigned bx, unsigned by, unsigned bz, unsigned shared) {
    return cuLaunchKernel(f, grid, 1, 1, bx, by, bz, shared, nullptr, nullptr, nullptr);
  };
  CHECK(launch(1, 1, 1, 1, 0) == CUDA_SUCCESS);
  CHECK(launch(0, 1, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 0, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1025, 1, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 32, 33, 1, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 65, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(1, 1, 1, 1, 48 * 1024) == CUDA_SUCCESS);
  CHECK(launch(1, 1, 1, 1, 48 * 1024 + 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 228 * 1024) ==
        CUDA_ERROR_INVALID_VALUE);
  check(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024));
  CHECK(launch(1, 1, 1, 1, 100 * 1024) == CUDA_SUCCESS);
  CHECK(cuLaunchKernel(gpu.function("add_one"), 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);  // it has a parameter
  int not_a_function = 0;
  CHECK(cuLaunchKernel(reinterpret_cast<CUfunction>(&not_a_function), 1, 1, 1, 1, 1, 1, 0, nullptr,
                       nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, reinterpret_cast<CUstream>(&not_a_function), nullptr,
                       nullptr) == CUDA_ERROR_INVALID_HANDLE);
  // 2048 threads per SM, 132 SMs: 1024 threads fit twice on each.
  CHECK(cuLaunchCooperativeKernel(f, 264, 1, 1, 1024, 1, 1, 0, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(cuLaunchCooperativeKernel(f, 265, 1, 1, 1024, 1, 1, 0, nullptr, nullptr) ==
        CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

TEST_CASE("cluster launches report their cluster") {
  const Gpu gpu;
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {2, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = 4;
  config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  Recorder recorder;
  check(cuLaunchKernelEx(&config, gpu.function("nothing"), nullptr, nullptr));
  REQUIRE(recorder.runs.size() == 1);
  CHECK(recorder.runs[0].cluster[0] == 2);
  CHECK(recorder.runs[0].grid[0] == 4);
  config.gridDimX = 5;
  CHECK(cuLaunchKernelEx(&config, gpu.function("nothing"), nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  config.gridDimX = 16;
  attribute.value.clusterDim = {16, 1, 1};
  CHECK(cuLaunchKernelEx(&config, gpu.function("nothing"), nullptr, nullptr) ==
        CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

TEST_CASE("shared memory begins as NaNs in every block") {
  const Gpu gpu;
  const Array<unsigned> out(std::vector<unsigned>(3 * 64));
  gpu.launch("finds_shared", 3, 64, 64 * 4, out.address());
  CHECK(out.read() == std::vector<unsigned>(3 * 64, 0xffff'ffff));
}

namespace {
std::vector<char> file_bytes(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  bytes.push_back('\0');  // where PTX ends
  return bytes;
}
}  // namespace

TEST_CASE("images are told apart") {
  const Gpu gpu;
  CUmodule module = nullptr;
  CHECK(cuModuleLoad(&module, "/nonexistent.ptx") == CUDA_ERROR_FILE_NOT_FOUND);
  const char garbage[256] = "no image at all";
  CHECK(cuModuleLoadData(&module, garbage) == CUDA_ERROR_INVALID_IMAGE);
  const char ptx[] = "// made by a compiler\n\n.version 8.0\n.target sm_80\n.frob 1\n";
  CHECK(cuModuleLoadData(&module, ptx) == CUDA_ERROR_INVALID_PTX);
  std::vector<char> elf = file_bytes(LIBCUDA);
  REQUIRE(elf.size() > 100);
  elf[18] = static_cast<char>(190);  // e_machine of a cubin
  CHECK(cuModuleLoadData(&module, elf.data()) == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(cuModuleLoad(&module, LIBCUDA) ==
        CUDA_ERROR_INVALID_IMAGE);  // a shared object, but without kernels
  CUfunction f = nullptr;
  CHECK(cuModuleGetFunction(&f, gpu.module, "no_such_kernel") == CUDA_ERROR_NOT_FOUND);
}

TEST_CASE("modules load from memory and load again after unloading") {
  const Gpu gpu;
  const std::vector<char> image = file_bytes(TEST_KERNELS);
  Recorder recorder;
  for (int i = 0; i < 20; ++i) {
    CUmodule module = nullptr;
    check(cuModuleLoadData(&module, image.data()));
    CHECK(recorder.module_bytes > 0);  // a cubin
    CUfunction f = nullptr;
    check(cuModuleGetFunction(&f, module, "add_one"));
    const Array<int> x({i});
    check(Gpu::try_launch(f, 1, 1, 0, nullptr, x.address()));
    CHECK(x.read()[0] == i + 1);
    check(cuModuleUnload(module));
    CHECK(Gpu::try_launch(f, 1, 1, 0, nullptr, x.address()) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuModuleUnload(module) == CUDA_ERROR_INVALID_HANDLE);
  }
  CHECK(recorder.runs.size() == 20);
  CHECK(std::string(recorder.runs[0].symbol) == "add_one");  // outlives its module
}

TEST_CASE("libraries give kernels that launch in any context") {
  const Gpu gpu;
  CUlibrary library = nullptr;
  check(cuLibraryLoadFromFile(&library, TEST_KERNELS, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  check(cuLibraryGetKernel(&kernel, library, "add_one"));
  CHECK(cuLibraryGetKernel(&kernel, library, "no_such") == CUDA_ERROR_NOT_FOUND);
  const Array<int> x({1});
  CUfunction f = nullptr;
  check(cuKernelGetFunction(&f, kernel));
  check(Gpu::try_launch(f, 1, 1, 0, nullptr, x.address()));
  check(Gpu::try_launch(reinterpret_cast<CUfunction>(kernel), 1, 1, 0, nullptr, x.address()));
  CHECK(x.read()[0] == 3);
  const char* name = nullptr;
  check(cuFuncGetName(&name, f));
  CHECK(std::string(name) == "add_one");
  CUmodule module = nullptr;
  check(cuFuncGetModule(&module, f));
  CHECK(module != gpu.module);
  check(cuLibraryUnload(library));
  CHECK(cuKernelGetFunction(&f, kernel) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("questions about functions and kernels take no handle of the other kind", "[fork]") {
  const Gpu gpu;
  CUlibrary library = nullptr;
  check(cuLibraryLoadFromFile(&library, TEST_KERNELS, nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  check(cuLibraryGetKernel(&kernel, library, "add_one"));
  const auto cast = reinterpret_cast<CUfunction>(kernel);
  const CUfunction function = gpu.function("add_one");
  // The signal that ends a child which asks.
  const auto ends = [](auto ask) {
    const pid_t child = fork();
    if (child == 0) {
      close(STDERR_FILENO);
      ask();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  };
  int value = 0;
  size_t offset = 0;
  const char* name = nullptr;
  CUmodule module = nullptr;
  CUfunction found = nullptr;
  const auto attribute = CU_FUNC_ATTRIBUTE_NUM_REGS;
  for (const CUfunction asked : {function, cast}) {
    const int expected = asked == cast ? SIGABRT : 0;
    CHECK(ends([&] { cuFuncGetAttribute(&value, attribute, asked); }) == expected);
    CHECK(ends([&] { cuFuncGetParamInfo(asked, 0, &offset, nullptr); }) == expected);
    CHECK(ends([&] { cuFuncGetName(&name, asked); }) == expected);
    CHECK(ends([&] { cuFuncGetModule(&module, asked); }) == expected);
    CHECK(ends([&] { cuKernelGetFunction(&found, reinterpret_cast<CUkernel>(asked)); }) ==
          SIGABRT - expected);
  }
  unsigned int count = 0;
  check(cuModuleGetFunctionCount(&count, gpu.module));
  std::vector<CUfunction> functions(count);
  check(cuModuleEnumerateFunctions(functions.data(), count, gpu.module));
  CHECK(std::count(functions.begin(), functions.end(), function) == 1);
}

TEST_CASE("device memory is handed out, measured and checked") {
  const Gpu gpu;
  size_t free_before = 0, free_now = 0, total = 0;
  check(cuMemGetInfo(&free_before, &total));
  CHECK(total == size_t{80} << 30);
  CUdeviceptr p = 0, q = 0;
  check(cuMemAlloc(&p, 1000));
  check(cuMemAlloc(&q, 1));
  CHECK(p % 256 == 0);
  CHECK(q % 256 == 0);
  check(cuMemGetInfo(&free_now, &total));
  CHECK(free_now < free_before);
  CUdeviceptr base = 0;
  check(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 999));
  CHECK(base == p);
  char host[1001] = {};
  CHECK(cuMemcpyHtoD(p, host, 1001) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoD(p + 1, host, 1000) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyHtoD(0, host, 10) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemFree(p + 1) == CUDA_ERROR_INVALID_VALUE);
  check(cuMemFree(p));
  CHECK(cuMemFree(p) == CUDA_ERROR_INVALID_VALUE);
  check(cuMemFree(q));
  check(cuMemGetInfo(&free_now, &total));
  CHECK(free_now == free_before);
  CHECK(cuMemAlloc(&p, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(&p, total + 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&p, ~size_t{0}) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("copies and fills of every direction") {
  const Gpu gpu;
  const Array<uint32_t> a({1, 2, 3, 4}), b({0, 0, 0, 0});
  Recorder recorder;
  check(cuMemcpyDtoD(b.address() + 4, a.address(), 12));
  CHECK(b.read() == std::vector<uint32_t>{0, 1, 2, 3});
  check(cuMemsetD32(b.address(), 7, 2));
  check(cuMemsetD8(b.address() + 12, 0xab, 2));
  CHECK(b.read() == std::vector<uint32_t>{7, 7, 2, 0x0000abab});
  CHECK(cuMemsetD32(b.address() + 1, 7, 1) == CUDA_ERROR_INVALID_VALUE);
  check(cuMemcpyAsync(a.address(), b.address(), 16, nullptr));
  CHECK(a.read() == b.read());
  void* pinned = nullptr;
  check(cuMemHostAlloc(&pinned, 16, 0));
  check(cuMemcpyDtoHAsync(pinned, a.address(), 16, nullptr));
  check(cuCtxSynchronize());
  CHECK(static_cast<uint32_t*>(pinned)[3] == 0x0000abab);
  unsigned type = 0;
  check(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                              reinterpret_cast<CUdeviceptr>(pinned)));
  CHECK(type == CU_MEMORYTYPE_HOST);
  check(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a.address()));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  check(cuMemFreeHost(pinned));
  // By CUpti_ActivityMemcpyKind and CUpti_ActivityMemoryKind: reads are to pageable memory.
  constexpr uint8_t kFill = 0, kDeviceToHost = 2, kWithinDevice = 8, kPageable = 1, kPinned = 2;
  REQUIRE(recorder.copies.size() == 9);
  CHECK(recorder.copies[0].bytes == 12);
  CHECK(recorder.copies[0].kind == kWithinDevice);
  CHECK(recorder.copies[1].kind == kDeviceToHost);
  CHECK(recorder.copies[1].to == kPageable);
  CHECK(recorder.copies[2].kind == kFill);
  CHECK(recorder.copies[2].value == 7);
  CHECK(recorder.copies[2].bytes == 8);
  CHECK(recorder.copies[8].kind == kDeviceToHost);
  CHECK(recorder.copies[8].to == kPinned);
}

TEST_CASE("functions are found by name and version") {
  void* f = nullptr;
  CUdriverProcAddressQueryResult status{};
  const auto find = [&](const char* name, int version, cuuint64_t flags) {
    f = nullptr;
    return cuGetProcAddress(name, &f, version, flags, &status);
  };
  check(find("cuMemAlloc", 12000, 0));
  CHECK(f == reinterpret_cast<void*>(&cuMemAlloc));  // which the header makes cuMemAlloc_v2
  void* legacy = nullptr;
  check(cuGetProcAddress("cuLaunchKernel", &legacy, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                         &status));
  check(find("cuLaunchKernel", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  CHECK(f != nullptr);
  CHECK(f != legacy);
  check(find("cuCtxCreate", 13000, 0));
  CHECK(f == reinterpret_cast<void*>(&cuCtxCreate));  // cuCtxCreate_v4
  void* newest = f;
  check(find("cuCtxCreate", 11000, 0));
  CHECK(f != nullptr);
  CHECK(f != newest);
  check(find("cuLaunchKernelEx", 11000, 0));
  CHECK(f == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  check(find("cuNoSuchThing", 13000, 0));
  CHECK(f == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

TEST_CASE("errors have names") {
  CHECK(error_name(CUDA_ERROR_OUT_OF_MEMORY) == "CUDA_ERROR_OUT_OF_MEMORY");
  const char* text = nullptr;
  check(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
  CHECK(std::string(text) == "invalid argument");
  CHECK(cuGetErrorName(static_cast<CUresult>(98), &text) == CUDA_ERROR_INVALID_VALUE);
  CHECK(text == nullptr);
}
