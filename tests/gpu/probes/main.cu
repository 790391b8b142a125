// Questions to a real GPU that no document answers. `probes NAME` asks one, in a process of its
// own, since a hang or a crash is an answer too; `probes NAME PART` a part of it (in_child.h). It
// asserts nothing; findings.py makes the account.
#include <map>

#include "in_child.h"
#include "probe.h"

namespace probe {

float* scratch = nullptr;

namespace {

__global__ void multiply_adds(int steps, float a, float* out) {
  float x = static_cast<float>(threadIdx.x);
  for (int i = 0; i < steps; ++i) x = __fmaf_rn(x, a, a);
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

}  // namespace

void launch(int steps, cudaStream_t stream) {
  multiply_adds<<<1, 32, 0, stream>>>(steps, 0.5f, scratch);
}

double microseconds_per_launch(int launches, int steps) {
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const Stopwatch watch;
  for (int i = 0; i < launches; ++i) multiply_adds<<<132, 256>>>(steps, 0.5f, scratch);
  observe(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return watch.microseconds() / launches;
}

void machine() {
  cudaDeviceProp gpu{};
  observe(cudaGetDeviceProperties(&gpu, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  uint32_t cupti = 0;
  observe(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  observe(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  observe(cuptiGetVersion(&cupti), "cuptiGetVersion");
  say("GPU", gpu.name);
  say("compute capability", (std::to_string(gpu.major) + "." + std::to_string(gpu.minor)).c_str());
  say_count("CUDA of the driver", static_cast<uint64_t>(driver));
  say_count("CUDA runtime", static_cast<uint64_t>(runtime));
  say_count("CUPTI", cupti);
}

}  // namespace probe

int main(int count, char** arguments) {
  using namespace probe;
  const std::map<std::string, void (*)()> probes = {
      {"beside_capture", beside_capture},
      {"callback", callback},
      {"capture_first_launch", capture_first_launch},
      {"captured_nodes", captured_nodes},
      {"close_at_enter", close_at_enter},
      {"cost", cost},
      {"counters", counters},
      {"decode_without_stop", decode_without_stop},
      {"enable_and_disable", enable_and_disable},
      {"finalize_at_exit", finalize_at_exit},
      {"graph", graph},
      {"graph_alone", graph_alone},
      {"green_context", green_context},
      {"handed_registers", handed_registers},
      {"handles_given", handles_given},
      {"in_callback", in_callback},
      {"large_graph", large_graph},
      {"launch_kinds", launch_kinds},
      {"launch_limits", launch_limits},
      {"library_kernel", library_kernel},
      {"machine", machine},
      {"memory", memory},
      {"memory_held", memory_held},
      {"memory_in_window", memory_in_window},
      {"module_in_window", module_in_window},
      {"order", order},
      {"overlap", overlap},
      {"sixteen_threads", sixteen_threads},
      {"sparsity", sparsity},
      {"stop_at_exit", stop_at_exit},
      {"tensor_map", tensor_map},
      {"thread", thread},
      {"two_contexts", two_contexts},
      {"unlocked", unlocked},
      {"user_range", user_range},
      {"user_range_in_flight", user_range_in_flight},
      {"waiting_in_flight", waiting_in_flight},
  };
  const auto chosen = count == 2 || count == 3 ? probes.find(arguments[1]) : probes.end();
  if (chosen == probes.end()) {
    for (const auto& [name, probe] : probes) std::printf("%s\n", name.c_str());
    return 2;
  }
  if (count == 3) part = arguments[2];
  if (chosen->second != handles_given) {
    observe(cudaMalloc(&scratch, size_t{1} << 24), "cudaMalloc");
    if (scratch == nullptr) return 1;
  }
  chosen->second();
  return 0;
}
