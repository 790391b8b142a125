// What else becomes a range: memory operations, failed launches and other calls between two kernels
// of one window.
#include <functional>
#include <utility>

#include "probe.h"

namespace probe {
namespace {

__global__ void says_nothing(int yes) {
  if (yes != 0) printf("a kernel that uses printf\n");
}
__global__ void empty() {}

}  // namespace

void memory_in_window() {
  constexpr size_t kMegabyte = size_t{1} << 20;
  char* device = reinterpret_cast<char*>(scratch);
  std::vector<char> pageable(kMegabyte);
  char* pinned = nullptr;
  observe(cudaMallocHost(&pinned, kMegabyte), "cudaMallocHost");
  cudaStream_t stream = nullptr;
  observe(cudaStreamCreate(&stream), "cudaStreamCreate");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  observe(cudaGraphCreate(&graph, 0), "cudaGraphCreate");
  observe(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");

  const std::pair<const char*, std::function<void()>> intruders[] = {
      {"nothing", [] {}},
      {"memset of 1 B", [&] { cudaMemsetAsync(device, 1, 1, stream); }},
      {"memset of 1 MB", [&] { cudaMemsetAsync(device, 1, kMegabyte, stream); }},
      {"memset 2D", [&] { cudaMemset2DAsync(device, 1024, 1, 100, 100, stream); }},
      {"copy device to device",
       [&] { cudaMemcpyAsync(device, device + kMegabyte, kMegabyte, cudaMemcpyDefault, stream); }},
      {"copy 2D device to device",
       [&] {
         cudaMemcpy2DAsync(device, 1024, device + kMegabyte, 1024, 100, 100, cudaMemcpyDefault,
                           stream);
       }},
      {"copy from pinned memory",
       [&] { cudaMemcpyAsync(device, pinned, kMegabyte, cudaMemcpyDefault, stream); }},
      {"copy from pageable memory",
       [&] { cudaMemcpyAsync(device, pageable.data(), kMegabyte, cudaMemcpyDefault, stream); }},
      {"cudaMallocAsync and cudaFreeAsync",
       [&] {
         void* memory = nullptr;
         if (cudaMallocAsync(&memory, kMegabyte, stream) == cudaSuccess)
           cudaFreeAsync(memory, stream);
       }},
      {"a kernel with printf", [&] { says_nothing<<<1, 1, 0, stream>>>(0); }},
      {"a launch that fails (4,096 threads)", [&] { empty<<<1, 4096, 0, stream>>>(); }},
      {"a launch of an empty graph", [&] { cudaGraphLaunch(executable, stream); }},
      {"an event", [&] {
         cudaEvent_t event = nullptr;
         cudaEventCreate(&event);
         cudaEventRecord(event, stream);
         cudaEventDestroy(event);
       }}};
  RangeWindows windows;
  if (!windows.enable()) return;
  for (const Metrics* metrics : {&kInstructions, &kHardware})
    for (const auto& [name, act] : intruders) {
      if (!windows.plan(*metrics) || !windows.open(16)) continue;
      launch(7, stream);
      act();
      launch(8, stream);
      const cudaError_t ended = cudaStreamSynchronize(stream);
      cudaGetLastError();
      const size_t ranges = windows.close();
      std::string seen = std::to_string(ranges) + " ranges:";
      for (size_t i = 0; i < ranges; ++i)
        seen += " " + std::to_string(static_cast<long long>(windows.values(i)[0]));
      if (ended != cudaSuccess) seen += std::string(", ") + cudaGetErrorName(ended);
      say(std::string("two kernels and between them ") + name + ", " + metrics->front(),
          seen.c_str());
    }
  windows.disable();
}

}  // namespace probe
