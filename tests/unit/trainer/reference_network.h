// An independent double-precision model of the trainer's networks on the host: it computes the loss
// alone, and gradients come from it by finite differences.
#pragma once
#include <span>
#include <vector>

#include "network.h"

// Weights and biases of the layers that have some, in order: w, b, w, b, ...
using Tensors = std::vector<std::vector<double>>;

double reference_loss(const trainer::NetworkSpec& network, const Tensors& parameters,
                      std::span<const float> samples, std::span<const int> labels);

// dL/dp for one value, by central differences; `parameters` is unchanged on return.
double reference_gradient(const trainer::NetworkSpec& network, Tensors& parameters, size_t tensor,
                          size_t index, std::span<const float> samples,
                          std::span<const int> labels);

// 2 channels of 9x7, odd sizes everywhere: conv 2x2, relu, pool, conv 3x3, relu, dense 5, relu,
// dense 3.
trainer::NetworkSpec odd_network();
