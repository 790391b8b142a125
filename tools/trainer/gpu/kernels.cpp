#include "gpu/kernels.h"

#include <array>
#include <string>

namespace trainer {
namespace {

unsigned blocks_for(int items, unsigned block) {
  return (static_cast<unsigned>(items) + block - 1) / block;
}

}  // namespace

LaunchShape one_per_item(int items) { return {blocks_for(items, 128), 1, 128, 1, 0}; }

LaunchShape one_per_cell(int columns, int rows) {
  return {blocks_for(columns, 32), blocks_for(rows, 8), 32, 8, 0};
}

int threads_for(int values) {
  constexpr int kEach = 8;
  return (values + kEach - 1) / kEach;
}

Kernel::Kernel(const DriverApi& api, CUmodule module, const char* name) {
  const std::string call = std::string("cuModuleGetFunction(") + name + ")";
  api.check(api.cuModuleGetFunction(&function_, module, name), call.c_str());
}

void Kernel::launch_with(const Stream& stream, const LaunchShape& shape, void** parameters) const {
  const DriverApi& api = stream.api();
  api.check(api.cuLaunchKernel(function_, shape.grid_x, shape.grid_y, shape.grid_z, shape.block_x,
                               shape.block_y, 1, shape.shared_bytes, stream.handle(), parameters,
                               nullptr),
            "cuLaunchKernel");
}

std::filesystem::path beside_executable(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

Module::Module(const DriverApi& api, const std::filesystem::path& path) : api_(api) {
  const CUresult result = api.cuModuleLoad(&module_, path.c_str());
  if (result == CUDA_SUCCESS) return;
  throw CudaError("cannot load kernels from " + path.string() + ": " + api.describe(result) +
                  "; name a module with --kernels");
}

Module::~Module() { api_.cuModuleUnload(module_); }

}  // namespace trainer
