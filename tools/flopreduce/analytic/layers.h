// FLOP of common layers from their hyper-parameters, a multiply-add counted as 2, forward, per sample,
// token or time step: the table of "Estimating Training Compute of Deep Learning Models" (Sevilla et
// al., 2022). Figures from the sizes of tensors are in operator_flop.h.
#pragma once
#include <cstdint>

#include "support/wide.h"

namespace flopinj::reduce {

// 2 N M: a product of N inputs with N x M weights.
u128 fully_connected_flop(uint64_t inputs, uint64_t outputs);

// Two layers, N -> M -> N.
u128 feed_forward_flop(uint64_t width, uint64_t hidden);

// 4 x 2 (N + M) M: four gates, each a product of input and state with their weights.
u128 lstm_step_flop(uint64_t inputs, uint64_t units);

// 3 x 2 (N + M) M: three gates.
u128 gru_step_flop(uint64_t inputs, uint64_t units);

// Multi-head attention for one token: 2 H (W (2 D + N) + L (D + N) + N M).
struct AttentionLayer {
  uint64_t heads = 1;     // H
  uint64_t input = 0;     // W, of one head
  uint64_t key = 0;       // D, of one head
  uint64_t value = 0;     // N, of one head
  uint64_t sequence = 0;  // L, tokens attended to
  uint64_t output = 0;    // M, of all heads together
};
u128 attention_flop(const AttentionLayer& layer);

// Direct convolution, 2 H' W' C K K D: for each of H' W' D output elements, C K K products.
u128 convolution_flop(uint64_t output_pixels, uint64_t input_channels, uint64_t kernel_elements,
                      uint64_t output_channels);

// (size - kernel + 2 padding) / stride + 1, rounded down; 0 where nothing fits.
uint64_t convolution_output(uint64_t size, uint64_t kernel, uint64_t padding, uint64_t stride);

}  // namespace flopinj::reduce
