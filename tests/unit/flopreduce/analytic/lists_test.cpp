// Operators on lists of tensors: sizes printed as PyTorch's inputSizes() does, expectations from
// the definitions of the optimizers (torch.optim's documentation), parameter by parameter.
#include <cmath>

#include "counted.h"
#include "operator_names.h"

using namespace flopinj::reduce;
using namespace flopinj::test;

namespace {

using List = std::vector<Shape>;

// Lists one after the other; an empty one, like every number, is one [].
std::string call(const std::string& name, const std::vector<List>& lists, size_t numbers) {
  List all;
  for (const List& list : lists) {
    all.insert(all.end(), list.begin(), list.end());
    if (list.empty()) all.emplace_back();
  }
  all.resize(all.size() + numbers);
  return range(name, all);
}

uint64_t values(const List& list) {
  uint64_t sum = 0;
  for (const Shape& shape : list) sum += static_cast<uint64_t>(elements(shape));
  return sum;
}

template <class Step>
OperatorFlop times(uint64_t count, Step step) {
  Counted::tally = {};
  for (uint64_t i = 0; i < count; ++i) step();
  return {Counted::tally.fused, Counted::tally.single, Counted::tally.other};
}

struct State {
  Counted p = 0.3, g = 0.1, m = 0.01, v = 0.02, most = 0.01;
};

void adam(State s, bool decoupled, bool amsgrad) {
  const double lr = 0.1, b1 = 0.9, b2 = 0.99, eps = 1e-8, decay = 0.99, c1 = 0.5, c2 = 0.3;
  if (decoupled) s.p = s.p * decay;
  s.m = fused(s.g, 1 - b1, b1 * s.m);
  s.v = fused(s.g * s.g, 1 - b2, b2 * s.v);
  Counted v = s.v;
  if (amsgrad) v = s.most = max(s.most, s.v);
  s.p = fused(s.m / (sqrt(v) / c2 + eps), -lr / c1, s.p);
}

void sgd(State s, bool momentum) {
  if (momentum) s.m = fused(s.m, 0.9, s.g);
  s.p = fused(momentum ? s.m : s.g, -0.1, s.p);
}

void adagrad(State s) {
  s.v = fused(s.g, s.g, s.v);
  s.p = fused(s.g / (sqrt(s.v) + 1e-8), -0.1, s.p);
}

// Parameters of one size are what a guess by repetition takes for more lists.
const List kNetworks[] = {{{10, 4}, {10}},
                          {{8, 8}, {8, 8}, {8, 8}, {8, 8}},
                          {{5}},
                          {{6}, {6}, {6}, {6}, {6}},
                          {{3, 3}, {3, 3}},
                          {{4}, {4}, {4}, {4}, {4}, {4}, {4}, {4}, {4}, {4}, {4}, {4}}};

}  // namespace

TEST_CASE("fused optimizers, with and without their optional lists") {
  for (const List& p : kNetworks) {
    const List steps(p.size(), Shape{});
    const uint64_t n = values(p);
    for (const bool amsgrad : {false, true}) {
      const List most = amsgrad ? p : List{};
      CHECK(flop_of(call("_fused_adam_", {p, p, p, p, most, steps}, 9)) ==
            times(n, [&] { adam({}, false, amsgrad); }));
      CHECK(flop_of(call("_fused_adamw_", {p, p, p, p, most, steps}, 9)) ==
            times(n, [&] { adam({}, true, amsgrad); }));
    }
    CHECK(flop_of(call("_fused_sgd_", {p, p, {}}, 9)) == times(n, [] { sgd({}, false); }));
    CHECK(flop_of(call("_fused_sgd_", {p, p, p}, 9)) == times(n, [] { sgd({}, true); }));
    CHECK(flop_of(call("_fused_adagrad_", {p, p, p, steps}, 7)) == times(n, [] { adagrad({}); }));
  }
  CHECK_FALSE(formula_of(range("_fused_sgd_", List(11, Shape{7}))).flop);
  CHECK_FALSE(
      formula_of(call("_fused_adam_", {{{10, 4}}, {{9, 4}}, {{10, 4}}, {{10, 4}}, {}, {{}}}, 9))
          .flop);
  CHECK_FALSE(formula_of("aten::_fused_adam_, sizes = []").flop);
  CHECK_FALSE(formula_of("aten::_fused_adam_").flop);
}

TEST_CASE("list operators: every element of the first list") {
  for (const List& p : kNetworks) {
    const uint64_t n = values(p);
    const OperatorFlop one{0, n, 0}, fused_and_one{n, n, 0};
    CHECK(flop_of(call("_foreach_mul_", {p, p}, 0)) == one);
    CHECK(flop_of(call("_foreach_mul_", {p}, 1)) == one);
    CHECK(flop_of(call("_foreach_div", {p, p}, 0)) == one);
    CHECK(flop_of(call("_foreach_addcmul_", {p, p, p}, 1)) == fused_and_one);
    CHECK(flop_of(call("_foreach_addcdiv_", {p, p, p, {}}, 0)) == fused_and_one);
    CHECK(flop_of(call("_foreach_lerp_", {p, p}, 1)) == fused_and_one);
    CHECK(flop_of(call("_foreach_sqrt", {p}, 0)) == OperatorFlop{0, 0, n});
    CHECK(flop_of(call("_foreach_norm", {p}, 2)) == OperatorFlop{n, 0, 0});
    CHECK(flop_of(call("_foreach_zero_", {p}, 0)) == OperatorFlop{});
  }
  const List p{{10, 4}, {10}, {3, 4}};
  CHECK(flop_of(call("_foreach_add_", {p}, 1)).arithmetic == 62);
  CHECK_FALSE(formula_of(call("_foreach_add_", {p, p}, 1)).flop);
}

TEST_CASE("where the sizes do not tell how long a list is there is no formula") {
  // Four tensors and a number, or two, two and alpha.
  const Formula four = formula_of("aten::_foreach_add_, sizes = [[8], [8], [8], [8], []]");
  CHECK_FALSE(four.flop);
  CHECK(std::string(four.why_not).find("ends") != std::string::npos);
  // Tensors without dimensions look like numbers: two tensors, a third and alpha; or three and a
  // number.
  CHECK_FALSE(formula_of("aten::_foreach_add_, sizes = [[10, 4], [10], [], []]").flop);
  CHECK_FALSE(formula_of("aten::_foreach_add_, sizes = [[], [], [], [], []]").flop);
}
