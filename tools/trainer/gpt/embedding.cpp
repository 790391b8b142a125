#include "gpt/embedding.h"

#include <functional>
#include <numeric>

namespace trainer {
namespace {

int rows(const std::vector<int>& indices) {
  return std::accumulate(indices.begin(), indices.end(), 1, std::multiplies<>());
}

}  // namespace

Embedding::Embedding(const Place& place, Weight tokens, Weight positions)
    : Operator(place),
      width_(place.sizes.width),
      of_tokens_{place.sizes.batch, place.sizes.context},
      of_positions_{place.sizes.context},
      tokens_{tokens, place.sizes.vocabulary},
      positions_{positions, place.sizes.context},
      count_(place.stream.api(), static_cast<size_t>(place.sizes.context)),
      by_token_(place.stream.api(), static_cast<size_t>(place.sizes.tokens() * width_)),
      by_position_(place.stream.api(), static_cast<size_t>(place.sizes.context * width_)) {
  std::vector<int> count(count_.size());
  std::iota(count.begin(), count.end(), 0);
  count_.upload(place.stream, count);
  place.stream.synchronize();  // `count` ends here
}

void Embedding::look_up(Table& table, const Sizes& indices, CUdeviceptr index, CUdeviceptr y) {
  table.sequence = number();
  const auto embedding =
      range("aten::embedding", table.sequence, {{table.entries, width_}, indices, {}, {}, {}});
  const int count = rows(indices) * width_;
  kernels().embedding.launch(stream(), one_per_item(count), count, width_, index,
                             table.weight.value, y);
}

void Embedding::forward(CUdeviceptr tokens, CUdeviceptr y) {
  look_up(tokens_, of_tokens_, tokens, by_token_.address());
  look_up(positions_, of_positions_, count_.address(), by_position_.address());
  sequence_ = number();
  const auto add = range("aten::add", sequence_, {by_token(width_), {sizes().context, width_}, {}});
  const int count = sizes().tokens() * width_;
  kernels().add.launch(stream(), one_per_item(count), count, sizes().context * width_,
                       by_token_.address(), by_position_.address(), y);
}

void Embedding::add_gradient(const Table& table, const Sizes& indices, CUdeviceptr index,
                             CUdeviceptr dy) {
  Sizes shape = indices;
  shape.push_back(width_);
  const auto backward = node("EmbeddingBackward0", table.sequence, shape);
  const auto embedding = range("aten::embedding_backward", {shape, indices, {}, {}, {}, {}});
  const auto dense = range("aten::embedding_dense_backward", {shape, indices, {}, {}, {}});
  const int count = table.entries * width_;
  kernels().embedding_backward.launch(stream(), one_per_item(count), count, width_, rows(indices),
                                      index, dy, table.weight.gradient);
}

void Embedding::backward(CUdeviceptr tokens, CUdeviceptr dy) {
  {  // each position's gradient is the sum over the batch
    auto backward = node("AddBackward0", sequence_, by_token(width_));
    backward.end_node();
    const auto sum = range("aten::sum", {by_token(width_), {}, {}, {}});
    const int count = sizes().context * width_;
    kernels().sum_leading.launch(stream(), one_per_item(count), count, sizes().batch, dy,
                                 by_position_.address());
  }
  add_gradient(positions_, of_positions_, count_.address(), by_position_.address());
  add_gradient(tokens_, of_tokens_, tokens, dy);
}

}  // namespace trainer
