// A green context beside the primary one: context_client CASE.
#include <string>

#include "client.h"

namespace {

using client::check;
using client::Gpu;

constexpr int kTimes = 15;

CUgreenCtx make_green(const Gpu& gpu) {
  CUdevResource all{}, part{};
  unsigned int groups = 1;
  check(cuDeviceGetDevResource(gpu.device, &all, CU_DEV_RESOURCE_TYPE_SM),
        "cuDeviceGetDevResource");
  check(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 16),
        "cuDevSmResourceSplitByCount");
  CUdevResourceDesc descriptor = nullptr;
  check(cuDevResourceGenerateDesc(&descriptor, &part, 1), "cuDevResourceGenerateDesc");
  CUgreenCtx green = nullptr;
  check(cuGreenCtxCreate(&green, descriptor, gpu.device, CU_GREEN_CTX_DEFAULT_STREAM),
        "cuGreenCtxCreate");
  return green;
}

// Streams for the green context are made for it. In turns, dot(5) is launched in both contexts and
// dot(9) in the green one only. With `alone` nothing but dot(9) is launched.
void green_stream(const Gpu& gpu, bool alone) {
  const CUgreenCtx green = make_green(gpu);
  CUstream stream = nullptr;
  check(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0),
        "cuGreenCtxStreamCreate");
  for (int i = 0; i < kTimes; ++i) {
    if (!alone) gpu.dot(5);
    if (!alone) gpu.dot(5, stream);
    gpu.dot(9, stream);
  }
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  check(cuGreenCtxDestroy(green), "cuGreenCtxDestroy");
}

// It is made current, and a stream there. The same launches; or `never_measured`: a collective is
// launched there, between those of dot(5) in the primary one.
void green_context(const Gpu& gpu, bool never_measured) {
  const CUgreenCtx green = make_green(gpu);
  CUcontext converted = nullptr;
  check(cuCtxFromGreenCtx(&converted, green), "cuCtxFromGreenCtx");
  check(cuCtxSetCurrent(converted), "cuCtxSetCurrent");
  CUstream stream = nullptr;
  check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (int i = 0; i < kTimes; ++i) {
    gpu.use();
    gpu.dot(5);
    check(cuCtxSetCurrent(converted), "cuCtxSetCurrent");
    if (never_measured) {
      gpu.all_reduce(32, stream);
    } else {
      gpu.dot(5, stream);
      gpu.dot(9, stream);
    }
  }
  gpu.use();
  check(cuStreamDestroy(stream), "cuStreamDestroy");
  check(cuGreenCtxDestroy(green), "cuGreenCtxDestroy");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const Gpu gpu(argv[0]);
  if (name == "green_stream")
    green_stream(gpu, false);
  else if (name == "green_stream_alone")
    green_stream(gpu, true);
  else if (name == "green_context")
    green_context(gpu, false);
  else if (name == "collective_in_green_context")
    green_context(gpu, true);
  else
    return 2;
  Gpu::synchronize();
  return 0;
}
