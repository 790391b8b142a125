// What the simulated driver observes each kernel doing, against tools/trainer/README.md's formulas.
#include <map>
#include <set>

#include "catch.h"
#include "gpt/gpt.h"
#include "launch_recorder.h"
#include "model.h"
#include "reference_network.h"

namespace {

using trainer::LayerKind;
using trainer::LayerSpec;
using trainer::Ranges;

struct Launch {
  std::string kernel;
  Operations operations;
};

uint64_t product(std::initializer_list<int> factors) {
  uint64_t result = 1;
  for (const int factor : factors) result *= static_cast<uint64_t>(factor);
  return result;
}

bool has_parameters(const LayerSpec& layer) {
  return layer.kind == LayerKind::kDense || layer.kind == LayerKind::kConv2d;
}

// Multiply-adds of a dense or convolution layer for one pass over the batch.
uint64_t multiply_adds(const LayerSpec& layer, int batch) {
  if (layer.kind == LayerKind::kDense) return product({batch, layer.in.size(), layer.out.size()});
  return product({batch, layer.out.channels, layer.out.height, layer.out.width, layer.in.channels,
                  layer.window, layer.window});
}

void expect_forward(const LayerSpec& layer, int batch, std::vector<Launch>& launches) {
  const uint64_t outputs = product({batch, layer.out.size()});
  switch (layer.kind) {
    case LayerKind::kDense:
      launches.push_back({"dense_forward", {0, 0, multiply_adds(layer, batch)}});
      break;
    case LayerKind::kConv2d:
      launches.push_back({"conv2d_forward", {0, 0, multiply_adds(layer, batch)}});
      break;
    case LayerKind::kRelu:
      launches.push_back({"relu_forward", {}});
      break;
    case LayerKind::kAveragePool:
      launches.push_back(
          {"average_pool_forward", {outputs * product({layer.window, layer.window}), outputs, 0}});
      break;
  }
}

void expect_backward(const LayerSpec& layer, int batch, std::vector<Launch>& launches) {
  if (layer.kind == LayerKind::kRelu) {
    launches.push_back({"relu_backward", {}});
  } else if (layer.kind == LayerKind::kAveragePool) {
    launches.push_back({"average_pool_backward", {0, product({batch, layer.in.size()}), 0}});
  } else {
    const std::string prefix = layer.kind == LayerKind::kDense ? "dense_" : "conv2d_";
    const Operations work{0, 0, multiply_adds(layer, batch)};
    const Launch weights{prefix + "weight_gradient", work};
    const Launch inputs{prefix + "input_gradient", work};
    const Launch biases{"bias_gradient", {product({batch, layer.out.size()}), 0, 0}};
    if (layer.kind == LayerKind::kDense) {  // the sum for biases is the engine's, after the node
      if (layer.input_gradient) launches.push_back(inputs);
      launches.push_back(weights);
      launches.push_back(biases);
    } else {  // one node computes all three
      launches.push_back(weights);
      launches.push_back(biases);
      if (layer.input_gradient) launches.push_back(inputs);
    }
  }
}

std::vector<Launch> expected_step(const trainer::NetworkSpec& network, int batch, bool momentum) {
  std::vector<Launch> launches;
  for (const LayerSpec& layer : network.layers) expect_forward(layer, batch, launches);
  const uint64_t logits = product({batch, network.classes});
  launches.push_back({"softmax_cross_entropy", {5 * logits, logits, 0}});
  launches.push_back({"mean_loss", {static_cast<uint64_t>(batch) + 127, 1, 0}});
  for (size_t i = network.layers.size(); i-- > 0;) {
    expect_backward(network.layers[i], batch, launches);
  }
  for (const LayerSpec& layer : network.layers) {
    if (!has_parameters(layer)) continue;
    const auto biases = static_cast<uint64_t>(layer.out.channels);
    const uint64_t weights =
        layer.kind == LayerKind::kDense
            ? product({layer.in.size(), layer.out.size()})
            : product({layer.in.channels, layer.out.channels, layer.window, layer.window});
    for (const uint64_t count : {weights, biases}) {
      launches.push_back({momentum ? "sgd_momentum" : "sgd", {0, 0, momentum ? 2 * count : count}});
    }
  }
  return launches;
}

std::vector<KernelExecution> observed_step(const trainer::NetworkSpec& network, int batch,
                                           float momentum) {
  const trainer::DriverApi api;
  const trainer::Context context(api);
  const trainer::Kernels kernels(api, TRAINER_KERNELS);
  const trainer::Stream stream(api);
  trainer::Model model(stream, kernels, network, {batch, 0.1f, momentum, 3});
  const LaunchRecorder recorder;
  model.set_batch(0);
  model.forward(Ranges::kOff);
  model.loss();
  model.backward(Ranges::kOff);
  model.update();
  stream.synchronize();
  return recorder.executions();
}

void check_step(const trainer::NetworkSpec& network, int batch, float momentum) {
  const std::vector<Launch> expected = expected_step(network, batch, momentum != 0.0f);
  const std::vector<KernelExecution> observed = observed_step(network, batch, momentum);
  REQUIRE(observed.size() == expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("launch " << i << ", " << expected[i].kernel);
    CHECK(observed[i].kernel == expected[i].kernel);
    CHECK(observed[i].operations == expected[i].operations);
  }
}

}  // namespace

TEST_CASE("every launch of a step does exactly the operations its shapes call for") {
  check_step(trainer::mlp_network(), 32, 0.0f);
  check_step(trainer::cnn_network(), 32, 0.0f);
  check_step(trainer::cnn_network(), 7, 0.9f);
  check_step(odd_network(), 3, 0.0f);
}

TEST_CASE("a batch larger than the block that sums the loss is counted in full") {
  check_step(odd_network(), 300, 0.0f);
}

TEST_CASE("products of unlike work share a kernel and a grid") {
  std::vector<KernelExecution> products;
  for (const KernelExecution& launch : observed_step(trainer::mlp_network(), 32, 0.0f)) {
    if (launch.kernel == "dense_forward") products.push_back(launch);
  }
  REQUIRE(products.size() == 3);
  CHECK(products[0].shape == products[1].shape);
  CHECK(products[0].operations.fma * 2 == products[1].operations.fma);
}

TEST_CASE(
    "every kernel of the GPT that is no product does exactly the operations of README's table") {
  trainer::GptOptions options;
  options.sizes = {1, 64, 2, 32, 96, 1};  // one sequence: as many tokens as positions
  const trainer::DriverApi api;
  const trainer::Context context(api);
  const trainer::GptKernels kernels(api, GPT_KERNELS);
  const trainer::Stream stream(api);
  trainer::Gpt model(stream, kernels, options);
  const LaunchRecorder recorder;
  model.set_batch(0);
  model.begin_step();
  model.forward(Ranges::kOff);
  model.loss();
  model.backward(Ranges::kOff);
  model.update();
  stream.synchronize();

  const uint64_t c = 64, n = 32, t = 32, rows = 2 * t, v = 96;
  const uint64_t values = n * c, hidden = n * 4 * c, p = options.sizes.parameters();
  const std::map<std::string, Operations> table = {
      {"add", {values, 0, 0}},
      {"gelu", {0, 3 * hidden, 2 * hidden}},
      {"gelu_backward", {0, 5 * hidden, 5 * hidden}},
      {"layer_norm", {n * (3 * c + 320), n * (c + 32), n * (2 * c + 32)}},
      {"layer_norm_backward", {n * (4 * c + 320), n * (5 * c + 64), n * 2 * c}},
      {"layer_norm_weight_gradient", {2 * values, values, values}},
      {"causal_softmax", {rows * (t + 160), rows * (t + 32), rows * 2 * t}},
      {"causal_softmax_backward", {rows * (t + 160), rows * 2 * t, rows * t}},
      {"embedding", {}},
      {"nll_loss_backward", {}},
      {"sum_leading", {values, 0, 0}},
      {"embedding_backward", {values, 0, 0}},
      {"log_softmax", {n * (3 * v + 160), n * v, n * 32}},
      {"nll_loss", {n + 32, 0, 1}},
      {"log_softmax_backward", {n * (v + 160), n * v, n * v}},
      {"adamw_advance", {2, 3, 0}},
      {"adamw", {2 * p, 2 * p, 5 * p}},
  };
  std::set<std::string> seen;
  for (const KernelExecution& execution : recorder.executions()) {
    INFO(execution.kernel);
    if (execution.kernel.starts_with("product_")) {
      CHECK(execution.operations == Operations{});
      continue;
    }
    REQUIRE(table.contains(execution.kernel));
    CHECK(execution.operations == table.at(execution.kernel));
    seen.insert(execution.kernel);
  }
  CHECK(seen.size() == table.size());
}
