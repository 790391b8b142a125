// An independent double-precision model of the trainer's GPT on the host: it computes the loss
// alone, and gradients come from it by differences.
#pragma once
#include <span>
#include <vector>

#include "gpt/sizes.h"

double gelu(double x);  // by tanh

// One sequence's loss or several's mean, from all parameters in the trainer's order: embeddings of
// tokens and of positions; of each block the first norm (weights, biases), queries, keys and values
// (a row an output), the projection, the second norm, the MLP's two matrices; the last norm, the
// head.
double gpt_reference_loss(const trainer::GptSizes& sizes, std::span<const double> parameters,
                          std::span<const int> tokens, std::span<const int> labels);
