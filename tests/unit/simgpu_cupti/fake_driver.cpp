#include "fake_driver.h"

#include <algorithm>
#include <cstring>

FakeDriver& FakeDriver::get() {
  static FakeDriver driver;
  return driver;
}

bool FakeDriver::in_session(CUcontext context) {
  const std::scoped_lock lock(mutex_);
  return in_session_.contains(context);
}

uint32_t FakeDriver::launch(const Launch& launch) {
  cuLaunchKernel_params params{};
  params.gridDimX = launch.grid[0];
  return call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel", &params, {launch});
}

uint32_t FakeDriver::launch_graph(const std::vector<Launch>& nodes) {
  cuGraphLaunch_params params{};
  return call(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, "cuGraphLaunch", &params, nodes);
}

uint32_t FakeDriver::call(uint32_t cbid, const char* name, const void* params,
                          const std::vector<Launch>& kernels) {
  const uint32_t correlation = next_correlation_++;
  const simgpu::Observer* observer = observer_;
  if (observer == nullptr) return correlation;
  uint64_t word = 0;
  const Launch& first = kernels.front();
  simgpu::ApiCall call{cbid, name,         params,      CUDA_SUCCESS, first.context,
                       1,    first.symbol, correlation, &word};
  observer->api_enter(observer->self, &call);
  for (const Launch& launch : kernels) {
    simgpu::KernelRun run{};
    run.symbol = launch.symbol;
    run.context = launch.context;
    run.context_id = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(launch.context));
    run.stream_id = launch.stream_id;
    run.module_id = launch.module_id;
    run.correlation_id = correlation;
    run.graph_id = launch.graph_id;
    run.graph_node_id = launch.graph_node_id;
    std::ranges::copy(launch.grid, run.grid);
    std::ranges::copy(launch.block, run.block);
    run.dynamic_shared_bytes = launch.dynamic_shared_bytes;
    run.cooperative = launch.cooperative;
    run.grid_id = next_grid_++;
    run.sm_count = 132;
    run.start_ns = launch.start_ns;
    run.end_ns = launch.end_ns;
    run.cycles = launch.cycles;
    run.counts = launch.counts;
    observer->kernel_end(observer->self, &run);
  }
  observer->api_exit(observer->self, &call);
  return correlation;
}

void FakeDriver::load_module(uint32_t id) {
  const simgpu::Observer* observer = observer_;
  if (observer == nullptr) return;
  const simgpu::ModuleInfo info{id, nullptr, 0, 1};
  observer->module_loaded(observer->self, context(1), &info);
}

void FakeDriver::copy(uint64_t bytes) {
  simgpu::MemoryCopy copy{};
  copy.kind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = bytes;
  this->copy(copy);
}

void FakeDriver::copy(const simgpu::MemoryCopy& done) {
  const simgpu::Observer* observer = observer_;
  if (observer == nullptr) return;
  simgpu::MemoryCopy copy = done;
  copy.context = context(1);
  copy.context_id = 1;
  copy.stream_id = 7;
  copy.correlation_id = next_correlation_++;
  copy.start_ns = 10;
  copy.end_ns = 20;
  observer->memory_copy(observer->self, &copy);
}

const simgpu::Driver* fake_driver_table();
const simgpu::Driver* fake_driver_table() {
  static const simgpu::Driver table{
      simgpu::kAbiVersion,
      [](const simgpu::Observer* observer) { FakeDriver::get().observer_ = observer; },
      [](CUcontext context, const simgpu::Session& session) {
        const std::scoped_lock lock(FakeDriver::get().mutex_);
        if (session.open != 0)
          FakeDriver::get().in_session_.insert(context);
        else
          FakeDriver::get().in_session_.erase(context);
      },
      []() -> uint64_t { return 123456789; }, [](uint64_t) {}, [] { return 13000; },
      [] { return 1; }, [](int) { return "GH100"; }, [] { return FakeDriver::context(1); },
      // Contexts 1 to 9 exist, and so do streams 1 to 9; 0 is the default stream, with id 7.
      [](CUcontext context) -> uint32_t {
        const auto number = reinterpret_cast<uintptr_t>(context);
        return number < 10 ? static_cast<uint32_t>(number) : 0;
      },
      [](CUcontext) -> uint32_t { return 0; },
      [](CUcontext, CUstream stream) -> uint32_t {
        const auto number = reinterpret_cast<uintptr_t>(stream);
        return number < 10 ? static_cast<uint32_t>(7 + number) : 0;
      },
      [](CUgraphNode node) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(node)); },
      [](CUcontext) { return CUDA_SUCCESS; }};
  return &table;
}

extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI
cuGetExportTable(const void** table, const CUuuid* id) {
  if (std::memcmp(id, &simgpu::kHooksUuid, sizeof *id) != 0) return CUDA_ERROR_INVALID_VALUE;
  *table = fake_driver_table();
  return CUDA_SUCCESS;
}
