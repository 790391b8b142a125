// What a window holds of launches with attributes: clusters of blocks, and kernels that begin
// before the one ahead of them has ended.
#include "probe.h"

namespace probe {
namespace {

__global__ void counted(int steps, float a, float* out) {
  float x = static_cast<float>(threadIdx.x);
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
  for (int i = 0; i < steps; ++i) x = __fmaf_rn(x, a, a);
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

cudaLaunchAttribute cluster_of(unsigned blocks) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  return attribute;
}
cudaLaunchAttribute programmatic() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

void launch_with(cudaLaunchAttribute attribute, cudaStream_t stream, int steps) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(4);
  config.blockDim = dim3(32);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  observe(cudaLaunchKernelEx(&config, counted, steps, 0.5f, scratch), "cudaLaunchKernelEx");
}

}  // namespace

void launch_kinds() {
  cudaStream_t stream = nullptr;
  observe(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  RangeWindows windows;
  if (!windows.enable()) return;
  const std::pair<const char*, cudaLaunchAttribute> kinds[] = {
      {"clusters of 2 blocks", cluster_of(2)}, {"programmatic launches", programmatic()}};
  for (const Metrics* metrics : {&kInstructions, &kHardware})
    for (const auto& [name, attribute] : kinds) {
      if (!windows.plan(*metrics) || !windows.open(16)) continue;
      for (const int steps : {10, 20, 30}) launch_with(attribute, stream, steps);
      observe(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      const size_t ranges = windows.close();
      const std::string what =
          std::string(name) + " of 10, 20, 30 steps in 128 threads, " + metrics->front();
      say_count(what + ": ranges", ranges);
      say(what + ": values", windows.first_values(ranges).c_str());
    }
  windows.disable();
}

}  // namespace probe
