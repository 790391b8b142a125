#include "model.h"

#include <xxhash.h>

namespace trainer {
namespace {

constexpr int kBatches = 8;  // then the data repeats

}  // namespace

Model::Model(const Stream& stream, const Kernels& kernels, const NetworkSpec& network,
             const ModelOptions& options, uint64_t shard)
    : stream_(stream),
      kernels_(kernels),
      options_(options),
      classes_(network.classes),
      data_(network.input.size(), network.classes, options.batch, kBatches, options.seed, shard),
      samples_(stream.api(), static_cast<size_t>(options.batch * network.input.size())),
      labels_(stream.api(), static_cast<size_t>(options.batch)),
      log_likelihood_(stream.api(), static_cast<size_t>(options.batch)),
      logits_gradient_(stream.api(), static_cast<size_t>(options.batch * network.classes)),
      loss_(stream.api(), 1),
      activations_(network.layers.size() + 1, samples_.address()) {
  std::mt19937_64 random(options.seed);
  for (const LayerSpec& spec : network.layers) {
    layers_.push_back(make_layer(stream, kernels, spec, options.batch));
    layers_.back()->initialize(random);
    if (options.operator_ranges) layers_.back()->name_operators(&counter_);
  }
}

void Model::set_batch(int step) {
  samples_.upload(stream_, data_.samples(step));
  labels_.upload(stream_, data_.labels(step));
}

void Model::forward(Ranges ranges) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    const NvtxRange range(ranges, layers_[i]->range_name());
    activations_[i + 1] = layers_[i]->forward(activations_[i]);
  }
}

void Model::loss() {
  const float inverse_batch = 1.0f / static_cast<float>(options_.batch);
  kernels_.softmax_cross_entropy.launch(stream_, one_per_item(options_.batch), options_.batch,
                                        classes_, inverse_batch, activations_.back(),
                                        labels_.address(), log_likelihood_.address(),
                                        logits_gradient_.address());
  const LaunchShape one_block{1, 1, kMeanLossThreads, 1, kMeanLossThreads * sizeof(float)};
  kernels_.mean_loss.launch(stream_, one_block, options_.batch, inverse_batch,
                            log_likelihood_.address(), loss_.address());
}

void Model::backward(Ranges ranges) {
  CUdeviceptr gradient = logits_gradient_.address();
  for (size_t i = layers_.size(); i-- > 0;) {
    const NvtxRange range(of_backward(ranges), layers_[i]->range_name());
    gradient = layers_[i]->backward(activations_[i], gradient);
  }
}

void Model::update() {
  const NvtxRange range(options_.operator_ranges ? Ranges::kOn : Ranges::kOff,
                        "Optimizer.step#SGD.step");
  const float step = -options_.learning_rate;
  for (const auto& layer : layers_) {
    for (Parameter& parameter : layer->parameters()) {
      const int count = static_cast<int>(parameter.value.size());
      if (options_.momentum == 0.0f) {
        kernels_.sgd.launch(stream_, one_per_item(count), count, step, parameter.gradient.address(),
                            parameter.value.address());
      } else {
        kernels_.sgd_momentum.launch(stream_, one_per_item(count), count, step, options_.momentum,
                                     parameter.gradient.address(), parameter.velocity.address(),
                                     parameter.value.address());
      }
    }
  }
}

float Model::read_loss() const { return loss_.download(stream_).front(); }

uint64_t Model::read_weights_hash() const {
  uint64_t hash = 0;  // each tensor's hash is the seed of the next one's
  for (const auto& layer : layers_)
    for (const Parameter& parameter : layer->parameters()) {
      const std::vector<float> values = parameter.value.download(stream_);
      hash = XXH3_64bits_withSeed(values.data(), values.size() * sizeof(float), hash);
    }
  return hash;
}

}  // namespace trainer
