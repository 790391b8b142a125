// Synthetic sequences of tokens that a small model can learn: most tokens have one successor.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace trainer {

class TokenData {
 public:
  // `batches` batches of `batch` sequences of `context` tokens in [0, vocabulary). Which token
  // follows which depends on `seed` only, the sequences on `seed` and `shard`.
  TokenData(int vocabulary, int context, int batch, int batches, uint64_t seed, uint64_t shard);

  // Batch `index`, starting over after the last: batch * context tokens, and the token after each.
  std::span<const int> tokens(int index) const { return of(tokens_, index); }
  std::span<const int> labels(int index) const { return of(labels_, index); }

 private:
  std::span<const int> of(const std::vector<int>& all, int index) const {
    return {all.data() + static_cast<size_t>(index % batches_) * length_, length_};
  }

  int batches_;
  size_t length_;  // of a batch
  std::vector<int> tokens_, labels_;
};

}  // namespace trainer
