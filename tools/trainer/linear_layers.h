// Layers with weights and biases: dense and convolution.
#pragma once
#include <array>

#include "layer.h"

namespace trainer {

class LinearLayer : public Layer {
 public:
  LinearLayer(const Stream& stream, const Kernels& kernels, const LayerSpec& spec, int batch,
              int inputs_per_output);

  // He's uniform initialisation for the weights, zero for the biases.
  void initialize(std::mt19937_64& random) override;
  std::span<Parameter> parameters() override { return parameters_; }

 protected:
  Parameter& weight() { return parameters_[0]; }
  Parameter& bias() { return parameters_[1]; }
  void bias_gradient(CUdeviceptr dy);

 private:
  const int inputs_per_output_;
  std::array<Parameter, 2> parameters_;
};

class DenseLayer final : public LinearLayer {
 public:
  DenseLayer(const Stream& stream, const Kernels& kernels, const LayerSpec& spec, int batch);
  CUdeviceptr forward(CUdeviceptr x) override;
  CUdeviceptr backward(CUdeviceptr x, CUdeviceptr dy) override;
};

// Square kernel, stride 1, no padding.
class Conv2dLayer final : public LinearLayer {
 public:
  Conv2dLayer(const Stream& stream, const Kernels& kernels, const LayerSpec& spec, int batch);
  CUdeviceptr forward(CUdeviceptr x) override;
  CUdeviceptr backward(CUdeviceptr x, CUdeviceptr dy) override;

 private:
  std::vector<int> weight_shape() const {
    return {spec_.out.channels, spec_.in.channels, spec_.window, spec_.window};
  }
};

}  // namespace trainer
