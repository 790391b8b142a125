// "MFU >=" where a product has no FLOP count: whatever precision it ran in, and however much it
// executed, MFU is no less. What it did is tried out: the same trace with its counters read.
#include <array>

#include "catch.h"
#include "gates/figures.h"
#include "gates/gate.h"
#include "reduce_bytes.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

// A product of 4096 x 4096 matrices, and an elementwise kernel in fp32, in each of two steps.
constexpr double kProduct = 2.0 * 4096 * 4096 * 4096, kElements = 1e8;
constexpr uint32_t kElementwise = 1, kMatrix = 2, kStep = 1, kForward = 2, kMm = 3, kMul = 4;
constexpr uint64_t kSteps = 2;

// Sources of tensor work; the last one is no tensor's: fused multiply-adds in fp32.
constexpr std::array kFormats = {"bf16", "fp16", "tf32", "fp8", "fp4", "fp32"};

struct Ran {
  std::string format;    // of kFormats
  double padding = 1;    // executed / formula; below 1 the kernel's name says why
  bool in_part = false;  // a second kernel of the product, in fp32, is measured in any case
};

// `known`: the product's counters were read.
std::string trace_of(const Ran& ran, bool known, const std::string& device, const char* chip,
                     uint32_t multiprocessors) {
  TraceBuilder t;
  t.header(1);
  t.device(1, chip, device, multiprocessors);
  t.thread(1, "main");
  t.stream();
  t.group(1, "sass", sass_metrics());
  // Not of an unknown product: nothing tells then which formats there are.
  uint32_t group = 1;
  t.kernel(kElementwise, "elementwise", 11);
  t.kernel(kMatrix, ran.padding < 1 ? "winograd" : "product", 12);
  t.kernel(5, "split", 13);
  t.samples(1, kElementwise, {sass(kElements, 0, 0)});
  t.samples(1, 5, {sass(0, 0, 1e8)});
  if (known) {
    const double executed = kProduct * ran.padding;
    const bool fp32 = ran.format == "fp32";
    t.samples(1, kMatrix, {sass(0, 0, fp32 ? executed / 2 : 0)});
    if (!fp32) {
      t.group(++group, "tensor", {"sm__ops_path_tensor_src_" + ran.format + "_dst_fp32.sum"},
              false);
      t.samples(group, kMatrix, {{executed}});
    }
  }
  t.path(kStep, 0, "step");
  t.path(kForward, kStep, "forward");
  t.path(kMm, kForward, "aten::mm, sizes = [[4096, 4096], [4096, 4096]]");
  t.path(kMul, kForward, "aten::mul, sizes = [[100000000], []]");
  std::vector<TraceBuilder::Launch> launches;
  std::vector<TraceBuilder::Step> steps;
  for (uint32_t n = 1; n <= kSteps; ++n) {
    launches.push_back(
        {.signature = kElementwise, .duration_ns = 200'000, .path = kMul, .step = n});
    launches.push_back({.signature = kMatrix, .duration_ns = 9'000'000, .path = kMm, .step = n});
    if (ran.in_part)
      launches.push_back({.signature = 5, .duration_ns = 200'000, .path = kMm, .step = n});
    steps.push_back({n, 1000 + (n - 1) * 10'000'000, 9'900'000});
  }
  t.launches(launches);
  t.steps(steps, kStep);
  t.overhead(0, 20'000'000);
  t.end();
  return t.bytes();
}

struct Product {
  const char *name, *chip;
  uint32_t multiprocessors;
};
constexpr Product kH100{"NVIDIA H100 80GB HBM3", "GH100", 132}, kB200{"NVIDIA B200", "GB100", 148},
    kUnknown{"Some GPU", "GH100", 132};

Report report_of(const Ran& ran, bool known, const Product& gpu, UtilizationOptions options = {}) {
  ReduceOptions reduce;
  reduce.utilization = std::move(options);
  reduce.lost = true;
  return reduce_bytes({trace_of(ran, known, gpu.name, gpu.chip, gpu.multiprocessors)},
                      std::move(reduce));
}

// All that is a share of the model's FLOP, by name.
std::map<std::string, Figure> model_figures(const Report& report) {
  const UtilizationReport& u = report.utilization;
  std::map<std::string, Figure> figures{{"steps", report.steps.mfu}};
  for (const UtilizationMethod& m : u.methods) {
    figures[m.name + " wall"] = m.wall;
    figures[m.name + " gpu_time"] = m.gpu_time;
  }
  if (report.lost.known() && report.lost.formula)
    figures["ledger"] = {report.lost.share(report.lost.at(LostLine::kModel)),
                         report.lost.sum({LostLine::kModel}).marks()};
  return figures;
}

UtilizationOptions peaks(std::initializer_list<const char*> list) {
  UtilizationOptions options;
  for (const char* peak : list) options.peaks.push_back(parse_peak(peak).value);
  return options;
}

}  // namespace

TEST_CASE("model bounds: no precision of what is not measured gives less") {
  UtilizationOptions six_nd, given, forward;
  six_nd.parameters = 1e6;
  six_nd.tokens_per_step = 2e4;
  given.formula_flop = 2 * kProduct;
  forward.forward_flop = kProduct;
  size_t bounds = 0;
  for (const Product& gpu : {kH100, kB200})
    for (const UtilizationOptions& options :
         {UtilizationOptions{}, six_nd, given, forward, peaks({"tf32=5000T"}),
          peaks({"bf16=20000T", "fp32=1T"})})
      for (const bool in_part : {false, true})
        for (const char* format : kFormats)
          for (const double padding : {0.25, 1.0, 3.0}) {
            const Ran ran{format, padding, in_part};
            const Report measured = report_of(ran, true, gpu, options);
            const auto truth = model_figures(measured);
            for (const auto& [name, bound] : model_figures(report_of(ran, false, gpu, options))) {
              INFO(gpu.name << ", " << format << " x " << padding << ", " << name);
              if (!bound.known() || !truth.contains(name)) continue;
              if (!truth.at(name).known()) continue;  // above peak
              CHECK(has(bound.marks(), Mark::kAtLeast));
              CHECK_FALSE(has(bound.marks(), Mark::kAtMost));
              CHECK(*bound.number() <= *truth.at(name).number() * (1 + 1e-9));
              ++bounds;
            }
          }
  CHECK(bounds > 1000);
}

TEST_CASE("model bounds: the bound is the formula's FLOP at the fastest peak") {
  const Ran ran{"bf16", 1, false};
  // fp8, 1,978.9 TFLOP/s by the table: the H100's fastest dense format that counts FLOP.
  const Report report = report_of(ran, false, kH100);
  const Figure& wall = report.utilization.mfu()->wall;
  REQUIRE(wall.known());
  const double elements = 2 * 1e8 / 66.9e3;  // of aten::mul, measured
  CHECK(*wall.number() == Approx((2 * kProduct / 1978.9e3 + elements) / 20e6));
  CHECK(marks_text(wall.marks()) == ">=");
  const auto verdict = [&](const char* text) {
    Gate gate;
    std::string error;
    REQUIRE(Gate::parse(text, gate, error));
    const std::vector<Table> tables = gate_tables(report);
    return gate.evaluate([&](const FigurePath& path) { return find_figure(tables, path); }).verdict;
  };
  CHECK(verdict("mfu < 40%") == Verdict::kNotKnown);
  CHECK(verdict("mfu < 0.5%") == Verdict::kPassed);
  // A faster peak of the user's is the fastest.
  const Report faster = report_of(ran, false, kH100, peaks({"tf32=3957.8T"}));
  CHECK(*faster.utilization.mfu()->wall.number() ==
        Approx((2 * kProduct / 3957.8e3 + elements) / 20e6));
  // Where all is measured nothing is taken to be faster than it was.
  CHECK(*report_of(ran, true, kH100).utilization.mfu()->wall.number() ==
        Approx((2 * kProduct / 989.4e3 + elements) / 20e6));
}

TEST_CASE("model bounds: without all peaks of the device there is none, and it is said why") {
  const Ran ran{"bf16", 1, false};
  UtilizationOptions fp32 = peaks({"fp32=67T"}), given = fp32;
  given.formula_flop = 2 * kProduct;
  for (const UtilizationOptions& options : {fp32, given}) {
    const Report report = report_of(ran, false, kUnknown, options);
    const UtilizationMethod& mfu = *report.utilization.mfu();
    CHECK_FALSE(mfu.wall.known());
    CHECK(mfu.wall.why() ==
          "launches without a FLOP count, and not all peaks of the device are known");
    CHECK_FALSE(report.steps.mfu.known());
    REQUIRE(report.lost.known());
    CHECK_FALSE(report.lost.formula);
    const auto j = json_of(report);
    CHECK(j["figures"]["mfu"].is_null());
    CHECK_FALSE(j["figures"].contains("mfu_at_least"));
    // HFU's bound is of what was measured, whose peak is known.
    CHECK(j["figures"]["hfu_at_least"].get<double>() == Approx(2 * kElements / 67e3 / 20e6));
  }
  // Of what is measured whole only the peaks that it ran at are wanted.
  UtilizationOptions both = peaks({"fp32=67T", "bf16=1000T"});
  CHECK(report_of(ran, true, kUnknown, both).utilization.mfu()->wall.known());
}

TEST_CASE("MFU of steps is of the FLOP that the run's is of, saved ones too") {
  UtilizationOptions six_nd, given;
  six_nd.parameters = 1e6;
  six_nd.tokens_per_step = 2e4;
  given.formula_flop = 2 * kProduct;
  for (const UtilizationOptions& of : {UtilizationOptions{}, six_nd, given})
    for (const bool known : {true, false})
      for (const bool in_part : {false, true})
        for (const double padding : {0.0, 0.01, 0.25, 1.0, 1.5}) {
          INFO(padding << " x, known " << known << ", in part " << in_part);
          const Ran ran{"bf16", padding, in_part};
          const Report report = report_of(ran, known, kH100, of);
          const UtilizationMethod& mfu = *report.utilization.mfu();
          REQUIRE(mfu.wall.known());
          REQUIRE(report.steps.mfu.known());
          const double ns = *report.steps.mfu.number() * report.steps.device_window_ns;
          CHECK(ns == Approx(*mfu.wall.number() * *report.utilization.wall_ns.number()));
          CHECK(ns == Approx(*mfu.least_ns.number()));
          CHECK(has(report.steps.mfu.marks(), Mark::kAtLeast) != known);
          // Of one step of two, half.
          UtilizationOptions one = of;
          one.skip_steps = 1;
          if (one.formula_flop) *one.formula_flop /= 2;  // that is of what is left
          const Report half = report_of(ran, known, kH100, one);
          CHECK(*half.steps.mfu.number() * half.steps.device_window_ns == Approx(ns / 2));
          REQUIRE((report.lost.known() && half.lost.known()));
          CHECK(static_cast<double>(half.lost.saved_ns) ==
                Approx(static_cast<double>(report.lost.saved_ns) / 2).margin(1));
          // What was saved is what MFU has beyond the ledger's last line.
          if (!known) continue;
          CHECK(static_cast<double>(report.lost.at(LostLine::kModel) + report.lost.saved_ns) ==
                Approx(ns).margin(2));
        }
}

TEST_CASE("bounds: a figure that is bounded on both sides is an estimate") {
  using enum Mark;
  CHECK(marks_text(kAtLeast | kAtMost) == "~");
  CHECK(marks_text(kMoreThan | kAtMost) == "~");
  CHECK(marks_text(kAtLeast | kAtMost | kEstimate) == "~");
  CHECK(marks_text(kAtLeast) == ">=");
  CHECK(marks_text(kAtLeast | kMoreThan) == ">=");
  CHECK(marks_text(kMoreThan) == ">");
  CHECK(marks_text(kAtMost) == "<=");
  CHECK(marks_text(kAtLeast | kEstimate) == ">= ~");
  CHECK(marks_text(kAtMost | kEstimate) == "<= ~");
  CHECK(marks_text(kNone) == "");
  // A part with and without counts, of a whole that has others without.
  Work part, whole;
  part.launches = 2;
  part.unmeasured = 1;
  part.flop = 100;
  whole.launches = 10;
  whole.unmeasured = 5;
  whole.flop = 400;
  CHECK(share_text(flop_share(part, whole)) == "~ 25.0 %");
}
