// Operators inside of autograd nodes with numbers of their own, in ranges as PyTorch 2.15 emits
// them and the recorder keeps them (proto/FORMAT.md). Recorded streams are in tests/frameworks.
#include "operator_scene.h"

using namespace flopinj::test;

namespace {

const std::string kSizes = "sizes = [[4, 8], [4, 8]]";

// x * y under torch.utils.checkpoint(use_reentrant=False), or x * y differentiated twice.
struct Products : Scene {
  uint32_t forward = path({"aten::mul, " + kSizes});
  uint32_t gradient = path(in_node("aten::mul, " + kSizes));
  uint32_t numbered = path(in_node("aten::mul, seq = #, " + kSizes));
  uint32_t k = kernel("mul", 0, 32);

  static std::vector<std::string> in_node(const std::string& name) {
    return {kNode + "MulBackward0", "MulBackward0, sizes = [[4, 8]]", name};
  }
  u128 flop_of(const Report& report, const std::string& phase) {
    for (const auto& p : report.phases)
      if (p.name == phase) return p.work.flop;
    return 0;
  }
};

}  // namespace

TEST_CASE("own numbers: where the node's gradient has none, forward runs again") {
  Products s;
  for (uint64_t step = 0; step < 3; ++step) {
    s.launch(kMain, {s.at(s.k, s.forward, step)});
    s.launch(kAutograd, {s.at(s.k, s.numbered, step), s.at(s.k, s.gradient, step),
                         s.at(s.k, s.gradient, step)});
  }
  const Report r = s.reduce();
  CHECK(s.flop_of(r, "forward") == 3 * 32);
  CHECK(s.flop_of(r, "recompute") == 3 * 32);
  CHECK(s.flop_of(r, "backward") == 3 * 64);
  // The operator is the same one, with a number and without.
  CHECK(type_of(r, "aten::mul", "recompute").formula_flop == u128{3 * 32});
}

TEST_CASE("own numbers: where the gradient has them too, it is differentiated again") {
  Products s;
  // create_graph=True: x.grad's graph; then its own gradient, which runs the same node without.
  for (uint64_t step = 0; step < 3; ++step) {
    s.launch(kMain, {s.at(s.k, s.forward, step)});
    s.launch(kAutograd, {s.at(s.k, s.numbered, step), s.at(s.k, s.numbered, step)});
    s.launch(kAutograd, {s.at(s.k, s.path({kNode + "SumBackward0"}), 90 + step)});
    s.launch(kAutograd, {s.at(s.k, s.gradient, step)});
  }
  const Report r = s.reduce();
  CHECK(s.flop_of(r, "recompute") == 0);
  CHECK(s.flop_of(r, "backward") == 3 * 4 * 32);
}

TEST_CASE("own numbers: a rule of the user's decides first") {
  Products s;
  s.launch(kMain, {s.at(s.k, s.forward, 0)});
  s.launch(kAutograd, {s.at(s.k, s.numbered, 0), s.at(s.k, s.gradient, 0)});
  s.trace().end();
  PhaseRules rules;
  REQUIRE_FALSE(rules.add_rule_file("mine", "- number in:backward is again\n"));
  const Report r = reduce_bytes({s.trace().bytes()}, {.fma = 2, .rules = rules});
  CHECK(s.flop_of(r, "recompute") == 0);
  CHECK(s.flop_of(r, "backward") == 64);
}

TEST_CASE("own numbers: what has none runs again where it is before what has one") {
  Products s;
  const uint32_t quiet = s.path(Products::in_node("aten::mm, sizes = [[4, 8], [8, 8]]"));
  for (uint64_t step = 0; step < 3; ++step) {
    s.launch(kMain, {s.at(s.k, s.forward, step)});
    // A teacher under no_grad, then the operator that needs what it gave.
    s.launch(kAutograd,
             {s.at(s.k, quiet, step), s.at(s.k, s.numbered, step), s.at(s.k, s.gradient, step)});
  }
  const Report r = s.reduce();
  CHECK(s.flop_of(r, "recompute") == 3 * 64);
  CHECK(s.flop_of(r, "backward") == 3 * 32);
}

TEST_CASE("own numbers: a gradient's own work before the next node's is none that runs again") {
  Products s;
  s.launch(kMain, {s.at(s.k, s.forward, 0), s.at(s.k, s.forward, 1)});
  s.launch(kAutograd, {s.at(s.k, s.numbered, 0), s.at(s.k, s.gradient, 1), s.at(s.k, s.numbered, 1),
                       s.at(s.k, s.gradient, 0)});
  const Report r = s.reduce();
  CHECK(s.flop_of(r, "recompute") == 64);
  CHECK(s.flop_of(r, "backward") == 64);
}

// Functions of a program's own show a number whatever runs, and what is in them has none.
TEST_CASE("own numbers: what a program's function does in a node tells nothing of the node") {
  const auto in_function = [](Scene& s, const std::string& sizes) {
    return s.path({kNode + "MultiplyBackward", "MultiplyBackward, sizes = [[4, 8]]",
                   "Multiply, sizes = " + sizes, "aten::mm, sizes = " + sizes});
  };
  SECTION("checkpointing runs it again before the node's own work") {
    Products s;
    const bool alone = GENERATE(true, false);
    // Names without sizes do not tell it; then the operator behind does.
    const std::string sizes = alone ? "[[4, 2], [2, 8]]" : "[[8, 2], [2, 4]]";
    const uint32_t function =
        s.path({"Multiply, sizes = [[4, 2], [2, 8]]", "aten::mm, sizes = [[4, 2], [2, 8]]"});
    const uint32_t again = in_function(s, sizes);
    const uint32_t numbered = s.path({kNode + "MultiplyBackward",
                                      "MultiplyBackward, sizes = "
                                      "[[4, 8]]",
                                      "aten::mul, seq = #, " + kSizes});
    const uint32_t gradient =
        s.path({kNode + "MultiplyBackward", "MultiplyBackward, sizes = [[4, 8]]",
                "aten::mm, sizes = [[2, 4], [4, 8]]"});
    const uint32_t product = s.kernel("gemm", 64);
    for (uint64_t step = 0; step < 3; ++step) {
      const uint64_t number = 10 * step;
      s.launch(kMain, {s.at(product, function, number)});
      std::vector<Launch> node = {s.at(product, again, 3)};
      if (!alone) node.push_back(s.at(s.k, numbered, 4));
      node.push_back(s.at(product, gradient, number));
      s.launch(kAutograd, node);
    }
    const Report r = s.reduce();
    CHECK(s.flop_of(r, "recompute") == 3 * (128 + (alone ? 0 : 32)));
    CHECK(s.flop_of(r, "backward") == 3 * 128);
    CHECK(s.flop_of(r, "forward") == 3 * 128);
    // It is no gradient of what has its number in forward.
    CHECK(r.operators.joined == 3);
    CHECK(r.operators.without_forward + r.operators.other_operator == 0);
  }
  SECTION("what else it does there is a gradient, of which no number tells the operator") {
    Products s;
    const uint32_t function =
        s.path({"Multiply, sizes = [[4, 2], [2, 8]]", "aten::mm, sizes = [[4, 2], [2, 8]]"});
    const uint32_t gradient = in_function(s, "[[4, 8], [8, 2]]");
    const uint32_t product = s.kernel("gemm", 64);
    for (uint64_t step = 0; step < 3; ++step) {
      s.launch(kMain, {s.at(product, function, step)});
      s.launch(kAutograd, {s.at(product, gradient, 0)});
    }
    const Report r = s.reduce();
    CHECK(s.flop_of(r, "recompute") == 0);
    CHECK(s.flop_of(r, "backward") == 3 * 128);
    CHECK(r.operators.joined == 0);
    CHECK(r.operators.other_operator == 3);
  }
  SECTION("in a gradient that is differentiated again it is a gradient") {
    Products s;
    const uint32_t product = s.kernel("gemm", 64);
    const uint32_t gradient = in_function(s, "[[4, 8], [8, 2]]");
    const uint32_t numbered = s.path({kNode + "MultiplyBackward",
                                      "MultiplyBackward, sizes = "
                                      "[[4, 8]]",
                                      "aten::sum, seq = #, sizes = [[4, 8]]"});
    s.launch(kMain, {s.at(s.k, s.forward, 0)});
    s.launch(kAutograd, {s.at(product, gradient, 0), s.at(s.k, numbered, 0)});
    s.launch(kAutograd, {s.at(product, gradient, 2), s.at(s.k, numbered, 2)});
    const Report r = s.reduce();
    CHECK(s.flop_of(r, "recompute") == 0);
    CHECK(s.flop_of(r, "backward") == 2 * (128 + 32));
  }
}

TEST_CASE("own numbers: what a node evaluates is a part of the same run of it") {
  Products s;
  const std::vector<std::string> node = {kNode + "AgainBackward",
                                         "AgainBackward, sizes = [[4, 8]]"};
  const auto in = [&](const std::vector<std::string>& more) {
    std::vector<std::string> names = node;
    names.insert(names.end(), more.begin(), more.end());
    return s.path(names);
  };
  const uint32_t quiet = in({"aten::mm, sizes = [[4, 2], [2, 8]]"});
  const uint32_t numbered = in({"aten::mul, seq = #, " + kSizes});
  const uint32_t evaluated =
      in({kNode + "MulBackward0", "MulBackward0, sizes = [[4, 8]]", "aten::mul, " + kSizes});
  for (uint64_t step = 0; step < 3; ++step) {
    s.launch(kMain, {s.at(s.k, s.path({"Again, " + kSizes, "aten::mul, " + kSizes}), step)});
    s.launch(kAutograd, {s.at(s.k, quiet, step), s.at(s.k, numbered, 20 + step),
                         s.at(s.k, evaluated, 20 + step), s.at(s.k, evaluated, 20 + step)});
  }
  const Report r = s.reduce();
  CHECK(s.flop_of(r, "recompute") == 3 * 64);
  CHECK(s.flop_of(r, "backward") == 3 * 64);
}
