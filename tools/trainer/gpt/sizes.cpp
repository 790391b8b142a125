#include "gpt/sizes.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "gpt/kernel_types.h"

namespace trainer {

size_t GptSizes::parameters() const {
  const auto c = static_cast<size_t>(width), norm = 2 * c;
  const size_t block = 12 * c * c + 2 * norm;  // 3 + 1 of attention, 4 + 4 of the MLP
  const auto rows = static_cast<size_t>(2 * vocabulary + context);  // embedding, head, positions
  return rows * c + static_cast<size_t>(layers) * block + norm;
}

std::string problem_of(const GptSizes& s) {
  const std::string tile = std::to_string(kTile);
  if (s.width % (s.heads * kTile) != 0)
    return "--width: " + std::to_string(s.width) + " is no multiple of " + tile + " x " +
           std::to_string(s.heads) + " heads";
  if (s.context % kTile != 0)
    return "--context: " + std::to_string(s.context) + " is no multiple of " + tile;
  if (s.vocabulary % kTile != 0)
    return "--vocabulary: " + std::to_string(s.vocabulary) + " is no multiple of " + tile;
  const int64_t most = std::max({s.hidden(), s.vocabulary, s.heads * s.context});
  if (most * s.batch * s.context > INT32_MAX || s.parameters() > INT32_MAX)
    return "--batch: a tensor has more than 2^31 elements; make the model or the batch smaller";
  return {};
}

nlohmann::json to_json(const GptSizes& s) {
  return {{"model", "gpt"},       {"layers", s.layers},           {"width", s.width},
          {"heads", s.heads},     {"context", s.context},         {"vocabulary", s.vocabulary},
          {"hidden", s.hidden()}, {"parameters", s.parameters()}, {"batch", s.batch}};
}

}  // namespace trainer
