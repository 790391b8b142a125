#include "launch_recorder.h"

#include <dlfcn.h>
#include <pthread.h>

#include <stdexcept>

namespace {

const simgpu::Driver* driver_table() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto get =
      reinterpret_cast<decltype(&::cuGetExportTable)>(dlsym(library, "cuGetExportTable"));
  const void* table = nullptr;
  if (get == nullptr || get(&table, &simgpu::kHooksUuid) != CUDA_SUCCESS) {
    throw std::runtime_error("libcuda.so.1 is not the simulated one");
  }
  return static_cast<const simgpu::Driver*>(table);
}

std::string thread_name() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  return name;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Operations& operations) {
  return out << operations.add << " add, " << operations.mul << " mul, " << operations.fma
             << " fma";
}

LaunchRecorder::LaunchRecorder() : driver_(driver_table()) {
  observer_.self = this;
  observer_.api_enter = [](void* self, simgpu::ApiCall* call) {
    static_cast<LaunchRecorder*>(self)->add(*call);
  };
  observer_.kernel_end = [](void* self, const simgpu::KernelRun* run) {
    static_cast<LaunchRecorder*>(self)->add(*run);
  };
  driver_->set_observer(&observer_);
}

LaunchRecorder::~LaunchRecorder() { driver_->set_observer(nullptr); }

std::vector<LaunchCall> LaunchRecorder::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::vector<KernelExecution> LaunchRecorder::executions() const {
  const std::lock_guard lock(mutex_);
  return executions_;
}

void LaunchRecorder::add(const simgpu::ApiCall& call) {
  const std::string name = call.name;
  if (name != "cuLaunchKernel" && name != "cuGraphLaunch") return;
  const std::lock_guard lock(mutex_);
  calls_.push_back({name, call.symbol == nullptr ? "" : call.symbol, thread_name(), open_ranges()});
}

void LaunchRecorder::add(const simgpu::KernelRun& run) {
  using simgpu::Count;
  const simgpu::Counts& counts = run.counts;
  const std::lock_guard lock(mutex_);
  executions_.push_back({run.symbol,
                         {counts[Count::kFadd], counts[Count::kFmul], counts[Count::kFfma]},
                         {run.grid[0], run.grid[1], run.block[0], run.block[1]},
                         run.stream_id,
                         run.graph_id});
}
