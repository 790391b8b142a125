// Which launch belongs to which part of training.
#include "catch.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// The phase of a launch in nested ranges, outermost first, on a thread.
std::string phase_of(const std::vector<std::string>& ranges, const std::string& thread = "python",
                     PhaseRules rules = {}) {
  TraceBuilder t;
  t.header();
  t.device();
  t.stream();
  t.thread(1, thread);
  t.kernel(1, "k", 11);
  uint32_t id = 0;
  for (const auto& name : ranges) {
    ++id;
    t.path(id, id - 1, name);
  }
  t.launches({{1, 5, id}});
  t.end();
  const Report r = reduce_bytes({t.bytes()}, {.fma = 2, .rules = std::move(rules)});
  REQUIRE(r.phases.size() == 1);
  return r.phases[0].name;
}

}  // namespace

TEST_CASE("range names decide by whole words") {
  CHECK(phase_of({"forward"}) == "forward");
  CHECK(phase_of({"Forward pass"}) == "forward");
  CHECK(phase_of({"model_fwd"}) == "forward");
  CHECK(phase_of({"BACKWARD"}) == "backward");
  CHECK(phase_of({"loss.backward"}) == "backward");
  CHECK(phase_of({"optimizer.step"}) == "optimizer");
  CHECK(phase_of({"loss"}) == "loss");
  CHECK(phase_of({"fast-forwarding"}) == "other");
  CHECK(phase_of({"straightforward"}) == "other");
  CHECK(phase_of({"lossless"}) == "other");
  CHECK(phase_of({}) == "other");
}

TEST_CASE("the innermost range that decides wins") {
  CHECK(phase_of({"step", "forward", "layer:fc1"}) == "forward");
  CHECK(phase_of({"backward", "forward"}) == "forward");
  CHECK(phase_of({"forward", "loss"}) == "loss");
}

TEST_CASE("a name that speaks for two phases decides nothing") {
  CHECK(phase_of({"forward-backward"}) == "other");
  CHECK(phase_of({"optimizer", "forward_backward_step"}) == "optimizer");
}

TEST_CASE("PyTorch's names") {
  CHECK(phase_of({"autograd::engine::evaluate_function: ConvolutionBackward0"}) == "backward");
  CHECK(phase_of({"ConvolutionBackward0, sizes = [[1, 2]]"}) == "backward");
  CHECK(phase_of({"AddmmBackward#"}) == "backward");
  CHECK(phase_of({"Optimizer.step#SGD.step"}) == "optimizer");
  CHECK(phase_of({"torch::autograd::AccumulateGrad"}) == "backward");
  CHECK(phase_of({"NotBackwardAtAll"}) == "other");
}

TEST_CASE("threads decide where no range does") {
  CHECK(phase_of({}, "pt_autograd_0") == "backward");
  CHECK(phase_of({"layer:fc1"}, "pt_autograd_12") == "backward");
  CHECK(phase_of({"forward"}, "pt_autograd_0") == "forward");
  CHECK(phase_of({}, "autograd") == "backward");
}

TEST_CASE("user rules come first, in their order") {
  PhaseRules rules;
  CHECK_FALSE(rules.add_user_rule("recompute=checkpoint").has_value());
  CHECK_FALSE(rules.add_user_rule("special=^check").has_value());
  CHECK(phase_of({"backward", "Checkpoint forward"}, "main", rules) == "recompute");
  CHECK(phase_of({"forward"}, "main", rules) == "forward");
  CHECK(rules.add_user_rule("nonsense").has_value());
  CHECK(rules.add_user_rule("x=(").has_value());
  CHECK(rules.add_user_rule("=x").has_value());
}

TEST_CASE("a user rule cannot be made to run for ever") {
  PhaseRules rules;
  REQUIRE_FALSE(rules.add_user_rule("slow=(a+)+$").has_value());
  CHECK(phase_of({std::string(5000, 'a') + "b"}, "main", rules) == "slow");  // cut before the b
  CHECK(phase_of({std::string(300, 'a') + "!"}, "main", rules) == "other");
}

TEST_CASE("rules report their share") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.path(1, 0, "forward");
  t.path(2, 0, "bwd");
  t.samples(1, 1, {sass(1, 0, 0)});
  t.tally({{1, 10, 0, 0, 1}, {1, 20, 0, 0, 2}, {1, 40, 0, 0, 0}});
  t.end();
  const auto j = json_of(reduce_bytes({t.bytes()}));
  uint64_t launches = 0;
  for (const auto& rule : j["rules"]) launches += rule["launches"].get<uint64_t>();
  CHECK(launches == 70);
  CHECK(j["rules"].back()["rule"] == "no rule matched");
  CHECK(j["rules"].back()["flop"] == "40");
}

TEST_CASE("backward / forward and what it should be") {
  TraceBuilder t = started();
  t.kernel(1, "gemm", 11);
  t.kernel(2, "add", 12);
  t.path(1, 0, "step");
  t.path(2, 1, "forward");
  t.path(3, 2, "fc1");
  t.path(4, 2, "relu");
  t.path(5, 2, "fc2");
  t.path(6, 1, "backward");
  t.path(7, 6, "fc2");
  t.path(8, 6, "fc1");
  t.samples(1, 1, {sass(0, 0, 50)});  // 100 FLOP of matrix work
  t.samples(1, 2, {sass(10, 0, 0)});
  // Forward: fc1 100, relu 10, fc2 300. Backward: fc2 600, fc1 100 (no input gradient).
  t.launches({{1, 1, 3}, {2, 1, 4}, {1, 1, 5}, {1, 1, 5}, {1, 1, 5}});
  t.launches({{1, 1, 7}, {1, 1, 7}, {1, 1, 7}, {1, 1, 7}, {1, 1, 7}, {1, 1, 7}, {1, 1, 8}});
  t.end();
  const auto j = json_of(reduce_bytes({t.bytes()}));
  CHECK(j["backward_forward_ratio"].get<double>() == Approx(700.0 / 410));
  CHECK(j["backward_forward_matrix_ratio"].get<double>() == Approx(1.75));
  CHECK(j["first_layer_share"].get<double>() == Approx(0.25));
  CHECK(j["backward_forward_expected"].get<double>() == Approx(1.75));
  REQUIRE(j["layers"].size() == 2);
  CHECK(j["layers"][0]["path"] == "step/forward/fc1");
  CHECK(j["layers"][0]["first"] == true);
  CHECK(j["layers"][1]["forward_matrix_flop"] == "300");
}

TEST_CASE("inclusive range figures hold everything below, exclusive ones do not") {
  TraceBuilder t = started();
  t.kernel(1, "k", 11);
  t.path(1, 0, "a");
  t.path(2, 1, "b");
  t.path(3, 2, "c");
  t.samples(1, 1, {sass(1, 0, 0)});
  t.tally({{1, 1, 0, 0, 1}, {1, 10, 0, 0, 2}, {1, 100, 0, 0, 3}, {1, 1000, 0, 0, 0}});
  t.end();
  const auto j = json_of(reduce_bytes({t.bytes()}));
  REQUIRE(j["ranges"].size() == 3);
  CHECK(j["ranges"][0]["path"] == "a");
  CHECK(j["ranges"][0]["flop"] == "111");
  CHECK(j["ranges"][0]["flop_exclusive"] == "1");
  CHECK(j["ranges"][1]["path"] == "a/b");
  CHECK(j["ranges"][1]["flop"] == "110");
  CHECK(j["ranges"][2]["launches_exclusive"] == 100);
  CHECK(j["outside_ranges"]["flop"] == "1000");
}
