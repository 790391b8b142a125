// What the environment changes. Each case needs a process of its own, started by CTest with the
// variable set.
#include <cstdlib>

#include "gpu.h"

TEST_CASE("no device", "[.no_device]") {
  CHECK(cuInit(0) == CUDA_ERROR_NO_DEVICE);
  int count = 0;
  CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
}

// As CUDA documents of CUDA_ERROR_LAUNCH_FAILED: it comes from a later call, and the context cannot
// be used any more.
TEST_CASE("the third kernel fails, and all that needs its context from then on",
          "[.launch_failure]") {
  const Gpu gpu;
  const CUfunction f = gpu.function("nothing");
  CUdeviceptr memory = 0;
  CUevent event = nullptr;
  for (int i = 0; i < 3; ++i) CHECK(Gpu::try_launch(f, 1, 1, 0, nullptr) == CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) {
    CHECK(cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(Gpu::try_launch(f, 1, 1, 0, nullptr) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(cuMemAlloc(&memory, 4) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_LAUNCH_FAILED);
  }
  CUcontext current = nullptr;
  CHECK(cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current != nullptr);
}

TEST_CASE("memory runs out", "[.out_of_memory]") {
  const Gpu gpu;
  CUdeviceptr p = 0;
  CHECK(cuMemAlloc(&p, 4) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&p, 4) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("two devices of another chip work side by side", "[.two_devices]") {
  const Gpu first;
  int count = 0;
  check(cuDeviceGetCount(&count));
  REQUIRE(count == 2);
  char name[64];
  check(cuDeviceGetName(name, sizeof name, 1));
  CHECK(std::string(name) == "simgpu GA100 (simulated)");
  CUuuid a{}, b{};
  check(cuDeviceGetUuid(&a, 0));
  check(cuDeviceGetUuid(&b, 1));
  CHECK(a.bytes[15] != b.bytes[15]);
  const Array<int> x({3});
  CUcontext second = nullptr;
  check(cuCtxCreate(&second, nullptr, 0, 1));
  const Array<int> y({0});
  check(cuMemcpyDtoD(y.address(), x.address(), 4));
  CHECK(y.read()[0] == 3);
  // A function belongs to the context it was loaded in.
  CHECK(Gpu::try_launch(first.function("add_one"), 1, 1, 0, nullptr, y.address()) ==
        CUDA_ERROR_INVALID_HANDLE);
  CUmodule module = nullptr;
  CUfunction f = nullptr;
  check(cuModuleLoad(&module, TEST_KERNELS));
  check(cuModuleGetFunction(&f, module, "add_one"));
  Recorder recorder;
  check(Gpu::try_launch(f, 1, 1, 0, nullptr, y.address()));
  CHECK(recorder.runs.at(0).device_id == 1);
  CHECK(y.read()[0] == 4);
}

TEST_CASE("values that make no sense are replaced by the defaults", "[.nonsense]") {
  const Gpu gpu;
  int count = 0;
  check(cuDeviceGetCount(&count));
  CHECK(count == 1);
  char name[64];
  check(cuDeviceGetName(name, sizeof name, 0));
  CHECK(std::string(name) == "simgpu GH100 (simulated)");
}

TEST_CASE("the injection library is loaded once, within cuInit", "[.injection]") {
  REQUIRE(std::getenv("SIMGPU_TEST_INJECTED") == nullptr);
  check(cuInit(0));
  check(cuInit(0));
  const char* injected = std::getenv("SIMGPU_TEST_INJECTED");
  REQUIRE(injected != nullptr);
  CHECK(std::string(injected) == "1 device");  // the library could use the driver already
}
