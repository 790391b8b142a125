// known_kernels ROW...: launches the kernels of these rows. An ordinary program of the driver API,
// which knows nothing of a profiler; the texts of the kernels lie beside it. Of a row that is timed
// it says the bytes that a launch reads, and writes, and how many nanoseconds a launch takes.
#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "gpu/gpu.h"
#include "known_kernels/rows.h"

namespace {

using namespace flopinj::known_kernels;
using trainer::DriverApi;

class Launcher {
 public:
  Launcher() : context_(api_), stream_(api_), memory_(api_, kNumbers) {
    memory_.clear(stream_);
    stream_.synchronize();
  }

  void run(const Row& row) {
    switch (row.way) {
      case Way::kPlain:
        launch(row, row.launches);
        break;
      case Way::kInGraph:
        launch(row, row.launches / 2);
        stream_.synchronize();
        in_graph(row, row.launches / 2);
        break;
      case Way::kBesideWaiting:
        beside_waiting(row);
        break;
      case Way::kTimed:
        timed(row);
    }
    stream_.synchronize();
  }

 private:
  static constexpr size_t kNumbers = 1 << 18;
  static constexpr uint32_t kCopyingBlocks = 512, kBytesOfThread = 16;
  // Longest time that a kernel waits for the host, in microseconds.
  static constexpr int kMostWait = 30'000;
  static constexpr uint32_t kBetweenPauses = 10;
  static constexpr std::chrono::milliseconds kPause{2};

  CUfunction function(std::string_view module, std::string_view kernel) {
    CUmodule& loaded = modules_[module];
    if (loaded == nullptr) {
      const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / module;
      api_.check(api_.cuModuleLoad(&loaded, path.c_str()), "cuModuleLoad");
    }
    CUfunction found = nullptr;
    api_.check(api_.cuModuleGetFunction(&found, loaded, std::string(kernel).c_str()),
               "cuModuleGetFunction");
    return found;
  }

  void launch(CUfunction kernel, uint32_t blocks, uint32_t threads, const trainer::Stream& stream,
              int number, CUdeviceptr memory) {
    void* parameters[] = {&number, &memory};
    api_.check(api_.cuLaunchKernel(kernel, blocks, 1, 1, threads, 1, 1, 0, stream.handle(),
                                   parameters, nullptr),
               "cuLaunchKernel");
  }
  // With pauses: which counters a kernel needs is read on another thread.
  void launch(const Row& row, uint32_t times) {
    const CUfunction kernel = function(row.module, row.kernel);
    for (uint32_t i = 1; i <= times; ++i) {
      launch(kernel, kBlocks, row.threads, stream_, kSteps, memory_.address());
      if (i % kBetweenPauses == 0) pause();
    }
  }
  void pause() {
    stream_.synchronize();
    std::this_thread::sleep_for(kPause);
  }

  void in_graph(const Row& row, uint32_t times) {
    constexpr uint32_t kNodes = 5;
    function(row.module, row.kernel);  // no module is loaded during a capture
    trainer::CapturedGraph graph(stream_);
    launch(row, kNodes);
    graph.finish();
    for (uint32_t i = 0; i < times; i += kNodes) {
      graph.launch();
      pause();
    }
  }

  void beside_waiting(const Row& row) {
    const trainer::Stream other(api_);
    void* flag = nullptr;
    api_.check(api_.cuMemHostAlloc(&flag, sizeof(unsigned), CU_MEMHOSTALLOC_DEVICEMAP),
               "cuMemHostAlloc");
    const std::atomic_ref<unsigned> raised(*static_cast<unsigned*>(flag));
    raised = 0;
    launch(function(row.module, "wait_for_flag"), 1, 1, other, kMostWait,
           reinterpret_cast<CUdeviceptr>(flag));
    launch(row, row.launches / 2);
    stream_.synchronize();
    raised = 1;
    other.synchronize();
    launch(row, row.launches / 2);
  }

  // Of more memory than the GPU keeps from one launch to the next. The simulated one keeps none.
  void timed(const Row& row) {
    int kept = 0;
    api_.check(api_.cuDeviceGetAttribute(&kept, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0),
               "cuDeviceGetAttribute");
    const bool simulated = dlsym(RTLD_DEFAULT, "simgpu_version") != nullptr;
    const size_t of_step = size_t{kCopyingBlocks} * row.threads * kBytesOfThread;
    const size_t steps = simulated ? 1 : 1 + 4 * static_cast<size_t>(kept) / of_step;
    const trainer::Buffer<float> memory(api_, 2 * steps * of_step / sizeof(float));
    const CUfunction kernel = function(row.module, row.kernel);
    const auto copy = [&] {
      launch(kernel, kCopyingBlocks, row.threads, stream_, static_cast<int>(steps),
             memory.address());
    };
    for (uint32_t i = kBetweenEvents; i < row.launches; ++i) {
      copy();
      pause();
    }
    std::array<CUevent, kBetweenEvents + 1> events;
    for (CUevent& event : events)
      api_.check(api_.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    api_.check(api_.cuEventRecord(events[0], stream_.handle()), "cuEventRecord");
    for (uint32_t i = 1; i <= kBetweenEvents; ++i) {
      copy();
      api_.check(api_.cuEventRecord(events[i], stream_.handle()), "cuEventRecord");
    }
    stream_.synchronize();
    // Not through the table: cuda.h names a version of it that drivers before 12.8 have not.
    auto* const elapsed = reinterpret_cast<CUresult (*)(float*, CUevent, CUevent)>(
        dlsym(RTLD_DEFAULT, "cuEventElapsedTime"));
    if (elapsed == nullptr) throw std::runtime_error("the driver has no cuEventElapsedTime");
    std::array<float, kBetweenEvents> ms{};
    for (uint32_t i = 0; i < kBetweenEvents; ++i)
      api_.check(elapsed(&ms[i], events[i], events[i + 1]), "cuEventElapsedTime");
    std::ranges::sort(ms);  // a launch that was measured took longer
    std::cout << "bytes " << steps * of_step << "\nduration "
              << 1e6 * static_cast<double>(ms[kBetweenEvents / 2]) << "\n";
  }

  DriverApi api_;
  trainer::Context context_;
  trainer::Stream stream_;
  trainer::Buffer<float> memory_;
  std::map<std::string_view, CUmodule> modules_;
};

}  // namespace

int main(int argc, char** argv) {
  try {
    Launcher launcher;
    for (int i = 1; i < argc; ++i) {
      const Row* const row = find_row(argv[i]);
      if (row == nullptr) throw std::runtime_error(std::string("no such row: ") + argv[i]);
      launcher.run(*row);
    }
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "known_kernels: " << error.what() << "\n";
    return 1;
  }
}
