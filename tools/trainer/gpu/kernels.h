// The module with the kernels of trainer_kernels.cu, and typed launches of them.
#pragma once
#include <cuda.h>

#include <filesystem>
#include <type_traits>

#include "gpu/gpu.h"

namespace trainer {

struct LaunchShape {
  unsigned grid_x, grid_y;
  unsigned block_x, block_y;
  unsigned shared_bytes;
  unsigned grid_z = 1;
};

// One thread per item, in blocks of 128.
LaunchShape one_per_item(int items);
// One thread per (column, row), in blocks of 32 x 8.
LaunchShape one_per_cell(int columns, int rows);
// Of so many values, where a thread computes kEach of trainer_kernels.cu.
int threads_for(int values);

class Kernel {
 public:
  Kernel(const DriverApi& api, CUmodule module, const char* name);

  // Arguments are passed as they are: int, float, CUdeviceptr or a structure that the kernel takes,
  // in the order of the kernel's parameters.
  template <class... Arguments>
  void launch(const Stream& stream, const LaunchShape& shape, Arguments... arguments) const {
    static_assert(((std::is_same_v<Arguments, int> || std::is_same_v<Arguments, float> ||
                    std::is_same_v<Arguments, CUdeviceptr> || std::is_class_v<Arguments>)&&...),
                  "kernels take int, float, device addresses and structures");
    void* parameters[] = {&arguments...};
    launch_with(stream, shape, parameters);
  }

 private:
  void launch_with(const Stream& stream, const LaunchShape& shape, void** parameters) const;

  CUfunction function_ = nullptr;
};

std::filesystem::path beside_executable(const char* name);

class Module {
 public:
  // Throws CudaError.
  Module(const DriverApi& api, const std::filesystem::path& path);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  CUmodule handle() const { return module_; }

 private:
  const DriverApi& api_;
  CUmodule module_ = nullptr;
};

// Every kernel of the module, by the name it has in the source.
class Kernels {
 private:
  const DriverApi& api_;
  Module module_;
  Kernel get(const char* name) const { return {api_, module_.handle(), name}; }

 public:
  // From `path`; when it is empty, from trainer_kernels.ptx beside the executable. Throws
  // CudaError.
  Kernels(const DriverApi& api, const std::filesystem::path& path)
      : api_(api), module_(api, path.empty() ? beside_executable("trainer_kernels.ptx") : path) {}

  const Kernel dense_forward = get("dense_forward");
  const Kernel dense_weight_gradient = get("dense_weight_gradient");
  const Kernel dense_input_gradient = get("dense_input_gradient");
  const Kernel bias_gradient = get("bias_gradient");
  const Kernel conv2d_forward = get("conv2d_forward");
  const Kernel conv2d_weight_gradient = get("conv2d_weight_gradient");
  const Kernel conv2d_input_gradient = get("conv2d_input_gradient");
  const Kernel relu_forward = get("relu_forward");
  const Kernel relu_backward = get("relu_backward");
  const Kernel average_pool_forward = get("average_pool_forward");
  const Kernel average_pool_backward = get("average_pool_backward");
  const Kernel softmax_cross_entropy = get("softmax_cross_entropy");
  const Kernel mean_loss = get("mean_loss");
  const Kernel sgd = get("sgd");
  const Kernel sgd_momentum = get("sgd_momentum");
};

}  // namespace trainer
