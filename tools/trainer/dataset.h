// Synthetic classification data that a small network can learn: one random centre per class,
// samples around it.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace trainer {

class Dataset {
 public:
  // `batches` batches of `batch` samples with `features` values each. The centres depend on `seed`
  // only, the samples on `seed` and `shard`: shards are different samples of the same task.
  Dataset(int features, int classes, int batch, int batches, uint64_t seed, uint64_t shard);

  // Batch `step`, starting over after the last: batch * features values, and batch labels in [0,
  // classes).
  std::span<const float> samples(int step) const;
  std::span<const int> labels(int step) const;

 private:
  int batch_, batches_, features_;
  std::vector<float> samples_;
  std::vector<int> labels_;
};

}  // namespace trainer
