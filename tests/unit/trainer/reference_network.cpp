#include "reference_network.h"

#include <cmath>

namespace {

using trainer::LayerKind;
using trainer::LayerSpec;
using trainer::Shape;

// A volume addressed by (channel, row, column).
struct Volume {
  explicit Volume(Shape s) : shape(s), values(static_cast<size_t>(s.size())) {}
  double& at(int c, int y, int x) {
    return values[static_cast<size_t>((c * shape.height + y) * shape.width + x)];
  }
  double at(int c, int y, int x) const { return const_cast<Volume*>(this)->at(c, y, x); }
  Shape shape;
  std::vector<double> values;
};

// A dense layer is a convolution whose kernel covers the whole input: one formula for both.
Volume linear(const LayerSpec& layer, const Volume& in, std::span<const double> weights,
              std::span<const double> biases) {
  const bool dense = layer.kind == LayerKind::kDense;
  const int rows = dense ? in.shape.height : layer.window;
  const int columns = dense ? in.shape.width : layer.window;
  Volume out(layer.out);
  for (int co = 0; co < out.shape.channels; ++co) {
    for (int y = 0; y < out.shape.height; ++y) {
      for (int x = 0; x < out.shape.width; ++x) {
        double sum = biases[static_cast<size_t>(co)];
        auto weight = weights.begin() + co * in.shape.channels * rows * columns;
        for (int ci = 0; ci < in.shape.channels; ++ci) {
          for (int ky = 0; ky < rows; ++ky) {
            for (int kx = 0; kx < columns; ++kx) sum += in.at(ci, y + ky, x + kx) * *weight++;
          }
        }
        out.at(co, y, x) = sum;
      }
    }
  }
  return out;
}

Volume relu(Volume in) {
  for (double& value : in.values) value = std::fmax(value, 0.0);
  return in;
}

Volume average_pool(const LayerSpec& layer, const Volume& in) {
  Volume out(layer.out);
  const int size = layer.window;
  for (int c = 0; c < in.shape.channels; ++c) {
    for (int y = 0; y < out.shape.height * size; ++y) {
      for (int x = 0; x < out.shape.width * size; ++x) {
        out.at(c, y / size, x / size) += in.at(c, y, x) / (size * size);
      }
    }
  }
  return out;
}

// In bits.
double cross_entropy(std::span<const double> logits, int label) {
  double sum = 0;
  for (const double logit : logits) sum += std::exp2(logit);
  return std::log2(sum) - logits[static_cast<size_t>(label)];
}

}  // namespace

double reference_loss(const trainer::NetworkSpec& network, const Tensors& parameters,
                      std::span<const float> samples, std::span<const int> labels) {
  const auto features = static_cast<size_t>(network.input.size());
  double total = 0;
  for (size_t n = 0; n < labels.size(); ++n) {
    Volume value(network.input);
    for (size_t i = 0; i < features; ++i) value.values[i] = samples[n * features + i];
    size_t tensor = 0;
    for (const LayerSpec& layer : network.layers) {
      if (layer.kind == LayerKind::kRelu) {
        value = relu(std::move(value));
      } else if (layer.kind == LayerKind::kAveragePool) {
        value = average_pool(layer, value);
      } else {
        value = linear(layer, value, parameters[tensor], parameters[tensor + 1]);
        tensor += 2;
      }
    }
    total += cross_entropy(value.values, labels[n]);
  }
  return total / static_cast<double>(labels.size());
}

double reference_gradient(const trainer::NetworkSpec& network, Tensors& parameters, size_t tensor,
                          size_t index, std::span<const float> samples,
                          std::span<const int> labels) {
  constexpr double kStep = 1e-6;  // small, so that hardly any ReLU changes sides
  double& value = parameters[tensor][index];
  const double kept = value;
  value = kept + kStep;
  const double above = reference_loss(network, parameters, samples, labels);
  value = kept - kStep;
  const double below = reference_loss(network, parameters, samples, labels);
  value = kept;
  return (above - below) / (2 * kStep);
}

trainer::NetworkSpec odd_network() {
  trainer::NetworkSpec network{"odd", {2, 9, 7}, 3, {}};
  network.layers = {
      {LayerKind::kConv2d, "conv1", {2, 9, 7}, {3, 8, 6}, 2, false},
      {LayerKind::kRelu, "relu1", {3, 8, 6}, {3, 8, 6}, 0, true},
      {LayerKind::kAveragePool, "pool1", {3, 8, 6}, {3, 4, 3}, 2, true},
      {LayerKind::kConv2d, "conv2", {3, 4, 3}, {4, 2, 1}, 3, true},
      {LayerKind::kRelu, "relu2", {4, 2, 1}, {4, 2, 1}, 0, true},
      {LayerKind::kDense, "fc1", {4, 2, 1}, {5, 1, 1}, 0, true},
      {LayerKind::kRelu, "relu3", {5, 1, 1}, {5, 1, 1}, 0, true},
      {LayerKind::kDense, "fc2", {5, 1, 1}, {3, 1, 1}, 0, true},
  };
  return network;
}
