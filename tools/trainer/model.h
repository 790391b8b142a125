// A network of layers with its data, its loss and its optimizer, on one stream.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataset.h"
#include "layer.h"
#include "trainable.h"

namespace trainer {

// Threads of the one block that sums the loss.
inline constexpr int kMeanLossThreads = 128;

struct ModelOptions {
  int batch = 32;
  float learning_rate = 0.1f;
  float momentum = 0.0f;         // 0: plain stochastic gradient descent
  uint64_t seed = 1;             // of the data and the initial parameters
  bool operator_ranges = false;  // as PyTorch's emit_nvtx pushes them
};

class Model final : public Trainable {
 public:
  // Models of different shards start alike and see different samples.
  Model(const Stream& stream, const Kernels& kernels, const NetworkSpec& network,
        const ModelOptions& options, uint64_t shard = 0);

  void set_batch(int step) override;
  void forward(Ranges ranges) override;
  void loss() override;
  void backward(Ranges ranges) override;
  void update() override;
  float read_loss() const override;
  uint64_t read_weights_hash() const override;

  const Dataset& data() const { return data_; }
  std::span<const std::unique_ptr<Layer>> layers() const { return layers_; }

 private:
  const Stream& stream_;
  const Kernels& kernels_;
  const ModelOptions options_;
  const int classes_;
  const Dataset data_;
  OperatorCounter counter_;
  std::vector<std::unique_ptr<Layer>> layers_;
  Buffer<float> samples_;
  Buffer<int> labels_;
  Buffer<float> log_likelihood_, logits_gradient_, loss_;
  std::vector<CUdeviceptr> activations_;  // the batch, then each layer's output
};

}  // namespace trainer
