// A block of a GPT: attention and an MLP, each on a layer norm and beside a residual.
#pragma once
#include <memory>

#include "gpt/attention.h"
#include "gpt/layer_norm.h"
#include "gpt/linear.h"
#include "gpt/pointwise.h"
#include "nvtx_range.h"

namespace trainer {

// What a block's forward pass keeps for its backward pass. Blocks that are checkpointed share one.
struct BlockActivations {
  BlockActivations(const DriverApi& api, const GptSizes& sizes);
  Buffer<Bf16> norm1, qkv, probabilities, attention, middle, norm2, hidden, gelu;
  Buffer<float> mean1, scale1, mean2, scale2;
};

// What passes need for a while; blocks share it.
struct BlockWorkspace {
  BlockWorkspace(const DriverApi& api, const GptSizes& sizes);
  Buffer<Bf16> branch;  // the result that is added to the residual
  Buffer<Bf16> dhidden, dnorm, dmiddle, dattention, dscores, dqkv;
};

class Block : Operator {
 public:
  Block(Place& place, Parameters& parameters, BlockActivations& kept, BlockWorkspace& work);

  void forward(CUdeviceptr x, CUdeviceptr y, Ranges ranges);
  // In place: `d` is the gradient by y, then that by x.
  void backward(CUdeviceptr x, CUdeviceptr d, Ranges ranges) { backward(x, d, ranges, nullptr); }
  // After another block's forward pass into the same activations: runs this one's again first.
  void backward_again(CUdeviceptr x, CUdeviceptr y, CUdeviceptr d, Ranges ranges);

 private:
  // `unpack`: for the last linear layer, whose node is the first that needs an activation.
  void backward(CUdeviceptr x, CUdeviceptr d, Ranges ranges, const std::function<void()>& unpack);

  Place& place_;
  BlockActivations& kept_;
  BlockWorkspace& work_;
  LayerNorm norm1_;
  Linear qkv_;
  Attention attention_;
  Linear projection_;
  Add add1_;
  LayerNorm norm2_;
  Linear in_;
  Gelu gelu_;
  Linear out_;
  Add add2_;
};

}  // namespace trainer
