// The trainer's kernels, run by the simulated driver, against a model in double precision on the
// host.
#include <cmath>

#include "catch.h"
#include "model.h"
#include "reference_network.h"

namespace {

using trainer::Ranges;

// A model and its batch on the simulated GPU.
struct Fixture {
  Fixture(const trainer::NetworkSpec& spec, int batch, float momentum = 0.0f)
      : network(spec), model(stream, kernels, spec, {batch, 0.25f, momentum, 11}) {
    model.set_batch(0);
  }

  void compute_gradients() {
    model.forward(Ranges::kOff);
    model.loss();
    model.backward(Ranges::kOff);
  }

  std::vector<trainer::Parameter*> parameters() {
    std::vector<trainer::Parameter*> all;
    for (const auto& layer : model.layers()) {
      for (trainer::Parameter& parameter : layer->parameters()) all.push_back(&parameter);
    }
    return all;
  }

  Tensors values() {
    Tensors tensors;
    for (const trainer::Parameter* parameter : parameters()) {
      const std::vector<float> values = parameter->value.download(stream);
      tensors.emplace_back(values.begin(), values.end());
    }
    return tensors;
  }

  trainer::DriverApi api;
  trainer::Context context{api};
  trainer::Kernels kernels{api, TRAINER_KERNELS};
  trainer::Stream stream{api};
  trainer::NetworkSpec network;
  trainer::Model model;
};

void check_against_reference(const trainer::NetworkSpec& network, int batch) {
  Fixture gpu(network, batch);
  gpu.compute_gradients();
  Tensors parameters = gpu.values();
  const auto samples = gpu.model.data().samples(0);
  const auto labels = gpu.model.data().labels(0);
  CHECK(gpu.model.read_loss() ==
        Approx(reference_loss(network, parameters, samples, labels)).epsilon(1e-5));

  const auto all = gpu.parameters();
  for (size_t tensor = 0; tensor < all.size(); ++tensor) {
    const std::vector<float> gradient = all[tensor]->gradient.download(gpu.stream);
    const size_t stride = gradient.size() / 40 + 1;  // some forty values of each tensor
    double largest = 0;
    for (size_t i = 0; i < gradient.size(); i += stride) {
      const double expected = reference_gradient(network, parameters, tensor, i, samples, labels);
      INFO("tensor " << tensor << ", value " << i);
      CHECK(gradient[i] == Approx(expected).epsilon(1e-3).margin(2e-6));
      largest = std::fmax(largest, std::fabs(expected));
    }
    CHECK(largest > 1e-4);  // zeros would agree with zeros
  }
}

}  // namespace

TEST_CASE("gradients of the perceptron agree with finite differences") {
  check_against_reference(trainer::mlp_network(), 6);
}

TEST_CASE("gradients of the convolutional network agree with finite differences") {
  check_against_reference(trainer::cnn_network(), 5);
}

TEST_CASE("gradients agree for sizes that fill no block and for images that are not square") {
  check_against_reference(odd_network(), 3);
}

TEST_CASE("gradient descent moves parameters against the gradient") {
  Fixture gpu(odd_network(), 3);
  gpu.compute_gradients();
  const trainer::Parameter& weight = *gpu.parameters().front();
  const std::vector<float> before = weight.value.download(gpu.stream);
  const std::vector<float> gradient = weight.gradient.download(gpu.stream);
  gpu.model.update();
  const std::vector<float> after = weight.value.download(gpu.stream);
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i] == std::fma(-0.25f, gradient[i], before[i]));
  }
}

TEST_CASE("momentum carries the earlier gradient into the second update") {
  Fixture gpu(odd_network(), 3, 0.5f);
  const trainer::Parameter& weight = *gpu.parameters().front();
  std::vector<float> expected = weight.value.download(gpu.stream);
  std::vector<float> velocity(expected.size());
  for (int step = 0; step < 2; ++step) {
    gpu.compute_gradients();
    const std::vector<float> gradient = weight.gradient.download(gpu.stream);
    gpu.model.update();
    for (size_t i = 0; i < expected.size(); ++i) {
      velocity[i] = std::fma(0.5f, velocity[i], gradient[i]);
      expected[i] = std::fma(-0.25f, velocity[i], expected[i]);
    }
  }
  CHECK(weight.value.download(gpu.stream) == expected);
}
