// One layer of a network on a GPU: its parameters, its output and its gradients.
#pragma once
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "gpu/gpu.h"
#include "gpu/kernels.h"
#include "network.h"
#include "operator_ranges.h"

namespace trainer {

// A tensor of weights or biases with what an optimizer needs.
struct Parameter {
  Parameter(const DriverApi& api, size_t size)
      : value(api, size), gradient(api, size), velocity(api, size) {}
  Buffer<float> value, gradient, velocity;
};

// Works on one stream, on one batch at a time. Launches only: nothing waits for the GPU.
class Layer {
 public:
  Layer(const Stream& stream, const Kernels& kernels, const LayerSpec& spec, int batch);
  virtual ~Layer() = default;

  const LayerSpec& spec() const { return spec_; }
  const std::string& range_name() const { return range_name_; }

  // Computes the output from `x`, [batch][in], and returns its address, [batch][out].
  virtual CUdeviceptr forward(CUdeviceptr x) = 0;
  // From the same `x` and the loss's gradient by the output, `dy`: writes the parameters' gradients
  // and, when spec().input_gradient is set, returns the gradient by the input; otherwise 0.
  virtual CUdeviceptr backward(CUdeviceptr x, CUdeviceptr dy) = 0;
  // Draws initial values; does nothing in a layer without parameters.
  virtual void initialize(std::mt19937_64&) {}
  virtual std::span<Parameter> parameters() { return {}; }
  // Names what it does in ranges, from now on. The counter must outlive the layer.
  void name_operators(OperatorCounter* counter) { counter_ = counter; }

 protected:
  const Stream& stream_;
  const Kernels& kernels_;
  const LayerSpec spec_;
  const int batch_;
  Buffer<float> output_;
  Buffer<float> input_gradient_;  // one element when it is not wanted
  OperatorCounter* counter_ = nullptr;
  uint64_t sequence_ = 0;  // of the last forward operator

  // Takes the next sequence number.
  uint64_t count_forward() {
    if (counter_ != nullptr) sequence_ = counter_->next_sequence++;
    return sequence_;
  }
  // The batch of inputs or outputs.
  std::vector<int> shape(const Shape& of) const {
    return {batch_, of.channels, of.height, of.width};
  }

 private:
  const std::string range_name_;
};

std::unique_ptr<Layer> make_layer(const Stream& stream, const Kernels& kernels,
                                  const LayerSpec& spec, int batch);

}  // namespace trainer
