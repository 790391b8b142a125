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
