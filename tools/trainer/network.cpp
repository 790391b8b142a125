#include "network.h"

#include <nlohmann/json.hpp>

namespace trainer {
namespace {

// Appends layers, each on the shape the one before it left.
class Builder {
 public:
  Builder(std::string model, Shape input, int classes) {
    network_.model = std::move(model);
    network_.input = input;
    network_.classes = classes;
  }

  Builder& dense(const char* name, int out) {
    return add({LayerKind::kDense, name, {}, {out, 1, 1}});
  }
  Builder& conv2d(const char* name, int channels, int kernel) {
    const Shape in = shape();
    return add({LayerKind::kConv2d,
                name,
                {},
                {channels, in.height - kernel + 1, in.width - kernel + 1},
                kernel});
  }
  Builder& relu(const char* name) { return add({LayerKind::kRelu, name, {}, shape()}); }
  Builder& average_pool(const char* name, int window) {
    const Shape in = shape();
    return add({LayerKind::kAveragePool,
                name,
                {},
                {in.channels, in.height / window, in.width / window},
                window});
  }
  NetworkSpec build() { return network_; }

 private:
  Shape shape() const {
    return network_.layers.empty() ? network_.input : network_.layers.back().out;
  }

  Builder& add(LayerSpec layer) {
    layer.in = shape();
    layer.input_gradient = has_parameters_;
    has_parameters_ |= layer.kind == LayerKind::kDense || layer.kind == LayerKind::kConv2d;
    network_.layers.push_back(std::move(layer));
    return *this;
  }

  NetworkSpec network_;
  bool has_parameters_ = false;
};

nlohmann::json to_json(const Shape& shape) { return {shape.channels, shape.height, shape.width}; }

nlohmann::json to_json(const LayerSpec& layer) {
  nlohmann::json json = {{"name", layer.name}, {"input_gradient", layer.input_gradient}};
  switch (layer.kind) {
    case LayerKind::kDense:
      json.update({{"kind", "dense"}, {"in", layer.in.size()}, {"out", layer.out.size()}});
      break;
    case LayerKind::kConv2d:
      json.update({{"kind", "conv2d"},
                   {"in", to_json(layer.in)},
                   {"out", to_json(layer.out)},
                   {"kernel", layer.window}});
      break;
    case LayerKind::kRelu:
      json.update({{"kind", "relu"}, {"in", to_json(layer.in)}, {"out", to_json(layer.out)}});
      break;
    case LayerKind::kAveragePool:
      json.update({{"kind", "average_pool"},
                   {"in", to_json(layer.in)},
                   {"out", to_json(layer.out)},
                   {"window", layer.window}});
      break;
  }
  return json;
}

}  // namespace

NetworkSpec mlp_network() {
  return Builder("mlp", {64, 1, 1}, 10)
      .dense("fc1", 128)
      .relu("relu1")
      .dense("fc2", 128)
      .relu("relu2")
      .dense("fc3", 10)
      .build();
}

NetworkSpec cnn_network() {
  return Builder("cnn", {1, 14, 14}, 10)
      .conv2d("conv1", 8, 3)
      .relu("relu1")
      .average_pool("pool1", 2)
      .conv2d("conv2", 16, 3)
      .relu("relu2")
      .average_pool("pool2", 2)
      .dense("fc1", 64)
      .relu("relu3")
      .dense("fc2", 10)
      .build();
}

nlohmann::json to_json(const NetworkSpec& network) {
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerSpec& layer : network.layers) layers.push_back(to_json(layer));
  return {{"model", network.model},
          {"classes", network.classes},
          {"input", to_json(network.input)},
          {"layers", layers}};
}

}  // namespace trainer
