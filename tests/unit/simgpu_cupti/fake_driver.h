// The driver's side of the seam, played by the test: it tells the simulated CUPTI what a driver
// would.
//
// The executable exports cuGetExportTable, so that the library finds this driver as it would find
// libcuda.so.1.
#pragma once
#include <cupti.h>
#include <simgpu/hooks.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

class FakeDriver {
 public:
  static FakeDriver& get();

  static CUcontext context(uintptr_t number) { return reinterpret_cast<CUcontext>(number); }
  static CUstream stream(uintptr_t number) { return reinterpret_cast<CUstream>(number); }

  struct Launch {
    const char* symbol = "kernel";
    CUcontext context = FakeDriver::context(1);
    uint32_t stream_id = 7, module_id = 1;
    uint64_t start_ns = 1000, end_ns = 1500, cycles = 700;
    uint32_t grid[3] = {2, 3, 1}, block[3] = {32, 1, 1};
    uint32_t dynamic_shared_bytes = 0, graph_id = 0;
    uint64_t graph_node_id = 0;
    uint8_t cooperative = 0;
    simgpu::Counts counts{};
  };
  // cuLaunchKernel with one kernel, or cuGraphLaunch with several: enter, runs, exit. Returns the
  // correlation id.
  uint32_t launch(const Launch& launch);
  uint32_t launch_graph(const std::vector<Launch>& nodes);
  void copy(uint64_t bytes);
  void copy(const simgpu::MemoryCopy& copy);  // what it does not say is filled in
  void load_module(uint32_t id);

  // What CUPTI installed; null when nothing is wanted.
  const simgpu::Observer* observer() const { return observer_.load(); }
  bool in_session(CUcontext context);  // CUPTI has opened one, and not closed it

 private:
  friend const simgpu::Driver* fake_driver_table();
  uint32_t call(uint32_t cbid, const char* name, const void* params,
                const std::vector<Launch>& kernels);

  std::atomic<const simgpu::Observer*> observer_{nullptr};
  std::mutex mutex_;
  std::set<CUcontext> in_session_;
  std::atomic<uint32_t> next_correlation_{1};
  std::atomic<int64_t> next_grid_{1};
};
