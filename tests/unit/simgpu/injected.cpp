// A library for CUDA_INJECTION64_PATH: says, through the environment, that it was called and what
// it saw.
#include <cuda.h>

#include <cstdlib>
#include <string>

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  int count = 0;
  const bool usable = cuInit(0) == CUDA_SUCCESS && cuDeviceGetCount(&count) == CUDA_SUCCESS;
  const char* before = std::getenv("SIMGPU_TEST_INJECTED");
  const std::string text = before != nullptr ? "called twice"
                           : usable          ? std::to_string(count) + " device"
                                             : "unusable";
  setenv("SIMGPU_TEST_INJECTED", text.c_str(), 1);
  return 1;
}
