// The trainer's GPT, run by the simulated driver, against models in double precision on the host.
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "catch.h"
#include "gpt/gpt.h"
#include "gpt_reference.h"

namespace {

using trainer::Ranges;

using Doubles = std::vector<double>;

Doubles doubles(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// bf16 has 8 significant bits. By the definition, not by the bits of a float.
double to_bf16(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

// A model on the simulated GPU, after some steps of training.
struct Fixture {
  Fixture(const trainer::GptOptions& options, int steps) : model(stream, kernels, options) {
    for (int step = 0; step < steps; ++step) {
      compute_gradients(step);
      model.update();
    }
  }

  void compute_gradients(int step) {
    model.set_batch(step);
    model.begin_step();
    for (int i = 0; i < model.micro_batches(); ++i) {
      model.use_micro_batch(i);
      model.forward(Ranges::kOff);
      model.loss();
      model.backward(Ranges::kOff);
    }
  }

  trainer::DriverApi api;
  trainer::Context context{api};
  trainer::GptKernels kernels{api, GPT_KERNELS};
  trainer::Stream stream{api};
  trainer::Gpt model;
};

constexpr int kTrained = 3;  // steps before gradients are looked at

// Activations and their gradients are rounded to 8 bits, some twenty times in a row: 2^-9 times the
// root of that is 1 %.
constexpr double kTolerance = 0.03;

void check_gradients(const trainer::GptOptions& options) {
  Fixture gpu(options, kTrained);
  gpu.compute_gradients(kTrained);
  const Doubles gradient = doubles(gpu.model.parameters().gradients());
  Doubles parameters = doubles(gpu.model.parameters().values());
  for (double& value : parameters) value = to_bf16(value);

  const auto loss = [&] {
    return gpt_reference_loss(options.sizes, parameters, gpu.model.data().tokens(kTrained),
                              gpu.model.data().labels(kTrained));
  };
  CHECK(gpu.model.read_loss() == Approx(loss()).epsilon(kTolerance));

  // The derivative of the loss along `direction`, of the values from `at` on.
  const auto slope = [&](size_t at, const Doubles& direction) {
    const double step = 1e-5;
    const auto move = [&](double by) {
      for (size_t i = 0; i < direction.size(); ++i) parameters[at + i] += by * direction[i];
    };
    move(step);
    const double above = loss();
    move(-2 * step);
    const double below = loss();
    move(step);
    return (above - below) / (2 * step);
  };

  std::mt19937_64 random(5);
  size_t at = 0;
  for (const std::vector<int>& shape : gpu.model.parameters().shapes()) {
    const auto count =
        static_cast<size_t>(std::accumulate(shape.begin(), shape.end(), 1, std::multiplies<>()));
    const auto begin = gradient.begin() + static_cast<std::ptrdiff_t>(at);
    Doubles along(begin, begin + static_cast<std::ptrdiff_t>(count));
    const double length =
        std::sqrt(std::inner_product(along.begin(), along.end(), along.begin(), 0.0));
    INFO("tensor of " << count << " values from " << at);
    REQUIRE(length > 1e-4);  // zeros would agree with zeros
    for (double& value : along) value /= length;
    CHECK(slope(at, along) == Approx(length).epsilon(kTolerance));
    const double typical = length / std::sqrt(static_cast<double>(count));
    for (int i = 0; i < 3; ++i) {
      const size_t one = at + random() % count;
      CHECK(gradient[one] == Approx(slope(one, {1})).margin(4 * kTolerance * typical));
    }
    at += count;
  }
  CHECK(at == gradient.size());
}

float from_bits(trainer::Bf16 bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

trainer::GptOptions small() {
  trainer::GptOptions options;
  options.sizes = {2, 64, 2, 32, 32, 1};
  options.seed = 11;
  return options;
}

}  // namespace

TEST_CASE("gradients of the GPT agree with differences of a model in double precision") {
  check_gradients(small());
}

TEST_CASE("gradients of micro-batches add up to that of their mean loss") {
  trainer::GptOptions options = small();
  options.micro_batches = 2;
  options.sizes.layers = 1;
  check_gradients(options);
}

TEST_CASE("gradients of more tokens than one tile has, and of heads of more values") {
  trainer::GptOptions options = small();
  options.sizes = {1, 64, 1, 64, 96, 1};
  options.checkpoint = true;
  check_gradients(options);
}

TEST_CASE("blocks that run again in backward give the same gradients to the last bit") {
  trainer::GptOptions options = small();
  Fixture kept(options, kTrained);
  options.checkpoint = true;
  Fixture again(options, kTrained);
  CHECK(kept.model.parameters().values() == again.model.parameters().values());
}

TEST_CASE("GELU and its slope are those of its formula") {
  Fixture gpu(small(), 0);
  constexpr int kCount = 256;
  std::vector<trainer::Bf16> ones(kCount, 0x3f80), x(kCount);
  for (int i = 0; i < kCount; ++i) {  // from -4 on, in steps that bf16 has
    const float value = static_cast<float>(i - kCount / 2) / 32;
    x[static_cast<size_t>(i)] = static_cast<trainer::Bf16>(std::bit_cast<uint32_t>(value) >> 16);
  }
  trainer::Buffer<trainer::Bf16> in(gpu.api, kCount), slope(gpu.api, kCount), y(gpu.api, kCount);
  in.upload(gpu.stream, x);
  slope.upload(gpu.stream, ones);
  const trainer::LaunchShape shape = trainer::one_per_item(kCount);
  gpu.kernels.gelu.launch(gpu.stream, shape, kCount, in.address(), y.address());
  gpu.kernels.gelu_backward.launch(gpu.stream, shape, kCount, in.address(), slope.address(),
                                   slope.address());
  const auto found = y.download(gpu.stream), found_slope = slope.download(gpu.stream);
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = from_bits(x[i]), step = 1e-6;
    const double expected = (gelu(at + step) - gelu(at - step)) / (2 * step);
    INFO("at " << at);
    // Rounded to bf16; tanh.approx errs by 2^-11.
    CHECK(from_bits(found[i]) == Approx(gelu(at)).epsilon(0.004).margin(0.002));
    CHECK(from_bits(found_slope[i]) == Approx(expected).epsilon(0.004).margin(0.004));
  }
}

TEST_CASE("AdamW moves weights as its authors wrote it") {
  const trainer::GptOptions options = small();
  Fixture gpu(options, 0);
  Doubles expected = doubles(gpu.model.parameters().values());
  Doubles first(expected.size()), second(expected.size());
  const double rate = options.learning_rate, decay = 0.01, beta1 = 0.9, beta2 = 0.99;
  for (int step = 1; step <= 3; ++step) {
    gpu.compute_gradients(step);
    const std::vector<float> gradient = gpu.model.parameters().gradients();
    gpu.model.update();
    const std::vector<float> found = gpu.model.parameters().values();
    double largest = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      const double g = gradient[i];
      first[i] = beta1 * first[i] + (1 - beta1) * g;
      second[i] = beta2 * second[i] + (1 - beta2) * g * g;
      const double mean = first[i] / (1 - std::pow(beta1, step));
      const double square = second[i] / (1 - std::pow(beta2, step));
      expected[i] -= rate * (mean / (std::sqrt(square) + 1e-8) + decay * expected[i]);
      largest = std::fmax(largest, std::fabs(found[i] - expected[i]));
    }
    CHECK(largest < 1e-3 * rate);
  }
}
