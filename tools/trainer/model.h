// A network with its loss and its optimizer, on one stream.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "layer.h"
#include "nvtx_range.h"

namespace trainer {

// Threads of the one block that sums the loss.
inline constexpr int kMeanLossThreads = 128;

struct ModelOptions {
  int batch = 32;
  float learning_rate = 0.1f;
  float momentum = 0.0f;         // 0: plain stochastic gradient descent
  uint64_t seed = 1;             // of the initial parameters
  bool operator_ranges = false;  // as PyTorch's emit_nvtx pushes them
};

// One training step is set_batch, forward, loss, backward, update, in this order. All but
// read_loss() and read_weights_hash() only queue work on the stream. Calls may come from any thread
// whose context is current, one at a time.
class Model {
 public:
  Model(const Stream& stream, const Kernels& kernels, const NetworkSpec& network,
        const ModelOptions& options);

  // The spans must stay valid until the stream has copied them.
  void set_batch(std::span<const float> samples, std::span<const int> labels);
  void forward(Ranges ranges);
  void loss();
  void backward(Ranges ranges);
  void update();

  // Waits for the stream; the mean loss of the last batch.
  float read_loss() const;
  // Waits for the stream; XXH3 of the bytes of all weights and biases, from the first layer on.
  uint64_t read_weights_hash() const;
  std::span<const std::unique_ptr<Layer>> layers() const { return layers_; }

 private:
  const Stream& stream_;
  const Kernels& kernels_;
  const ModelOptions options_;
  const int classes_;
  OperatorCounter counter_;
  std::vector<std::unique_ptr<Layer>> layers_;
  Buffer<float> samples_;
  Buffer<int> labels_;
  Buffer<float> log_likelihood_, logits_gradient_, loss_;
  std::vector<CUdeviceptr> activations_;  // the batch, then each layer's output
};

}  // namespace trainer
