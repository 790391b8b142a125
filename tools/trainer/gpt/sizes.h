// The sizes of a GPT, and what follows from them.
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trainer {

struct GptSizes {
  int layers = 2, width = 64, heads = 2, context = 64, vocabulary = 64;
  int batch = 4;  // sequences in a micro-batch

  int head_width() const { return width / heads; }
  int hidden() const { return 4 * width; }        // of an MLP
  int tokens() const { return batch * context; }  // in a micro-batch: rows of its matrices
  size_t parameters() const;
};

// Empty, or one line about the first size that the kernels cannot work with.
std::string problem_of(const GptSizes& sizes);

nlohmann::json to_json(const GptSizes& sizes);

}  // namespace trainer
