// Element-wise operators, norms and losses against their definitions (torch.nn's documentation),
// written with a number that counts. Gradients are held against differences of the forward
// definition, so that what is counted is the gradient.
#include <functional>
#include <random>

#include "counted.h"
#include "operator_names.h"

using namespace flopinj::reduce;
using namespace flopinj::test;

namespace {

// What `work` did, in multiply-adds, single and other operations.
OperatorFlop counted(const std::function<void()>& work) {
  Counted::tally = {};
  work();
  return {Counted::tally.fused, Counted::tally.single, Counted::tally.other};
}

double derivative(const std::function<double(double)>& f, double x) {
  constexpr double h = 1e-5;
  return (f(x + h) - f(x - h)) / (2 * h);
}

constexpr double kAlpha = 1.3, kBeta = 0.8;
const double kPi = std::acos(-1.0);

Counted sigmoid(Counted x) { return 1.0 / (1.0 + exp(-x)); }

struct Activation {
  const char* name;
  double x;  // where every part of the definition is in use
  Counted (*forward)(Counted x);
  // By dy and x, or by dy and the result where `by_result`.
  Counted (*backward)(Counted dy, Counted x) = nullptr;
  const char* backward_name = nullptr;
  bool by_result = false;
};

const Activation kActivations[] = {
    {"relu", 0.7, [](Counted x) { return max(x, 0); },
     [](Counted dy, Counted x) { return x > 0 ? dy : Counted(0); }, "threshold_backward"},
    {"leaky_relu", -0.7, [](Counted x) { return x > 0 ? x : 0.01 * x; },
     [](Counted dy, Counted x) { return x > 0 ? dy : 0.01 * dy; }, "leaky_relu_backward"},
    {"prelu", -0.7, [](Counted x) { return x > 0 ? x : kAlpha * x; }},
    {"relu6", 0.7, [](Counted x) { return min(max(x, 0), 6); }},
    {"hardtanh", 0.7, [](Counted x) { return min(max(x, -1), 1); },
     [](Counted dy, Counted x) { return !(-1.0 > x) & !(x > 1) ? dy : Counted(0); },
     "hardtanh_backward"},
    {"hardsigmoid", 0.7, [](Counted x) { return min(max(x + 3.0, 0), 6) / 6.0; },
     [](Counted dy, Counted x) { return (x > -3) & (3.0 > x) ? dy / 6.0 : Counted(0); },
     "hardsigmoid_backward"},
    {"hardswish", 0.7, [](Counted x) { return x * min(max(x + 3.0, 0), 6) / 6.0; },
     [](Counted dy, Counted x) {
       return (x > -3) & (3.0 > x) ? dy * fused(x, 1.0 / 3, 0.5) : Counted(0);
     },
     "hardswish_backward"},
    {"elu", -0.7, [](Counted x) { return x > 0 ? x : kAlpha * (exp(x) - 1.0); },
     [](Counted dy, Counted x) { return x > 0 ? dy : dy * kAlpha * exp(x); }, "elu_backward"},
    {"selu", -0.7, [](Counted x) { return 1.0507 * (x > 0 ? x : 1.6733 * (exp(x) - 1.0)); }},
    {"celu", -0.7, [](Counted x) { return x > 0 ? x : kAlpha * (exp(x / kAlpha) - 1.0); }},
    {"sigmoid", 0.7, sigmoid, [](Counted dy, Counted y) { return dy * y * (1.0 - y); },
     "sigmoid_backward", true},
    {"log_sigmoid", 0.7, [](Counted x) { return min(x, 0) - log(1.0 + exp(-abs(x))); },
     [](Counted dy, Counted x) { return dy / (1.0 + exp(x)); }, "log_sigmoid_backward"},
    {"tanh", 0.7, [](Counted x) { return tanh(x); },
     [](Counted dy, Counted y) { return dy * fused(-y, y, 1); }, "tanh_backward", true},
    {"softplus", 0.7, [](Counted x) { return x > 20 ? x : log(1.0 + exp(kBeta * x)) / kBeta; },
     [](Counted dy, Counted x) {
       if (x > 20) return dy;
       const Counted z = exp(kBeta * x);
       return dy * (z / (1.0 + z));
     },
     "softplus_backward"},
    {"silu", 0.7, [](Counted x) { return x / (1.0 + exp(-x)); },
     [](Counted dy, Counted x) {
       const Counted s = sigmoid(x);
       return dy * s * fused(x, 1.0 - s, 1);
     },
     "silu_backward"},
    {"mish", 0.7, [](Counted x) { return x * tanh(log(1.0 + exp(x))); },
     [](Counted dy, Counted x) {
       const Counted t = tanh(log(1.0 + exp(x))), s = sigmoid(x);
       return dy * fused(x * s, fused(-t, t, 1), t);
     },
     "mish_backward"},
    {"gelu", 0.7, [](Counted x) { return 0.5 * x * (1.0 + erf(x * std::sqrt(0.5))); },
     [](Counted dy, Counted x) {
       const Counted cdf = 0.5 * (1.0 + erf(x * std::sqrt(0.5)));
       const Counted pdf = 1 / std::sqrt(2 * kPi) * exp(-0.5 * (x * x));
       return dy * fused(x, pdf, cdf);
     },
     "gelu_backward"},
    {"square", 0.7, [](Counted x) { return x * x; }},
    {"reciprocal", 0.7, [](Counted x) { return 1.0 / x; }},
    {"_foreach_sigmoid", 0.7, sigmoid},
};

}  // namespace

TEST_CASE("activations equal their definitions, and gradients the derivatives") {
  const Shape x{3, 5};
  for (const Activation& a : kActivations) {
    INFO(a.name);
    // A list of one tensor is printed as the tensor.
    const bool list = std::string(a.name).starts_with("_foreach_");
    CHECK(flop_of(list ? range(a.name, {x}) : range(a.name, {x, {}, {}})) ==
          counted([&] { a.forward(a.x); }).times(15));
    if (a.backward == nullptr) continue;
    const Counted at = a.by_result ? a.forward(a.x) : Counted(a.x);
    CHECK(a.backward(0.9, at).value ==
          Approx(0.9 * derivative([&](double v) { return a.forward(v).value; }, a.x)));
    const Formula back = formula_of(range(a.backward_name, {x, x, {}}));
    REQUIRE(back.flop);
    CHECK(back.backward);
    CHECK(*back.flop == counted([&] { a.backward(0.9, at); }).times(15));
  }
}

TEST_CASE("gated linear units: half of the elements, and both halves' gradients") {
  const double a = 0.4, b = 0.7, dy = 0.9;
  CHECK(flop_of("aten::glu, sizes = [[3, 10], []]") ==
        counted([&] { (void)(a * sigmoid(b)); }).times(15));
  Counted da, db;
  const OperatorFlop count = counted([&] {
    const Counted s = sigmoid(b);
    da = dy * s;
    db = da * a * (1.0 - s);
  });
  CHECK(da.value == Approx(dy * sigmoid(b).value));
  CHECK(db.value == Approx(dy * derivative([&](double v) { return a * sigmoid(v).value; }, b)));
  CHECK(flop_of("aten::glu_backward, sizes = [[3, 5], [3, 10], []]") == count.times(15));
}

namespace {

// Every loss is a sum over elements that begins at 0; its gradient is scaled by 1 / n and by dy.
struct Loss {
  const char* name;
  double x, t;
  void (*add)(Counted& sum, Counted x, Counted t);
  Counted (*backward)(Counted dy, Counted x, Counted t, double scale) = nullptr;
};

Counted log_sigmoid(Counted x) { return min(x, 0) - log(1.0 + exp(-abs(x))); }

const Loss kLosses[] = {
    {"mse_loss", 0.7, 0.2,
     [](Counted& sum, Counted x, Counted t) {
       const Counted d = x - t;
       sum = fused(d, d, sum);
     },
     [](Counted dy, Counted x, Counted t, double scale) { return dy * ((x - t) * (2 * scale)); }},
    {"l1_loss", 0.7, 0.2, [](Counted& sum, Counted x, Counted t) { sum += abs(x - t); }},
    {"smooth_l1_loss", 0.7, 0.2,
     [](Counted& sum, Counted x, Counted t) {
       const Counted d = abs(x - t);
       if (!(d > kBeta)) sum = fused(d * d, 0.5 / kBeta, sum);
     },
     [](Counted dy, Counted x, Counted t, double scale) {
       const Counted d = x - t;
       return !(-kBeta > d) & !(d > kBeta) ? dy * (d / kBeta * scale) : Counted(0);
     }},
    {"huber_loss", 0.7, 0.2,
     [](Counted& sum, Counted x, Counted t) {
       const Counted d = abs(x - t);
       if (!(d > kBeta)) sum = fused(d * d, 0.5, sum);
     },
     [](Counted dy, Counted x, Counted t, double scale) {
       const Counted d = x - t;
       return !(-kBeta > d) & !(d > kBeta) ? dy * (d * scale) : Counted(0);
     }},
    {"kl_div", -0.7, 0.2,
     [](Counted& sum, Counted x, Counted t) { sum = fused(t, log(t) - x, sum); }},
    {"binary_cross_entropy", 0.7, 0.2,
     [](Counted& sum, Counted p, Counted t) {
       const Counted yes = max(log(p), -100), no = max(log(1.0 - p), -100);
       sum += -fused(t, yes, (1.0 - t) * no);
     },
     [](Counted dy, Counted p, Counted t, double scale) {
       return dy * ((p - t) / max((1.0 - p) * p, 1e-12) * scale);
     }},
    {"binary_cross_entropy_with_logits", 0.7, 0.2,
     [](Counted& sum, Counted x, Counted t) { sum += fused(1.0 - t, x, -log_sigmoid(x)); }},
};

}  // namespace

TEST_CASE("losses equal their definitions, and gradients the derivatives") {
  const Shape x{3, 5};
  for (const Loss& l : kLosses) {
    INFO(l.name);
    Counted sum;
    CHECK(flop_of(range(l.name, {x, x, {}})) == counted([&] { l.add(sum, l.x, l.t); }).times(15));
    if (l.backward == nullptr) continue;
    const auto forward = [&](double v) {
      Counted s;
      l.add(s, v, l.t);
      return s.value / 15;
    };
    CHECK(l.backward(0.9, l.x, l.t, 1.0 / 15).value == Approx(0.9 * derivative(forward, l.x)));
    CHECK(flop_of(range(std::string(l.name) + "_backward", {{}, x, x, {}})) ==
          counted([&] { l.backward(0.9, l.x, l.t, 1.0 / 15); }).times(15));
  }
}

namespace {

Row random_row(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> number(-1, 1);
  Row row(n);
  for (Counted& x : row) x = number(random);
  return row;
}

// sum of weights x results, which has the weights as its gradient by the results.
double loss_of(const Row& results, const Row& weights) {
  double sum = 0;
  for (size_t i = 0; i < results.size(); ++i) sum += results[i].value * weights[i].value;
  return sum;
}

// Whether `gradient` is that of sum(dy f(x)) by x.
void check_gradient(const std::function<Row(const Row&)>& f, const Row& x, const Row& dy,
                    const Row& gradient) {
  REQUIRE(gradient.size() == x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const auto at = [&](double v) {
      Row moved = x;
      moved[i] = v;
      return loss_of(f(moved), dy);
    };
    CHECK(gradient[i].value == Approx(derivative(at, x[i].value)).margin(1e-6));
  }
}

Row softmax(const Row& x) {
  Counted most = -1e300, sum;
  for (const Counted v : x) most = max(most, v);
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) sum += y[i] = exp(x[i] - most);
  for (Counted& v : y) v = v / sum;
  return y;
}

Row softmax_gradient(const Row& dy, const Row& y) {
  Counted sum;
  for (size_t i = 0; i < y.size(); ++i) sum = fused(dy[i], y[i], sum);
  Row dx(y.size());
  for (size_t i = 0; i < y.size(); ++i) dx[i] = (dy[i] - sum) * y[i];
  return dx;
}

Row log_softmax(const Row& x) {
  Counted most = -1e300, sum;
  for (const Counted v : x) most = max(most, v);
  Row y(x.size());
  for (size_t i = 0; i < x.size(); ++i) sum += exp(y[i] = x[i] - most);
  const Counted log_sum = std::log(sum.value);  // once for the row
  for (Counted& v : y) v = v - log_sum;
  return y;
}

Row log_softmax_gradient(const Row& dy, const Row& y) {
  Counted sum;
  for (const Counted v : dy) sum += v;
  Row dx(y.size());
  for (size_t i = 0; i < y.size(); ++i) dx[i] = fused(-exp(y[i]), sum, dy[i]);
  return dx;
}

}  // namespace

TEST_CASE("softmax and its logarithm equal the algorithm, and gradients the derivatives") {
  const Row x = random_row(40, 1), dy = random_row(40, 2);
  const Shape shape{40};
  for (const char* name : {"softmax", "_softmax"})
    CHECK(flop_of(range(name, {shape, {}, {}})) == counted([&] { softmax(x); }));
  for (const char* name : {"log_softmax", "_log_softmax", "cross_entropy_loss"})
    CHECK(flop_of(range(name, {shape, {}, {}})) == counted([&] { log_softmax(x); }));
  check_gradient(softmax, x, dy, softmax_gradient(dy, softmax(x)));
  check_gradient(log_softmax, x, dy, log_softmax_gradient(dy, log_softmax(x)));
  const Row y = softmax(x);
  CHECK(flop_of(range("_softmax_backward_data", {shape, shape, {}, {}})) ==
        counted([&] { softmax_gradient(dy, y); }));
  CHECK(flop_of(range("_log_softmax_backward_data", {shape, shape, {}, {}})) ==
        counted([&] { log_softmax_gradient(dy, y); }));
}

namespace {

// Where a norm's elements are alike in mean, variance, scale and shift.
struct NormKind {
  bool per_channel = false;  // scale and shift: of the whole row, or of each element
  bool scale = true, shift = true;
  bool root_mean_square = false;
  bool running = false;  // statistics are given
};

struct Gradients {
  Row x, scale, shift;
};

// One row of a norm, and its gradients, statistics' ends worked out once and not counted.
class Norm {
 public:
  Norm(const NormKind& kind, size_t n) : kind_(kind), n_(static_cast<double>(n)) {
    gamma_ = random_row(n, 3), beta_ = random_row(n, 4);
    if (kind.per_channel)
      std::fill(gamma_.begin(), gamma_.end(), gamma_[0]),
          std::fill(beta_.begin(), beta_.end(), beta_[0]);
  }

  Row forward(const Row& x) {
    Counted sum, squares;
    if (kind_.root_mean_square) {
      for (const Counted v : x) squares = fused(v, v, squares);
      scale_ = 1 / std::sqrt(squares.value / n_);
    } else if (!kind_.running) {
      for (const Counted v : x) sum += v;
      mean_ = sum.value / n_;
    }
    Row d = x;
    if (!kind_.root_mean_square)
      for (Counted& v : d) v = v - mean_;
    if (!kind_.root_mean_square && !kind_.running) {
      for (const Counted v : d) squares = fused(v, v, squares);
      scale_ = 1 / std::sqrt(squares.value / n_);
    }
    for (size_t i = 0; i < d.size(); ++i) {
      d[i] = d[i] * scale_;
      if (kind_.scale && kind_.shift)
        d[i] = fused(d[i], gamma_[i], beta_[i]);
      else if (kind_.scale)
        d[i] = d[i] * gamma_[i];
    }
    return d;
  }

  // Batch norm: gamma belongs to the whole row, and is left out of the sums.
  Gradients backward_of_channel(const Row& x, const Row& dy) const {
    Gradients g;
    Row xhat(x.size());
    Counted sum, products;
    const bool sums = !kind_.running || kind_.scale;
    if (sums)
      for (size_t i = 0; i < x.size(); ++i) {
        xhat[i] = kind_.running ? x[i] - mean_ : (x[i] - mean_) * scale_;
        sum += dy[i];
        products = fused(dy[i], xhat[i], products);
      }
    const double factor = (kind_.scale ? gamma_[0].value : 1) * scale_;
    const Counted mean = sum.value / n_, slope = -products.value / n_;
    for (size_t i = 0; i < x.size(); ++i)
      g.x.push_back((kind_.running ? dy[i] : fused(xhat[i], slope, dy[i] - mean)) * factor);
    g.scale = {products.value * (kind_.running ? scale_ : 1)}, g.shift = {sum};
    return g;
  }

  // Layer and RMS norm: gamma belongs to an element, and its gradient to a column.
  Gradients backward(const Row& x, const Row& dy) const {
    Gradients g;
    Row xhat(x.size()), gy = dy;
    Counted sum, products;
    for (size_t i = 0; i < x.size(); ++i) {
      xhat[i] = (kind_.root_mean_square ? x[i] : x[i] - mean_) * scale_;
      if (kind_.scale) gy[i] = dy[i] * gamma_[i];
      if (!kind_.root_mean_square) sum += gy[i];
      products = fused(gy[i], xhat[i], products);
      if (kind_.scale) g.scale.push_back(fused(dy[i], xhat[i], 0));
      if (kind_.scale && kind_.shift) g.shift.push_back(dy[i] + 0.0);
    }
    const Counted mean = sum.value / n_, slope = -products.value / n_;
    for (size_t i = 0; i < x.size(); ++i)
      g.x.push_back(fused(xhat[i], slope, kind_.root_mean_square ? gy[i] : gy[i] - mean) * scale_);
    return g;
  }

  // Group norm: gamma belongs to a channel of several elements; the sums of a channel are those of
  // its gradients, and the group's are made of them, once for the channel.
  Gradients backward_of_group(const Row& x, const Row& dy) const {
    Gradients g;
    Row xhat(x.size());
    Counted sum, products;
    for (size_t i = 0; i < x.size(); ++i) {
      xhat[i] = (x[i] - mean_) * scale_;
      sum += dy[i];
      products = fused(dy[i], xhat[i], products);
    }
    const double gamma = kind_.scale ? gamma_[0].value : 1;
    const Counted mean = sum.value * gamma / n_, slope = -products.value * gamma / n_;
    for (size_t i = 0; i < x.size(); ++i) {
      const Counted gy = kind_.scale ? dy[i] * gamma : dy[i];
      g.x.push_back(fused(xhat[i], slope, gy - mean) * scale_);
    }
    g.scale = {products}, g.shift = {sum};
    return g;
  }

  void set_running(double mean, double scale) { mean_ = mean, scale_ = scale; }

 private:
  NormKind kind_;
  double n_, mean_ = 0, scale_ = 1;
  Row gamma_, beta_;
};

constexpr size_t kWidth = 24;
const Shape kRow{1, 24}, kWeight{24}, kNone{};

// `backward` of the class above; `kind.running` with statistics 0.2 and 1.7.
void check_norm(const NormKind& kind, Gradients (Norm::*backward)(const Row&, const Row&) const,
                const OperatorFlop& forward_formula, const OperatorFlop& backward_formula) {
  const Row x = random_row(kWidth, 5), dy = random_row(kWidth, 6);
  Norm norm(kind, kWidth);
  norm.set_running(0.2, 1.7);
  CHECK(forward_formula == counted([&] { norm.forward(x); }));
  Gradients g;
  CHECK(backward_formula == counted([&] { g = (norm.*backward)(x, dy); }));
  Norm same(kind, kWidth);
  same.set_running(0.2, 1.7);
  check_gradient([&](const Row& v) { return same.forward(v); }, x, dy, g.x);
}

}  // namespace

TEST_CASE("layer, RMS and group norm equal the algorithm, with and without scale and shift") {
  for (const auto& [scale, shift] : {std::pair{true, true}, {true, false}, {false, false}}) {
    const Shape weight = scale ? kWeight : kNone, bias = shift ? kWeight : kNone;
    check_norm(
        {.scale = scale, .shift = shift}, &Norm::backward,
        flop_of(range("layer_norm", {kRow, {}, weight, bias, {}, {}})),
        flop_of(range("native_layer_norm_backward", {kRow, kRow, {}, {1}, {1}, weight, bias, {}})));
    check_norm({.per_channel = true, .scale = scale, .shift = shift}, &Norm::backward_of_group,
               flop_of(range("native_group_norm", {kRow, weight, bias, {}, {}, {}, {}, {}})),
               flop_of(range("native_group_norm_backward",
                             {kRow, kRow, {1, 1}, {1, 1}, weight, {}, {}, {}, {}, {}})));
    if (shift) continue;
    check_norm({.scale = scale, .shift = false, .root_mean_square = true}, &Norm::backward,
               flop_of(range("rms_norm", {kRow, {}, weight, {}})),
               flop_of(range("_fused_rms_norm_backward", {kRow, kRow, {}, {1}, weight, {}})));
  }
}

TEST_CASE("batch norm takes the batch's statistics or running ones, where ranges tell which") {
  const auto forward = [](const Shape& weight, const Shape& running) {
    return range("batch_norm", {kRow, weight, weight, running, running, {}, {}, {}, {}});
  };
  const auto native = [](const Shape& weight, const Shape& running, const Shape& saved) {
    return range("native_batch_norm_backward",
                 {kRow, kRow, weight, running, running, saved, saved, {}, {}, {}});
  };
  const std::string cudnn = range("cudnn_batch_norm_backward", {kRow, kRow, kWeight});
  for (const Shape& weight : {kWeight, kNone}) {
    const bool scale = !weight.empty();
    // No running statistics: the batch's. The same by the operator that training alone has.
    const NormKind training{.per_channel = true, .scale = scale, .shift = scale};
    check_norm(training, &Norm::backward_of_channel, flop_of(forward(weight, {})),
               flop_of(native(weight, {}, kWeight)));
    check_norm(training, &Norm::backward_of_channel,
               flop_of(forward(weight, kWeight), {.gradient = cudnn}), flop_of(cudnn));
    check_norm({.per_channel = true, .scale = scale, .shift = scale, .running = true},
               &Norm::backward_of_channel,
               flop_of(forward(weight, kWeight), {.gradient = native(weight, kWeight, {0})}),
               flop_of(native(weight, kWeight, {0})));
  }
  // Running ones are there, and nothing says whether they are used.
  CHECK_FALSE(formula_of(forward(kWeight, kWeight)).flop);
  CHECK_FALSE(formula_of(native(kWeight, kWeight, kWeight)).flop);
  CHECK_FALSE(
      formula_of(forward(kWeight, kWeight), {.gradient = native(kWeight, kWeight, kWeight)}).flop);
  // Steps of synchronized batch norm add up to the whole; the second takes x - mean again.
  OperatorFlop steps = flop_of(range("batch_norm_stats", {kRow, {}}));
  steps.add(flop_of(range("batch_norm_elemt", {kRow, kWeight, kWeight, kWeight, kWeight, {}})));
  OperatorFlop whole = flop_of(forward(kWeight, {}));
  whole.add({0, kWidth, 0});
  CHECK(steps == whole);
  OperatorFlop back = flop_of(range("batch_norm_backward_reduce", {kRow, kRow}));
  back.add(flop_of(range("batch_norm_backward_elemt", {kRow, kRow})));
  CHECK(back.flop(2) == flop_of(cudnn).flop(2));
}
