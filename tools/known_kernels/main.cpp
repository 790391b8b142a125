// known_kernels ROW...: launches the kernels of these rows. An ordinary program of the driver API,
// which knows nothing of a profiler; the texts of the kernels lie beside it.
#include <cuda.h>

#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

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
    for (uint32_t i = 0; i < kLaunches; ++i) launch(row, stream_);
    stream_.synchronize();
  }

 private:
  static constexpr size_t kNumbers = 1 << 18;

  CUfunction function(std::string_view module, std::string_view kernel) {
    CUmodule& loaded = modules_[module];
    if (loaded == nullptr) {
      const auto path = std::filesystem::read_symlink("/proc/self/exe").parent_path() / module;
      api_.check(api_.cuModuleLoad(&loaded, path.c_str()), path.c_str());
    }
    CUfunction found = nullptr;
    api_.check(api_.cuModuleGetFunction(&found, loaded, std::string(kernel).c_str()),
               "cuModuleGetFunction");
    return found;
  }

  void launch(const Row& row, const trainer::Stream& stream) {
    int steps = kSteps;
    CUdeviceptr memory = memory_.address();
    void* parameters[] = {&steps, &memory};
    api_.check(api_.cuLaunchKernel(function(row.module, row.kernel), kBlocks, 1, 1, row.threads, 1,
                                   1, 0, stream.handle(), parameters, nullptr),
               "cuLaunchKernel");
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
