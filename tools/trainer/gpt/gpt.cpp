#include "gpt/gpt.h"

#include <xxhash.h>

#include <cmath>

namespace trainer {
namespace {

constexpr int kBatches = 8;  // steps' worth of data; then it repeats
constexpr float kBeta1 = 0.9f, kBeta2 = 0.99f, kEpsilon = 1e-8f, kWeightDecay = 0.01f;
constexpr float kDeviation = 0.02f;  // of embeddings and of the head, as GPT-2 has it

size_t values(int rows, int columns) {
  return static_cast<size_t>(rows) * static_cast<size_t>(columns);
}

// So many of what is made from a number.
template <class T, class Make>
std::vector<T> many(int count, const Make& make) {
  std::vector<T> all;
  for (int i = 0; i < count; ++i) all.push_back(make(i));
  return all;
}

}  // namespace

Gpt::Gpt(const Stream& stream, const GptKernels& kernels, const GptOptions& options, uint64_t shard)
    : stream_(stream),
      options_(options),
      place_{stream, kernels, options.sizes, options.operator_ranges ? &counter_ : nullptr},
      data_(sizes().vocabulary, sizes().context, sizes().batch * options.micro_batches, kBatches,
            options.seed, shard),
      tokens_(stream.api(), values(options.micro_batches, sizes().tokens())),
      labels_(stream.api(), values(options.micro_batches, sizes().tokens())),
      parameters_(stream, kernels, sizes().parameters(), options.seed),
      inputs_(many<Buffer<Bf16>>(sizes().layers + 1, [&](int) { return by_token(sizes().width); })),
      activations_(
          many<BlockActivations>(options.checkpoint ? 1 : sizes().layers,
                                 [&](int) { return BlockActivations(stream.api(), sizes()); })),
      workspace_(stream.api(), sizes()),
      normal_(by_token(sizes().width)),
      logits_(by_token(sizes().vocabulary)),
      dlogits_(by_token(sizes().vocabulary)),
      dnormal_(by_token(sizes().width)),
      gradient_(by_token(sizes().width)),
      mean_(stream.api(), values(sizes().tokens(), 1)),
      scale_(stream.api(), values(sizes().tokens(), 1)),
      embedding_{place_, table(sizes().vocabulary), table(sizes().context)},
      blocks_(many<std::unique_ptr<Block>>(
          sizes().layers,
          [&](int i) {
            BlockActivations& kept = activations_[options.checkpoint ? 0 : static_cast<size_t>(i)];
            return std::make_unique<Block>(place_, parameters_, kept, workspace_);
          })),
      block_names_(many<std::string>(sizes().layers,
                                     [](int i) { return "layer:block" + std::to_string(i); })),
      norm_{place_, parameters_.constant(sizes().width, 1), parameters_.constant(sizes().width, 0)},
      head_{place_, table(sizes().vocabulary), sizes().width, sizes().vocabulary},
      cross_entropy_(place_, 1 / static_cast<float>(sizes().tokens() * options.micro_batches)) {
  parameters_.upload();
  use_micro_batch(0);
}

Buffer<Bf16> Gpt::by_token(int columns) const {
  return {stream_.api(), values(sizes().tokens(), columns)};
}

Weight Gpt::table(int rows) { return parameters_.normal(rows, sizes().width, kDeviation); }

void Gpt::set_batch(int step) {
  tokens_.upload(stream_, data_.tokens(step));
  labels_.upload(stream_, data_.labels(step));
}

void Gpt::begin_step() {
  const OperatorRange range(place_.counter, "Optimizer.zero_grad#AdamW.zero_grad",
                            OperatorRange::kNoSequence);
  parameters_.clear_gradients();
  cross_entropy_.clear();
}

void Gpt::use_micro_batch(int index) {
  const CUdeviceptr offset = values(index, sizes().tokens()) * sizeof(int);
  batch_tokens_ = tokens_.address() + offset;
  batch_labels_ = labels_.address() + offset;
}

void Gpt::forward(Ranges ranges) {
  {
    const NvtxRange range(ranges, "layer:embedding");
    embedding_.forward(batch_tokens_, input_of(0));
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const NvtxRange range(ranges, block_names_[i]);
    blocks_[i]->forward(input_of(i), input_of(i + 1), ranges);
  }
  {
    const NvtxRange range(ranges, "layer:norm");
    norm_.forward(input_of(blocks_.size()), normal_.address(), mean_.address(), scale_.address());
  }
  const NvtxRange range(ranges, "layer:head");
  head_.forward(normal_.address(), logits_.address());
}

void Gpt::loss() { cross_entropy_.forward(logits_.address(), batch_labels_); }

void Gpt::backward(Ranges ranges) {
  const CUdeviceptr d = gradient_.address();
  cross_entropy_.backward(batch_labels_, dlogits_.address());
  {
    const NvtxRange range(of_backward(ranges), "layer:head");
    head_.backward(normal_.address(), dlogits_.address(), dnormal_.address());
  }
  {
    const NvtxRange range(of_backward(ranges), "layer:norm");
    norm_.backward(input_of(blocks_.size()), mean_.address(), scale_.address(), dnormal_.address(),
                   d, 0);
  }
  for (size_t i = blocks_.size(); i-- > 0;) {
    const NvtxRange range(of_backward(ranges), block_names_[i]);
    if (options_.checkpoint)
      blocks_[i]->backward_again(input_of(i), input_of(i + 1), d, ranges);
    else
      blocks_[i]->backward(input_of(i), d, ranges);
  }
  const NvtxRange range(of_backward(ranges), "layer:embedding");
  embedding_.backward(batch_tokens_, d);
}

void Gpt::update() {
  const OperatorRange step(place_.counter, "Optimizer.step#AdamW.step", OperatorRange::kNoSequence);
  parameters_.update(
      {options_.learning_rate, options_.learning_rate * kWeightDecay, kBeta1, kBeta2, kEpsilon},
      place_.counter);
}

uint64_t Gpt::read_weights_hash() const {
  const std::vector<float> values = parameters_.values();
  return XXH3_64bits(values.data(), values.size() * sizeof(float));
}

}  // namespace trainer
