// Records what the trainer asks of the simulated driver, what then runs, and under which NVTX
// ranges.
#pragma once
#include <simgpu/hooks.h>

#include <array>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

struct Operations {
  uint64_t add = 0, mul = 0, fma = 0;
  bool operator==(const Operations&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Operations& operations);

// One cuLaunchKernel or cuGraphLaunch, as the calling thread made it.
struct LaunchCall {
  std::string call, kernel;  // no kernel for a graph
  std::string thread;        // its name
  std::string path;          // its open NVTX ranges, "step/forward/layer:fc1"
};

// One execution of a kernel.
struct KernelExecution {
  std::string kernel;
  Operations operations;
  std::array<unsigned, 4> shape;  // grid x and y, block x and y
  uint32_t stream_id, graph_id;   // graph_id is 0 outside a graph
};

// Records from construction to destruction. One at a time.
class LaunchRecorder {
 public:
  LaunchRecorder();
  ~LaunchRecorder();
  LaunchRecorder(const LaunchRecorder&) = delete;
  LaunchRecorder& operator=(const LaunchRecorder&) = delete;

  std::vector<LaunchCall> calls() const;
  std::vector<KernelExecution> executions() const;

 private:
  void add(const simgpu::ApiCall& call);
  void add(const simgpu::KernelRun& run);

  const simgpu::Driver* driver_ = nullptr;
  simgpu::Observer observer_{};
  mutable std::mutex mutex_;
  std::vector<LaunchCall> calls_;
  std::vector<KernelExecution> executions_;
};

// The calling thread's open ranges joined by '/', from an NVTX tool linked into the program
// (nvtx_tool.cpp).
std::string open_ranges();
