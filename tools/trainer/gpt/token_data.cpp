#include "gpt/token_data.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace trainer {

TokenData::TokenData(int vocabulary, int context, int batch, int batches, uint64_t seed,
                     uint64_t shard)
    : batches_(batches), length_(static_cast<size_t>(batch) * static_cast<size_t>(context)) {
  std::vector<int> successor(static_cast<size_t>(vocabulary));
  std::iota(successor.begin(), successor.end(), 0);
  std::mt19937_64 rule_random(seed);
  std::shuffle(successor.begin(), successor.end(), rule_random);

  std::seed_seq sequence{seed, shard};
  std::mt19937_64 random(sequence);
  std::uniform_int_distribution<int> any(0, vocabulary - 1);
  std::bernoulli_distribution follows(0.9);
  for (int i = 0; i < batch * batches; ++i) {
    int token = any(random);
    for (int t = 0; t < context; ++t) {
      tokens_.push_back(token);
      token = follows(random) ? successor[static_cast<size_t>(token)] : any(random);
      labels_.push_back(token);
    }
  }
}

}  // namespace trainer
