#include "gpt/block.h"

#include <cmath>

namespace trainer {
namespace {

size_t by_tokens(const GptSizes& sizes, int columns) {
  return static_cast<size_t>(sizes.tokens()) * static_cast<size_t>(columns);
}

size_t squares(const GptSizes& sizes) { return by_tokens(sizes, sizes.heads * sizes.context); }

Linear linear(const Place& place, Parameters& parameters, int in, int out) {
  return {place, parameters.normal(out, in, 1 / std::sqrt(static_cast<float>(in))), in, out};
}

LayerNorm layer_norm(const Place& place, Parameters& parameters) {
  const int width = place.sizes.width;
  return {place, parameters.constant(width, 1), parameters.constant(width, 0)};
}

}  // namespace

BlockActivations::BlockActivations(const DriverApi& api, const GptSizes& s)
    : norm1(api, by_tokens(s, s.width)),
      qkv(api, by_tokens(s, 3 * s.width)),
      probabilities(api, squares(s)),
      attention(api, by_tokens(s, s.width)),
      middle(api, by_tokens(s, s.width)),
      norm2(api, by_tokens(s, s.width)),
      hidden(api, by_tokens(s, s.hidden())),
      gelu(api, by_tokens(s, s.hidden())),
      mean1(api, by_tokens(s, 1)),
      scale1(api, by_tokens(s, 1)),
      mean2(api, by_tokens(s, 1)),
      scale2(api, by_tokens(s, 1)) {}

BlockWorkspace::BlockWorkspace(const DriverApi& api, const GptSizes& s)
    : branch(api, by_tokens(s, s.width)),
      dhidden(api, by_tokens(s, s.hidden())),
      dnorm(api, by_tokens(s, s.width)),
      dmiddle(api, by_tokens(s, s.width)),
      dattention(api, by_tokens(s, s.width)),
      dscores(api, squares(s)),
      dqkv(api, by_tokens(s, 3 * s.width)) {}

Block::Block(Place& place, Parameters& parameters, BlockActivations& kept, BlockWorkspace& work)
    : Operator(place),
      place_(place),
      kept_(kept),
      work_(work),
      norm1_(layer_norm(place, parameters)),
      qkv_(linear(place, parameters, sizes().width, 3 * sizes().width)),
      attention_(place),
      projection_(linear(place, parameters, sizes().width, sizes().width)),
      add1_(place),
      norm2_(layer_norm(place, parameters)),
      in_(linear(place, parameters, sizes().width, sizes().hidden())),
      gelu_(place),
      out_(linear(place, parameters, sizes().hidden(), sizes().width)),
      add2_(place) {}

void Block::forward(CUdeviceptr x, CUdeviceptr y, Ranges ranges) {
  const CUdeviceptr branch = work_.branch.address(), middle = kept_.middle.address();
  {
    const NvtxRange range(ranges, "attention");
    norm1_.forward(x, kept_.norm1.address(), kept_.mean1.address(), kept_.scale1.address());
    qkv_.forward(kept_.norm1.address(), kept_.qkv.address());
    attention_.forward(kept_.qkv.address(), kept_.probabilities.address(),
                       kept_.attention.address());
    projection_.forward(kept_.attention.address(), branch);
    add1_.forward(x, branch, middle);
  }
  const NvtxRange range(ranges, "mlp");
  norm2_.forward(middle, kept_.norm2.address(), kept_.mean2.address(), kept_.scale2.address());
  in_.forward(kept_.norm2.address(), kept_.hidden.address());
  gelu_.forward(kept_.hidden.address(), kept_.gelu.address());
  out_.forward(kept_.gelu.address(), branch);
  add2_.forward(middle, branch, y);
}

void Block::backward(CUdeviceptr x, CUdeviceptr d, Ranges ranges,
                     const std::function<void()>& unpack) {
  const CUdeviceptr dmiddle = work_.dmiddle.address(), dnorm = work_.dnorm.address();
  {
    const NvtxRange range(of_backward(ranges), "mlp");
    const CUdeviceptr dhidden = work_.dhidden.address();
    out_.backward(kept_.gelu.address(), d, dhidden, unpack);
    gelu_.backward(kept_.hidden.address(), dhidden, dhidden);
    in_.backward(kept_.norm2.address(), dhidden, dnorm);
    norm2_.backward(kept_.middle.address(), kept_.mean2.address(), kept_.scale2.address(), dnorm,
                    dmiddle, d);
  }
  const NvtxRange range(of_backward(ranges), "attention");
  projection_.backward(kept_.attention.address(), dmiddle, work_.dattention.address());
  attention_.backward(kept_.qkv.address(), kept_.probabilities.address(),
                      work_.dattention.address(), work_.dscores.address(), work_.dqkv.address());
  qkv_.backward(kept_.norm1.address(), work_.dqkv.address(), dnorm);
  norm1_.backward(x, kept_.mean1.address(), kept_.scale1.address(), dnorm, d, dmiddle);
}

void Block::backward_again(CUdeviceptr x, CUdeviceptr y, CUdeviceptr d, Ranges ranges) {
  const auto again = [&] {
    const NvtxRange range(of_backward(ranges), "recompute");
    place_.again = true;
    forward(x, y, ranges);
    place_.again = false;
  };
  if (place_.counter != nullptr) return backward(x, d, ranges, again);
  again();
  backward(x, d, ranges);
}

}  // namespace trainer
