// What kernels take by value, for the host and for the kernels alike.
#pragma once

namespace trainer {

// A matrix for each (sequence, head), or one. That of (s, h) begins at address + s * per_sequence +
// h * per_head elements, and its rows lie `row` elements apart.
struct Matrices {
  unsigned long long address;
  int row;
  int heads = 1, per_sequence = 0, per_head = 0;
};
static_assert(sizeof(Matrices) == 24, "no padding: launches with the same arguments look the same");

// The sides of the tile of a product that a warp works out. All sizes are multiples of it.
inline constexpr int kTile = 32;

struct AdamW {
  float step, decay, beta1, beta2, epsilon;  // step: the learning rate; decay: of weights, a step
};

// Powers of the two betas, and what the moments are scaled by. On the GPU, so that a graph's
// launches go on counting.
struct AdamWState {
  float power1, power2, step, root;
};

}  // namespace trainer
