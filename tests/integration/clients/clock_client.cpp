// A training loop of known times: clock_client PTX STEPS SLEEP_MS [QUERIES]. Each step asks so many
// times, in the range `data`, whether the device is idle, copies a batch to the device, launches
// two kernels, works on the host for so many milliseconds, half of them asleep, launches a third
// kernel, waits, and copies a result back.
#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "client.h"

namespace {

using client::check;
using std::chrono::steady_clock;

constexpr int kBig = 1 << 20, kSmall = 1 << 10;

void work_for(std::chrono::milliseconds time) {
  std::this_thread::sleep_for(time / 2);
  const auto end = steady_clock::now() + time / 2;
  while (steady_clock::now() < end) continue;
}

void saxpy(CUfunction function, int n, CUdeviceptr x, CUdeviceptr y) {
  float a = 2;
  void* parameters[] = {&n, &a, &x, &y};
  check(cuLaunchKernel(function, static_cast<unsigned>(n / 256), 1, 1, 256, 1, 1, 0, nullptr,
                       parameters, nullptr),
        "saxpy");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const int queries = argc == 5 ? std::stoi(argv[4]) : 0;
  const std::chrono::milliseconds host(std::stoi(argv[3]));
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  check(cuInit(0), "cuInit");
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuModuleLoad(&module, argv[1]), "cuModuleLoad");
  check(cuModuleGetFunction(&function, module, "saxpy"), "saxpy");
  CUdeviceptr x = 0, y = 0;
  std::vector<float> batch(kBig);
  check(cuMemAlloc(&x, kBig * sizeof(float)), "cuMemAlloc");
  check(cuMemAlloc(&y, kBig * sizeof(float)), "cuMemAlloc");
  for (int step = 0; step < std::stoi(argv[2]); ++step) {
    nvtxRangePushA("step");
    nvtxRangePushA("data");
    for (int query = 0; query < queries; ++query) cuStreamQuery(nullptr);
    nvtxRangePop();
    check(cuMemcpyHtoD(x, batch.data(), kBig * sizeof(float)), "cuMemcpyHtoD");
    saxpy(function, kBig, x, y);
    saxpy(function, kSmall, x, y);
    work_for(host);
    saxpy(function, kSmall, x, y);
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    check(cuMemcpyDtoH(batch.data(), y, kSmall * sizeof(float)), "cuMemcpyDtoH");
    nvtxRangePop();
  }
  check(cuMemFree(x), "cuMemFree");
  check(cuMemFree(y), "cuMemFree");
}
