// A token's vector plus its position's.
#pragma once
#include "gpt/operator.h"
#include "gpt/parameters.h"

namespace trainer {

class Embedding : Operator {
 public:
  Embedding(const Place& place, Weight tokens, Weight positions);

  void forward(CUdeviceptr tokens, CUdeviceptr y);
  void backward(CUdeviceptr tokens, CUdeviceptr dy);  // adds to both tables' gradients

 private:
  struct Table {
    Weight weight;
    int entries;
    uint64_t sequence = 0;
  };
  void look_up(Table& table, const Sizes& indices, CUdeviceptr index, CUdeviceptr y);
  void add_gradient(const Table& table, const Sizes& indices, CUdeviceptr index, CUdeviceptr dy);

  const int width_;
  const Sizes of_tokens_, of_positions_;
  Table tokens_, positions_;
  Buffer<int> count_;  // 0, 1, 2, ...: the positions
  Buffer<Bf16> by_token_, by_position_;
  uint64_t sequence_ = 0;
};

}  // namespace trainer
