#include "dataset.h"

#include <random>

namespace trainer {

Dataset::Dataset(int features, int classes, int batch, int batches, uint64_t seed, uint64_t shard)
    : batch_(batch), batches_(batches), features_(features) {
  // Noise below the distance between centres, which pooling halves: learnt in some dozens of steps.
  constexpr float kCentreSpread = 1.0f, kNoise = 0.5f;
  std::normal_distribution<float> normal;
  std::mt19937_64 centre_random(seed);
  std::vector<float> centres(static_cast<size_t>(classes) * static_cast<size_t>(features));
  for (float& value : centres) value = kCentreSpread * normal(centre_random);

  std::seed_seq sequence{seed, shard};
  std::mt19937_64 sample_random(sequence);
  std::uniform_int_distribution<int> label_of(0, classes - 1);
  const size_t count = static_cast<size_t>(batch) * static_cast<size_t>(batches);
  labels_.reserve(count);
  samples_.reserve(count * static_cast<size_t>(features));
  for (size_t sample = 0; sample < count; ++sample) {
    const int label = label_of(sample_random);
    labels_.push_back(label);
    const size_t centre = static_cast<size_t>(label) * static_cast<size_t>(features);
    for (size_t feature = 0; feature < static_cast<size_t>(features); ++feature) {
      samples_.push_back(centres[centre + feature] + kNoise * normal(sample_random));
    }
  }
}

std::span<const float> Dataset::samples(int step) const {
  const auto length = static_cast<size_t>(batch_) * static_cast<size_t>(features_);
  return {samples_.data() + static_cast<size_t>(step % batches_) * length, length};
}

std::span<const int> Dataset::labels(int step) const {
  const auto length = static_cast<size_t>(batch_);
  return {labels_.data() + static_cast<size_t>(step % batches_) * length, length};
}

}  // namespace trainer
