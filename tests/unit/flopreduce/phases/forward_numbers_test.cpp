// Phases by autograd's sequence numbers, where no range says forward. The streams are made up after
// PyTorch's sources: every operator has the number of the next node while gradients are on, none
// while they are off (aten/src/ATen/core/dispatch/Dispatcher.cpp,
// sequenceNumberForRunningRecordFunction); autograd runs the node with the highest number first
// (torch/csrc/autograd/engine.cpp, CompareNodeTaskTime). Recorded ones are in tests/frameworks.
#include "phases/forward_numbers.h"

#include "operator_scene.h"
#include "passes/sequence/backward_passes.h"

using namespace flopinj::test;

namespace {

constexpr uint64_t kNone = UINT64_MAX;  // Scene::at() makes it 0: no number

// A convolution, an activation, a linear layer and its loss, trained.
class Training {
 public:
  // Numbers from `first` on. Returns the one after the last.
  uint64_t forward(uint64_t first, const std::vector<std::string>& inside = {}) {
    std::vector<std::string> conv = inside;
    conv.push_back("aten::conv2d, sizes = [[4, 3, 8, 8], [8, 3, 3, 3], [], [], [], [], []]");
    run(kMain, conv, "aten::convolution, sizes = [[4, 3, 8, 8], [8, 3, 3, 3]]", 1000, first);
    run(kMain, inside, "aten::relu, sizes = [[4, 8, 6, 6]]", 0, first + 1);
    run(kMain, inside, "aten::addmm, sizes = [[8], [4, 288], [288, 8]]", 300, first + 3);
    run(kMain, inside, "aten::mse_loss, sizes = [[4, 8], [4, 8], []]", 7, first + 4);
    return first + 5;
  }
  // The nodes of numbers from `first` on; a view's launches nothing.
  void backward(uint64_t first) {
    node("MseLossBackward0", 5, first + 4);
    node("AddmmBackward0", 600, first + 3);
    node("ReluBackward0", 0, first + 1);
    node("ConvolutionBackward0", 1100, first);
  }
  // Multiply-adds of a launch; `number` may be kNone.
  void run(uint32_t thread, std::vector<std::string> ranges, const std::string& name, double fma,
           uint64_t number) {
    ranges.push_back(name);
    const auto [kernel, fresh] = kernels_.try_emplace(fma, 0);
    if (fresh) kernel->second = scene.kernel("kernel_" + std::to_string(kernels_.size()), fma);
    pending_.push_back(scene.at(kernel->second, scene.path(ranges), number));
    if (thread != kMain || !together) write(thread);
  }
  void write(uint32_t thread) {
    if (!pending_.empty()) scene.launch(thread, pending_);
    pending_.clear();
  }
  void node(const std::string& name, double fma, uint64_t number) {
    write(kMain);
    run(kAutograd, {kNode + name}, name + ", sizes = [[4, 8]]", fma, number);
  }
  Report reduce(ReduceOptions options = {}) {
    write(kMain);
    scene.trace().end();
    return reduce_bytes({scene.trace().bytes()}, std::move(options));
  }

  Scene scene;
  bool together = true;  // a batch for all launches of the main thread that follow each other

 private:
  std::map<double, uint32_t> kernels_;
  std::vector<Launch> pending_;
};

u128 flop_of(const Report& report, const std::string& phase) {
  for (const auto& p : report.phases)
    if (p.name == phase) return p.work.flop;
  return 0;
}
uint64_t launches_of_rule(const Report& report, const std::string& rule) {
  for (const auto& r : report.rules)
    if (r.rule == rule) return r.work.launches;
  FAIL("no rule " << rule);
  return 0;
}
const std::string kBetween = "sequence number between those of one backward pass";
const std::string kUnclear = "sequence number in no backward pass, or also before one";

constexpr u128 kForward = 2 * 1307, kBackward = 2 * 1705;

}  // namespace

TEST_CASE("without ranges of the user's, numbers tell forward from backward") {
  Training t;
  for (uint64_t step = 0, number = 0; step < 3; ++step) {
    const uint64_t first = number;
    number = t.forward(first);
    t.backward(first);
    t.run(kMain, {"Optimizer.step#SGD.step"}, "aten::_foreach_add_, sizes = [[8]]", 11, kNone);
  }
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 3 * kForward);
  CHECK(flop_of(r, "backward") == 3 * kBackward);
  CHECK(flop_of(r, "optimizer") == 3 * 22);
  CHECK(flop_of(r, "other") == 0);
  CHECK(launches_of_rule(r, kBetween) == 12);
  REQUIRE(r.ratio.ratio.known());
  CHECK(*r.ratio.ratio.number() == Approx(1705.0 / 1307));
  CHECK(by_forward(r, "aten::conv2d").forward.flop == 3 * 2000);
}

TEST_CASE("a first node's number is its own operator's; others that have it are unclear") {
  Training t;
  for (uint64_t step = 0, number = 0; step < 2; ++step) {
    const uint64_t first = number;
    t.run(kMain, {}, "aten::sub, sizes = [[4, 3, 8, 8], [3, 1, 1], []]", 13, first);
    // A frozen layer.
    t.run(kMain, {}, "aten::conv2d, sizes = [[4, 3, 9, 9], [3, 3, 2, 2]]", 50, first);
    number = t.forward(first);
    t.backward(first);
  }
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 2 * kForward);
  CHECK(flop_of(r, "other") == 2 * 126);
  CHECK(launches_of_rule(r, kUnclear) == 4);
  CHECK(r.part(PhasePart::kUnclear).launches == 4);
  CHECK(r.part(PhasePart::kUnclear).flop == 2 * 126);
}

TEST_CASE("launch by launch: one range path in training and in validation") {
  for (const bool together : {true, false}) {
    Training t;
    t.together = together;
    uint64_t number = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      for (int step = 0; step < 2; ++step) {
        const uint64_t first = number;
        number = t.forward(first);
        t.backward(first);
      }
      // Without gradients: no numbers.
      for (const auto& [name, fma] : {std::pair{"aten::relu, sizes = [[4, 8, 6, 6]]", 0.0},
                                      {"aten::addmm, sizes = [[8], [4, 288], [288, 8]]", 300.0}})
        t.run(kMain, {}, name, fma, kNone);
      number = t.forward(number);  // with gradients that nobody asks for
    }
    const Report r = t.reduce();
    CHECK(flop_of(r, "forward") == 4 * kForward);
    CHECK(flop_of(r, "backward") == 4 * kBackward);
    CHECK(flop_of(r, "other") == 2 * (600 + kForward));
    CHECK(r.part(PhasePart::kUnclear).flop == 2 * kForward);
    CHECK(by_forward(r, "aten::addmm").forward.flop == 4 * 600);
  }
}

// A teacher under no_grad, in the middle of forward: functions of the program's own have numbers
// there, too.
TEST_CASE("a program's function between launches without numbers ran without gradients") {
  const std::string relu = "aten::relu, sizes = [[4, 8]]",
                    mm = "aten::mm, sizes = [[4, 8], [8, 8]]";
  for (const bool known : {false, true}) {
    Training t;
    t.run(kMain, {}, "aten::convolution, sizes = [[4, 3, 8, 8], [8, 3, 3, 3]]", 1000, 0);
    t.run(kMain, {"Multiply, sizes = [[4, 8], [8, 8]]"}, mm, 256, 1);  // trained
    t.run(kMain, {}, relu, 7, 2);
    t.run(kMain, {}, relu, 3, kNone);
    t.run(kMain, {"Multiply, sizes = [[4, 8], [8, 8]]"}, mm, 512, 3);
    t.run(kMain, {}, relu, 3, kNone);
    t.run(kMain, {}, "aten::mse_loss, sizes = [[4, 8], [4, 8], []]", 5, 4);
    t.node("MseLossBackward0", 5, 4);
    t.node("ReluBackward0", 7, 2);
    // All that its node does may be nodes of its own.
    t.write(kMain);
    t.run(kAutograd,
          {kNode + "MultiplyBackward", "MultiplyBackward, sizes = [[4, 8]]",
           known ? "aten::mm, sizes = [[4, 8], [8, 8]]" : kNode + "MmBackward0"},
          known ? "aten::mm, sizes = [[4, 8], [8, 8]]" : "MmBackward0, sizes = [[4, 8]]", 512,
          known ? 1 : 90);
    t.write(kAutograd);
    t.node("ConvolutionBackward0", 1100, 0);
    const Report r = t.reduce();
    CHECK(flop_of(r, "forward") == 2 * (1000 + 256 + 7 + 5));
    CHECK(r.part(PhasePart::kUnclear).flop == 2 * (512 + 3 + 3));
  }
}

TEST_CASE("a closure's products inside an optimizer's step") {
  Training t;
  const std::vector<std::string> step = {"Optimizer.step#LBFGS.step"};
  for (uint64_t number = 0; number < 10;) {
    const uint64_t first = number;
    t.run(kMain, step, "aten::div, sizes = [[4, 3, 8, 8], []]", 17, first);
    number = t.forward(first, step);
    t.backward(first);
    // Muon's and Shampoo's products: gradients are off.
    t.run(kMain, step, "aten::addmm, sizes = [[8, 8], [8, 8], [8, 8]]", 400, kNone);
  }
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 2 * kForward);
  CHECK(flop_of(r, "optimizer") == 2 * 800);
  CHECK(r.part(PhasePart::kUnclear).flop == 2 * 34);  // before the first node
}

// A teacher, with gradients off: its layers have names that no update has, all else has not.
TEST_CASE("a closure's layers without numbers are unclear") {
  Training t;
  const std::vector<std::string> step = {"Optimizer.step#SGD.step"};
  for (uint64_t number = 0; number < 10;) {
    const uint64_t first = number;
    t.run(kMain, step, "aten::linear, sizes = [[4, 8], [8, 8], [8]]", 256, kNone);
    t.run(kMain, step, "aten::mul, sizes = [[4, 8], []]", 32, kNone);
    number = t.forward(first, step);
    t.backward(first);
    t.run(kMain, step, "aten::_foreach_add_, sizes = [[8, 8], [8, 8], []]", 64, kNone);
  }
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 2 * kForward);
  CHECK(r.part(PhasePart::kUnclear).flop == 2 * 512);
  CHECK(flop_of(r, "optimizer") == 2 * (64 + 128));
  for (const PhaseReport& phase : r.phases) CHECK(phase.at_most == (phase.name == "optimizer"));
}

TEST_CASE("a closure's layers beside its forward range are unclear") {
  Training t;
  const std::string step = "Optimizer.step#SGD.step";
  const std::string linear = "aten::linear, sizes = [[4, 8], [8, 8], [8]]";
  t.run(kMain, {step}, linear, 256, kNone);
  t.run(kMain, {step, "forward", linear}, "aten::addmm, sizes = [[8], [4, 8], [8, 8]]", 100, 0);
  t.node("AddmmBackward0", 200, 0);
  t.run(kMain, {step}, "aten::add, sizes = [[], [], []]", 3, 1);  // numbered, and of no pass
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 2 * 100);
  CHECK(flop_of(r, "optimizer") == 0);
  CHECK(r.part(PhasePart::kUnclear).flop == 2 * 259);
}

// Muon, which takes products, of another network: the pass is none of a closure's.
TEST_CASE("an optimizer's step in the middle of a pass that ran outside of it") {
  const std::string linear = "aten::addmm, sizes = [[8], [4, 288], [288, 8]]";
  Training t;
  t.run(kMain, {}, linear, 10, 0);
  t.run(kMain, {"Optimizer.step#Muon.step"}, "aten::mm, sizes = [[8, 8], [8, 8]]", 400, kNone);
  t.run(kMain, {}, linear, 10, 1);
  for (const uint64_t number : {1, 0}) t.node("AddmmBackward0", 20, number);
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 2 * 20);
  CHECK(flop_of(r, "optimizer") == 2 * 400);
  CHECK(r.part(PhasePart::kUnclear).launches == 0);
}

// Rotary embeddings and masks are computed with gradients off.
TEST_CASE("launches without a number between others of one forward pass ran forward") {
  const std::string table = "aten::cos, sizes = [[4, 8]]";
  const std::string linear = "aten::addmm, sizes = [[8], [4, 288], [288, 8]]";
  Training t;
  const auto step = [&](uint64_t first) {
    t.run(kMain, {}, table, 1000, kNone);  // before the pass: whose it is nothing tells
    t.run(kMain, {}, linear, 10, first);
    t.run(kMain, {}, table, 100, kNone);
    t.run(kMain, {}, linear, 10, first + 1);
    t.run(kMain, {}, table, 1000, kNone);  // behind it
  };
  step(0);
  step(2);
  for (const uint64_t number : {3, 2, 1, 0}) t.node("AddmmBackward0", 20, number);
  const Report r = t.reduce();
  // Both steps are one backward pass here, so that what is between them is inside of it.
  CHECK(flop_of(r, "forward") == 2 * (4 * 10 + 2 * 100 + 2 * 1000));
  CHECK(flop_of(r, "other") == 2 * (1000 + 1000));
  CHECK(r.part(PhasePart::kUnclear).launches == 0);
}

// A teacher's layers, and a table that is looked up: without gradients both have no numbers.
TEST_CASE("work with weights in the middle of a pass may be another model's") {
  const std::string linear = "aten::addmm, sizes = [[8], [4, 288], [288, 8]]";
  Training t;
  t.run(kMain, {}, linear, 10, 0);
  t.run(kMain, {}, linear, 500, kNone);
  t.run(kMain, {}, "aten::relu, sizes = [[4, 8]]", 70, kNone);
  t.run(kMain, {}, linear, 10, 1);
  t.run(kMain, {}, "aten::bmm, sizes = [[4, 8, 1], [4, 1, 8]]", 100, kNone);
  t.run(kMain, {}, linear, 10, 2);
  for (const uint64_t number : {2, 1, 0}) t.node("AddmmBackward0", 20, number);
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 2 * (3 * 10 + 100));
  CHECK(r.part(PhasePart::kUnclear).flop == 2 * 570);
}

TEST_CASE("between two launches of a forward pass others ran forward, in whatever batches") {
  const std::string addmm = "aten::addmm, sizes = [[8], [4, 288], [288, 8]]";
  for (int cut = 0; cut < 8; ++cut) {
    INFO(cut);
    Training t;
    const auto write_if = [&](int bit) {
      if ((cut >> bit & 1) != 0) t.write(kMain);
    };
    t.run(kMain, {}, addmm, 10, 0);
    write_if(0);
    t.run(kMain, {}, "aten::cos, sizes = [[4, 8]]", 100, kNone);
    write_if(1);
    t.run(kMain, {}, "aten::sin, sizes = [[4, 8]]", 300, kNone);
    write_if(2);
    t.run(kMain, {}, addmm, 10, 1);
    t.node("AddmmBackward0", 20, 1);
    t.node("AddmmBackward0", 20, 0);
    const Report r = t.reduce();
    CHECK(flop_of(r, "forward") == 2 * 420);
    CHECK(r.part(PhasePart::kUnclear).launches == 0);
  }
  // A layer among them may be a teacher's, wherever it was written.
  for (const bool together : {true, false}) {
    Training t;
    t.together = together;
    t.run(kMain, {}, addmm, 10, 0);
    t.run(kMain, {}, "aten::cos, sizes = [[4, 8]]", 100, kNone);
    t.run(kMain, {}, addmm, 500, kNone);
    t.run(kMain, {}, "aten::sin, sizes = [[4, 8]]", 300, kNone);
    t.run(kMain, {}, addmm, 10, 1);
    t.node("AddmmBackward0", 20, 1);
    t.node("AddmmBackward0", 20, 0);
    const Report r = t.reduce();
    CHECK(flop_of(r, "forward") == 2 * 20);
    CHECK(r.part(PhasePart::kUnclear).flop == 2 * 900);
  }
}

TEST_CASE(
    "at the ends of a recording it is unclear whether launches without a number ran forward") {
  for (const bool together : {true, false}) {
    Training t;
    t.together = together;
    const std::string addmm = "aten::addmm, sizes = [[8], [4, 288], [288, 8]]";
    t.run(kMain, {}, "aten::cos, sizes = [[4, 8]]", 100, kNone);  // number 0 is on another stream
    t.run(kMain, {}, addmm, 10, 1);
    t.write(kMain);
    t.scene.trace().stream(2, 1);
    const auto other = t.scene.path({addmm}), sine = t.scene.path({"aten::sin, sizes = [[4, 8]]"});
    const auto kernel = t.scene.kernel("other stream", 10), sines = t.scene.kernel("sines", 300);
    t.scene.trace().launches({t.scene.at(kernel, other, 0)}, kMain, 2);
    t.scene.trace().launches({t.scene.at(sines, sine, kNone)}, kMain, 2);
    t.node("AddmmBackward0", 20, 1);
    t.node("AddmmBackward0", 20, 0);
    const Report r = t.reduce();
    CHECK(flop_of(r, "forward") == 2 * 20);
    CHECK(r.part(PhasePart::kUnclear).launches == 2);
    CHECK(r.part(PhasePart::kUnclear).flop == 2 * 400);
  }
}

TEST_CASE("products of an optimizer are told where no number places them") {
  Training t;
  t.forward(0);
  t.backward(0);
  t.run(kMain, {"Optimizer.step#Muon.step"}, "aten::mm, sizes = [[8, 8], [8, 8]]", 512, kNone);
  t.run(kMain, {"Optimizer.step#Muon.step"}, "aten::mul, sizes = [[8, 8], []]", 64, kNone);
  const Report r = t.reduce();
  CHECK(flop_of(r, "optimizer") == 2 * 576);
  CHECK(r.part(PhasePart::kProducts).launches == 1);
  CHECK(r.part(PhasePart::kProducts).flop == 2 * 512);
}

TEST_CASE("ranges go before numbers") {
  Training t;
  const uint64_t next = t.forward(0, {"my evaluation"});
  t.backward(0);
  t.forward(next, {"loss"});
  t.backward(next);
  PhaseRules rules;
  REQUIRE_FALSE(rules.add_user_rule("evaluation=^my eval"));
  const Report r = t.reduce({.fma = 2, .rules = rules});
  CHECK(flop_of(r, "evaluation") == kForward);
  CHECK(flop_of(r, "loss") == kForward);
  CHECK(flop_of(r, "forward") == 0);
}

TEST_CASE("a rule may say what numbers tell") {
  const auto reduce = [](const std::string& file) {
    Training t;
    t.run(kMain, {}, "aten::sub, sizes = [[4, 3, 8, 8], [3, 1, 1], []]", 13, 0);
    t.forward(0);
    t.backward(0);
    PhaseRules rules;
    CHECK_FALSE(rules.add_rule_file("mine", file));
    return t.reduce({.fma = 2, .rules = rules});
  };
  CHECK(flop_of(reduce("forward number is unclear\n"), "forward") == kForward + 26);
  CHECK(reduce("forward number is unclear\n").part(PhasePart::kUnclear).launches == 0);
  CHECK(flop_of(reduce("- number is between\n"), "forward") == 0);
  CHECK(flop_of(reduce("mine number is between\n"), "mine") == kForward);
}

TEST_CASE("operators that autograd's own thread numbers do not move the passes") {
  Training t;
  uint64_t number = 0, own = 0;
  for (int step = 0; step < 4; ++step) {
    t.run(kMain, {}, "aten::sub, sizes = [[4, 3, 8, 8], [3, 1, 1], []]", 13, number);
    const uint64_t first = number;
    number = t.forward(first);
    t.node("MseLossBackward0", 5, first + 4);
    // Not reentrant: a layer runs again inside of the node that needs what it saved.
    for (const char* again : {"aten::conv2d, sizes = [[4, 3, 8, 8], [8, 3, 3, 3]]", "aten::mul",
                              "aten::addmm, sizes = [[8], [4, 288], [288, 8]]"})
      t.run(kAutograd, {kNode + "AddmmBackward0", "AddmmBackward0, sizes = [[4, 8]]"}, again, 2,
            own++);
    t.node("AddmmBackward0", 600, first + 3);
    t.node("ReluBackward0", 0, first + 1);
    t.node("ConvolutionBackward0", 1100, first);
    t.forward(number);  // evaluation with gradients on
    number += 5;
  }
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 4 * kForward);
  CHECK(r.part(PhasePart::kUnclear).flop == 4 * (26 + kForward));
}

TEST_CASE("micro-batches: forward of several before their backward passes") {
  Training t;
  std::vector<uint64_t> firsts;
  uint64_t number = 0;
  const auto forward = [&] {
    t.run(kMain, {}, "aten::sub, sizes = [[4, 3, 8, 8], [3, 1, 1], []]", 13, number);
    firsts.push_back(number);
    number = t.forward(number);
  };
  forward();
  forward();
  for (size_t i = 0; i < 4; ++i) {
    t.backward(firsts[i]);
    if (i < 2) forward();
  }
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 4 * kForward);
  CHECK(r.part(PhasePart::kUnclear).flop == 4 * 26);
}

TEST_CASE("a part of backward that runs again begins no pass") {
  Training t;
  for (uint64_t number = 0; number < 10;) {
    const uint64_t first = number;
    number = t.forward(first);
    t.backward(first);
    t.node("MseLossBackward0", 5, first + 4);
    t.node("AddmmBackward0", 600, first + 3);
    t.run(kMain, {}, "aten::neg, sizes = [[4, 8]]", 3, first + 3);
  }
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == 2 * (kForward + 6));
  CHECK(r.part(PhasePart::kUnclear).launches == 0);
}

TEST_CASE("graph launches have no number") {
  Training t;
  t.forward(0);
  t.backward(0);
  const uint32_t path = t.scene.path({"aten::addmm, sizes = [[8], [4, 288], [288, 8]]"});
  const uint32_t kernel = t.scene.kernel("in_graph", 40);
  Launch launch = t.scene.at(kernel, path, 3);
  launch.graph = true;
  t.scene.launch(kMain, {launch});
  const Report r = t.reduce();
  CHECK(flop_of(r, "forward") == kForward);
  CHECK(flop_of(r, "other") == 80);
}

TEST_CASE("a summary keeps what numbers tell") {
  Training t;
  for (uint64_t number = 0; number < 10;) {
    const uint64_t first = number;
    t.run(kMain, {}, "aten::sub, sizes = [[4, 3, 8, 8], [3, 1, 1], []]", 13, first);
    number = t.forward(first);
    t.backward(first);
  }
  t.run(kMain, {}, "aten::addmm, sizes = [[8], [4, 288], [288, 8]]", 300, kNone);
  t.write(kMain);
  const Report r = t.scene.reduce();  // compares it with its summary's
  CHECK(flop_of(r, "forward") == 2 * kForward);
  CHECK(flop_of(r, "other") == 2 * 26 + 600);
}

TEST_CASE("numbers of a thread between passes") {
  BackwardPasses passes;
  BackwardPasses::Lane lane;
  const auto node = [&](uint64_t number, uint32_t operator_path) {
    const uint32_t pass = passes.node(lane, number);
    if (operator_path != 0)
      passes.joined(pass, number, {.thread = 1, .of = operator_path, .function = kNoIndex});
  };
  node(9, 109);
  node(7, 0);  // joined to nothing
  node(5, 105);
  node(19, 119);
  node(3, 103);  // below the pass before
  node(12, 112);
  const ForwardNumbers numbers = passes.take();
  REQUIRE(numbers.of(0, 1) != nullptr);
  CHECK(numbers.of(0, 2) == nullptr);
  CHECK(numbers.of(1, 1) == nullptr);
  NumberReader reader(numbers.of(0, 1));
  const auto tells = [&](uint64_t number, uint32_t operator_path = 0) {
    return reader.tells(number, [&](const ForwardNumbers::Pass& pass) {
      return pass.first_operator == operator_path;
    });
  };
  CHECK(tells(0) == NumberTells::kNothing);
  CHECK(tells(1) == NumberTells::kUnclear);
  CHECK(tells(4) == NumberTells::kUnclear);
  CHECK(tells(5) == NumberTells::kUnclear);
  CHECK(tells(5, 105) == NumberTells::kBetween);
  CHECK(tells(6) == NumberTells::kBetween);
  CHECK(tells(9) == NumberTells::kBetween);
  CHECK(tells(10) == NumberTells::kUnclear);
  CHECK(tells(12) == NumberTells::kUnclear);
  CHECK(tells(12, 112) == NumberTells::kBetween);
  CHECK(tells(19) == NumberTells::kBetween);
  CHECK(tells(20) == NumberTells::kUnclear);
  CHECK(tells(6) == NumberTells::kBetween);  // back again
}
