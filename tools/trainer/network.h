// What a network looks like, before any of it exists on a GPU.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace trainer {

// Of one sample. A vector of features is {features, 1, 1}.
struct Shape {
  int channels = 1, height = 1, width = 1;
  int pixels() const { return height * width; }
  int size() const { return channels * height * width; }
};

enum class LayerKind { kDense, kConv2d, kRelu, kAveragePool };

struct LayerSpec {
  LayerKind kind;
  std::string name;  // "conv1"; its NVTX range is "layer:conv1"
  Shape in, out;
  int window = 0;  // side of a convolution's kernel or of a pooling window
  bool input_gradient =
      false;  // false up to and including the first layer with parameters: nobody needs it
};

struct NetworkSpec {
  std::string model;  // "mlp" or "cnn"
  Shape input;
  int classes = 0;
  std::vector<LayerSpec> layers;
};

// Dense 64-128-128-10 with ReLU between. fc1 and fc2 run the same kernels on the same grid forward,
// fc2 and fc3 backward, with different inner dimensions.
NetworkSpec mlp_network();

// 1x14x14 images: two convolutions of 3x3, each with ReLU and 2x2 average pooling, then dense
// 64-64-10.
NetworkSpec cnn_network();

// {"model", "classes", "input": [c,h,w], "layers": [{"name", "kind", ...}]}; README.md lists the
// fields by kind.
nlohmann::json to_json(const NetworkSpec& network);

}  // namespace trainer
