// A GPT in bf16 with its data, its loss and AdamW, on one stream.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "gpt/block.h"
#include "gpt/cross_entropy.h"
#include "gpt/embedding.h"
#include "gpt/token_data.h"
#include "trainable.h"

namespace trainer {

struct GptOptions {
  GptSizes sizes;
  int micro_batches = 1;    // a step, whose gradients are added up
  bool checkpoint = false;  // blocks keep nothing but their input, and run again in backward
  float learning_rate = 0.003f;
  uint64_t seed = 1;             // of the data and the initial weights
  bool operator_ranges = false;  // as PyTorch's emit_nvtx pushes them
};

class Gpt final : public Trainable {
 public:
  // Models of different shards start alike and see different samples.
  Gpt(const Stream& stream, const GptKernels& kernels, const GptOptions& options,
      uint64_t shard = 0);

  void set_batch(int step) override;
  int micro_batches() const override { return options_.micro_batches; }
  void begin_step() override;
  void use_micro_batch(int index) override;
  void forward(Ranges ranges) override;
  void loss() override;
  void backward(Ranges ranges) override;
  void update() override;
  float read_loss() const override { return cross_entropy_.read(); }
  uint64_t read_weights_hash() const override;

  const TokenData& data() const { return data_; }
  const Parameters& parameters() const { return parameters_; }

 private:
  const GptSizes& sizes() const { return options_.sizes; }
  Buffer<Bf16> by_token(int columns) const;
  Weight table(int rows);
  CUdeviceptr input_of(size_t block) const { return inputs_[block].address(); }

  const Stream& stream_;
  const GptOptions options_;
  OperatorCounter counter_;
  Place place_;
  const TokenData data_;
  Buffer<int> tokens_, labels_;                      // of all micro-batches
  CUdeviceptr batch_tokens_ = 0, batch_labels_ = 0;  // of the micro-batch
  Parameters parameters_;
  std::vector<Buffer<Bf16>> inputs_;  // of each block, and of the last layer norm
  std::vector<BlockActivations> activations_;
  BlockWorkspace workspace_;
  Buffer<Bf16> normal_, logits_, dlogits_, dnormal_, gradient_;
  Buffer<float> mean_, scale_;

  Embedding embedding_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::string> block_names_;
  LayerNorm norm_;
  Linear head_;
  CrossEntropy cross_entropy_;
};

}  // namespace trainer
