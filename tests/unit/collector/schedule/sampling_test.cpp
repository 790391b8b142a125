// What is measured, how often and at what cost, on a simulated clock.
#include <collector/options/rank_list.h>
#include <collector/schedule/sampled_signature.h>

#include <cmath>

#include "catch.h"
#include "simulated_program.h"

using namespace flopinj;
using namespace flopinj::test;

namespace {

constexpr uint32_t kScreening = SimulatedProgram::kScreening, kSass = SimulatedProgram::kSass;
constexpr uint64_t kMs = 1'000'000, kSecond = 1'000'000'000;

SchedulerConfig unlimited() {
  SchedulerConfig config;
  config.budget = MeasuringBudget::kUnlimited;
  return config;
}

}  // namespace

TEST_CASE("sampling: a known kernel is measured at growing intervals") {
  SimulatedProgram program(unlimited(), {});
  program.plan();
  const Signature& s = program.kernel("k");
  const uint64_t launches = 1'000'000;
  for (uint64_t i = 0; i < launches; ++i) program.launch(s, 10'000);
  // Stretches of 16 to 79 launches fill 64 * (16 + 79) / 2; then 160, 320, ... fill N after
  // log2(N / 160 + 1) doublings, of which the last may be unfinished, and the writer starts one up
  // to a drain late.
  const double doublings = std::log2((static_cast<double>(launches) - 3'040) / 160 + 1);
  const auto first = static_cast<double>(program.scheduler.config().first_samples);
  const auto hardware = static_cast<double>(program.samples_of(s, kScreening)) - first;
  const auto instrumented = static_cast<double>(program.samples_of(s, kSass)) - first;
  CHECK(hardware <= 64 + doublings + 1);
  CHECK(hardware >= 64 + doublings / 2);
  CHECK(std::abs(instrumented - 64 - (hardware - 64) / 2) <= 1);
  CHECK_FALSE(program.scheduler.varying(SimulatedProgram::kDevice, s.id));
  // The first samples are of the first launches.
  for (size_t i = 0; i < 6; ++i) CHECK(program.samples[i].ordinal == i);
  for (const auto& sample : program.samples) CHECK(sample.told == sample.ordinal);
}

TEST_CASE(
    "sampling: work that differs in one launch of twenty is met in the first 4,000 launches") {
  int met = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SchedulerConfig config = unlimited();
    config.seed = seed;
    SimulatedProgram program(config, {});
    program.plan();
    const Signature& s = program.kernel("k");
    Random random(1'000 + seed);
    for (int i = 0; i < 4'000; ++i) program.launch(s, 10'000, random.below(20) == 0 ? 100 : 1);
    met += program.scheduler.varying(SimulatedProgram::kDevice, s.id) ? 1 : 0;
  }
  CHECK(met >= 90);  // 1 - 0.95^60 is 95 %
}

TEST_CASE("sampling: short stretches wait for kernels that lack counts, and for the budget") {
  SchedulerConfig config;
  config.startup_ns = kSecond;
  SimulatedProgram program(config, {});
  program.plan();
  const Signature &known = program.kernel("known"), &late = program.kernel("late");
  // Its first samples have cost more than 1 % of a few milliseconds.
  for (int i = 0; i < 200; ++i) program.launch(known, 10'000);
  CHECK(program.samples_of(known, kSass) == config.first_samples);
  // Once the budget has caught up it is measured again, and again.
  while (program.wall_ns() < 20 * kSecond) program.launch(known, 10'000);
  CHECK(program.samples_of(known, kSass) > 20);
  CHECK(program.cost() < 1.1 * config.budget);
  // What comes late has its counts as early as if it were alone.
  for (int i = 0; i < 2; ++i) program.launch(late, 10'000);
  CHECK(program.samples_of(late, kScreening) + program.samples_of(late, kSass) >= 1);
  for (int i = 0; i < 4; ++i) program.launch(late, 10'000);
  program.launch_outside();
  CHECK(program.samples_of(late, kSass) == config.first_samples);
}

TEST_CASE("sampling: a kernel whose samples disagree is measured for good") {
  SimulatedProgram program(unlimited(), {});
  program.plan();
  const Signature &varying = program.kernel("v"), &fixed = program.kernel("f");
  const uint64_t launches = 400'000;
  for (uint64_t i = 0; i < launches; ++i) {
    program.launch(varying, 10'000, static_cast<double>(i % 7));
    program.launch(fixed, 10'000);
  }
  CHECK(program.scheduler.varying(SimulatedProgram::kDevice, varying.id));
  CHECK_FALSE(program.scheduler.varying(SimulatedProgram::kDevice, fixed.id));
  for (const uint32_t group : {kScreening, kSass}) {
    // One in a stretch of 1,024, which begins up to a drain (400 launches) late.
    const auto n = program.samples_of(varying, group);
    CHECK(n >= launches / (kVaryingStretch + 450));
    CHECK(n <= launches / kVaryingStretch + kShortStretches + 10);
    CHECK(program.samples_of(fixed, group) < kShortStretches + 20);
  }
}

TEST_CASE("sampling: screening alone does not make a kernel varying") {
  // Times and bytes are never the same twice.
  SimulatedProgram program(unlimited(), {});
  program.scheduler.add_plan(SimulatedProgram::kDevice, "GH100",
                             {{"screening", {"b"}, false, false}});
  const Signature& s = program.kernel("k");
  for (int i = 0; i < 100; ++i) program.launch(s, 10'000, i);
  CHECK(program.samples.size() >= 3);
  CHECK_FALSE(program.scheduler.varying(SimulatedProgram::kDevice, s.id));
}

TEST_CASE("sampling: every launch of a periodic pattern is equally likely") {
  // Every launch of ten does other work, and the program pauses before the first: whoever samples
  // by the clock meets that one far too often.
  constexpr uint64_t kPeriod = 10;
  SchedulerConfig config = unlimited();
  for (const uint64_t seed : {1, 2}) {
    config.seed = seed;
    SimulatedProgram program(config, {});
    program.plan();
    const Signature& s = program.kernel("k");
    for (uint64_t i = 0; i < 1'000'000; ++i) {
      const uint64_t place = i % kPeriod;
      program.launch(s, 10'000, static_cast<double>(place), place == 0 ? 20 * kMs : 0);
    }
    for (const uint32_t group : {kScreening, kSass}) {
      std::array<double, kPeriod> seen{};
      double n = 0;
      for (const auto& sample : program.samples)
        if (sample.group == group && sample.ordinal > 100) ++seen[sample.ordinal % kPeriod], ++n;
      REQUIRE(n > 500);
      double chi_square = 0;
      for (const double count : seen)
        chi_square += (count - n / kPeriod) * (count - n / kPeriod) / (n / kPeriod);
      CHECK(chi_square < 27.88);  // 9 degrees of freedom, p = 0.001
    }
  }
}

TEST_CASE("sampling: the budget is kept, whatever windows cost") {
  struct Case {
    bool gpu_bound;
    uint64_t gpu_ns, gap_ns, window_ns, slow_down;
  };
  for (const Case& c :
       {Case{true, kMs, 10'000, 2 * kMs, 100}, Case{false, 50'000, 2 * kMs, 2 * kMs, 100},
        Case{true, 4 * kMs, 10'000, 50 * kMs, 10}}) {
    SchedulerConfig config;
    SimulatedProgram::Machine machine;
    machine.gpu_bound = c.gpu_bound;
    machine.gap_ns = c.gap_ns;
    machine.window_ns = c.window_ns;
    machine.slow_down = c.slow_down;
    SimulatedProgram program(config, machine);
    program.plan();
    std::vector<const Signature*> kernels;
    for (int i = 0; i < 50; ++i) kernels.push_back(&program.kernel("k" + std::to_string(i)));
    const double budget = config.budget;
    double worst = 0;
    for (uint64_t i = 0; program.wall_ns() < 700 * kSecond; ++i) {
      // The first ten vary: they would be sampled without end.
      const uint64_t k = i % kernels.size();
      program.launch(*kernels[k], c.gpu_ns, k < 10 ? static_cast<double>(i % 97) : 1);
      const double spent = program.cost() * static_cast<double>(program.wall_ns());
      const double allowed = budget * static_cast<double>(program.wall_ns() + config.startup_ns);
      worst = std::max(worst, spent / allowed);
    }
    // One launch may take longer than was expected of it.
    CHECK(worst < 1.25);
    CHECK(program.cost() < budget * 1.1);
    CHECK(program.scheduler.coverage().share() > 0.99);
    // And what there is of it is used, unless the varying ones have all that they are to have.
    CHECK((program.cost() > budget / 2 ||
           program.samples_of(*kernels[0], kSass) > program.launches / 50 / 2'000));
    // What the scheduler believes agrees with what is true.
    const double truth = program.cost() * static_cast<double>(program.wall_ns());
    CHECK(static_cast<double>(program.scheduler.spent_ns()) > 0.9 * truth);
  }
}

TEST_CASE("sampling: what the budget has no room for leaves the launch path alone") {
  SchedulerConfig config;
  config.budget = 0.0001;  // 20 ms at the start
  SimulatedProgram::Machine machine;
  machine.window_ns = 500 * kMs;
  SimulatedProgram program(config, machine);
  program.plan();
  const Signature &a = program.kernel("a"), &b = program.kernel("b");
  for (int i = 0; i < 1'000'000; ++i) program.launch(a, 10'000), program.launch(b, 10'000);
  // The first window's cost was not known before. After it, nothing for a long time.
  CHECK(program.scheduler.windows_opened() == 1);
  CHECK(program.slow_decisions < 1'000);
  CHECK(program.scheduler.coverage().covered_launches == 0);
  CHECK(a.wanted_groups == 0);
}

TEST_CASE("sampling: a short program is measured at all") {
  SimulatedProgram program({}, {});
  program.plan();
  std::vector<const Signature*> kernels;
  for (int i = 0; i < 40; ++i) kernels.push_back(&program.kernel("k" + std::to_string(i)));
  for (int step = 0; step < 2; ++step)
    for (const Signature* s : kernels) program.launch(*s, 10'000);
  program.launch(*kernels[0], 10'000, 1, 20 * kMs);
  program.launch(*kernels[0], 10'000, 1, 20 * kMs);
  for (const Signature* s : kernels) {
    CHECK(program.samples_of(*s, kScreening) >= 1);
    CHECK(program.samples_of(*s, kSass) >= 1);
  }
}

TEST_CASE("sampling: three steps before a graph is captured suffice, wherever the machine stalls") {
  // A stall longer than a window may be open ends the window in the middle of a step.
  Random random(20);
  for (int run = 0; run < 500; ++run) {
    SimulatedProgram program(unlimited(), {});
    program.plan();
    std::vector<const Signature*> step;
    for (int i = 0; i < 20; ++i) {
      // Some kernels are launched several times in a step.
      step.push_back(&program.kernel("k" + std::to_string(random.below(4) == 0 ? i / 2 : i)));
    }
    const uint64_t stalls_in = 1 + random.below(20);  // launches between two of them
    for (int n = 0; n < 3; ++n)
      for (const Signature* s : step)
        program.launch(*s, 10'000, 1, random.below(stalls_in) == 0 ? 250 * kMs : 0);
    program.launch_outside();
    for (const Signature* s : step) {
      CAPTURE(run, stalls_in, s->id.value);
      REQUIRE(program.samples_of(*s, kScreening) >= 1);
      REQUIRE(program.samples_of(*s, kSass) >= 1);
    }
  }
}

TEST_CASE("sampling: counts cover the launches that came before the plan") {
  SimulatedProgram program(unlimited(), {});
  const Signature &a = program.kernel("a"), &before = program.kernel("before");
  for (int i = 0; i < 10'000; ++i) program.launch(a, 10'000);
  for (int i = 0; i < 50; ++i) program.launch(before, 10'000);
  CHECK(program.scheduler.coverage().covered_launches == 0);
  program.plan();
  for (int i = 0; i < 10'000; ++i) program.launch(a, 10'000);
  const Coverage coverage = program.scheduler.coverage();
  CHECK(coverage.launches >= 19'000);  // the rest is on its way
  CHECK(coverage.launches - coverage.covered_launches == 50);
  CHECK(coverage.share() < 1);  // the other kernel was never measured, and could have been
}

TEST_CASE("sampling: measuring stops when enough is covered, and that has lasted") {
  SchedulerConfig config = unlimited();
  config.until_covered = 0.95;
  SimulatedProgram::Machine machine;
  machine.gap_ns = kMs;
  SimulatedProgram program(config, machine);
  program.plan();
  const Signature &a = program.kernel("a"), &b = program.kernel("b");
  for (int i = 0; i < 1'000; ++i) program.launch(a, 10'000);
  CHECK_FALSE(program.scheduler.stopped());
  CHECK(program.scheduler.stop_reason().empty());
  // Before the time is over something else comes up that takes most of the time: not covered.
  program.scheduler.disable(SimulatedProgram::kDevice);
  for (int i = 0; i < 2'000; ++i) program.launch(b, 100'000);
  for (int i = 0; i < 6'000; ++i) program.launch(b, 100'000);
  CHECK(program.scheduler.coverage().share() < 0.95);
  CHECK_FALSE(program.scheduler.stopped());

  SimulatedProgram covered(config, machine);
  covered.plan();
  const Signature& c = covered.kernel("c");
  while (!covered.scheduler.stopped() && covered.wall_ns() < 100 * kSecond)
    covered.launch(c, 10'000);
  CHECK(covered.wall_ns() >= config.covered_for_ns);
  CHECK(covered.wall_ns() < config.covered_for_ns + kSecond);
  CHECK(covered.scheduler.stop_reason() ==
        "covered: 100.00 % of GPU time has complete counts, 95.00 % was asked for");
  CHECK(c.wanted_groups == 0);
  CHECK(covered.kernel("later").wanted_groups == 0);
  const size_t before = covered.samples.size();
  for (int i = 0; i < 100'000; ++i) covered.launch(c, 10'000);
  CHECK(covered.samples.size() == before);
}

TEST_CASE("sampling: measuring stops in a job with collectives and kernels that cannot be read") {
  SchedulerConfig config = unlimited();
  config.until_covered = 0.95;
  SimulatedProgram::Machine machine;
  machine.gap_ns = kMs;
  SimulatedProgram program(config, machine);
  program.plan();
  const Signature& collective = program.kernel("_Z31ncclDevKernel_AllReduce_Sum_f32_RING_LL");
  REQUIRE_FALSE(may_be_measured(collective));
  const Signature &kernel = program.kernel("kernel"), &broken = program.kernel("broken");
  MeasurementWindow window;  // every one with this kernel fails
  window.device = SimulatedProgram::kDevice;
  window.rows = {{&broken, {}, 0, true, 0}};
  for (uint32_t i = 0; i < 2 * config.max_failures; ++i) {
    window.group = i % 2;
    program.scheduler.window_failed(window);
  }
  while (!program.scheduler.stopped() && program.wall_ns() < 100 * kSecond) {
    program.launch(collective, 150'000);
    program.launch(broken, 50'000);
    program.launch(kernel, 300'000);
  }
  CHECK(program.scheduler.stopped());
  // Times inside windows are not counted, those of some 130 of 3,400 launches: a little more than
  // 200 of 500 us.
  const std::string reason = program.scheduler.stop_reason();
  INFO(reason);
  CHECK(reason.starts_with("covered: 100.00 % of GPU time has complete counts"));
  const size_t left_out = reason.find("; left out: ");
  REQUIRE(left_out != std::string::npos);
  CHECK(std::stod(reason.substr(left_out + 12)) > 40);
  CHECK(std::stod(reason.substr(left_out + 12)) < 42.5);
  CHECK(program.scheduler.coverage().gpu_ns > program.scheduler.coverage().covered_gpu_ns);
}

TEST_CASE("sampling: measuring stops in a job with kernels that run only in graphs") {
  SchedulerConfig config = unlimited();
  config.until_covered = 0.95;
  SimulatedProgram::Machine machine;
  machine.gap_ns = kMs;
  SimulatedProgram program(config, machine);
  program.plan();
  const Signature &kernel = program.kernel("kernel"), &graph = program.kernel("in a graph");
  while (!program.scheduler.stopped() && program.wall_ns() < 100 * kSecond) {
    program.launch(kernel, 100'000);
    LaunchProgress in_graph;  // recorded, and never launched where a window could be
    in_graph.device = SimulatedProgram::kDevice;
    in_graph.signature = graph.id;
    in_graph.recorded = in_graph.timed = 3;
    in_graph.gpu_ns = 900'000;
    program.scheduler.progress({&in_graph, 1}, 0, 0, program.wall_ns());
  }
  CHECK(program.scheduler.stopped());
  CHECK(program.scheduler.coverage().unmeasurable_launches % 3 == 0);
  // Once it runs outside of graphs it is as any other: it takes 90 % of the time, and has no count.
  LaunchProgress launched;
  launched.device = SimulatedProgram::kDevice;
  launched.signature = graph.id;
  launched.launches = launched.recorded = launched.timed = 1;
  launched.gpu_ns = 300'000;
  program.scheduler.progress({&launched, 1}, 0, 0, program.wall_ns());
  CHECK(program.scheduler.coverage().unmeasurable_launches == 0);
  CHECK(program.scheduler.coverage().share() < 0.2);
}

TEST_CASE(
    "sampling: kernels of seconds are measured only where a hundred times that is affordable") {
  const SchedulerConfig config;
  SimulatedProgram::Machine machine;
  machine.gpu_bound = true;
  SimulatedProgram program(config, machine);
  program.plan();
  std::vector<const Signature*> small, large;
  for (int i = 0; i < 5; ++i) small.push_back(&program.kernel("small" + std::to_string(i)));
  for (int i = 0; i < 4; ++i) large.push_back(&program.kernel("large" + std::to_string(i)));
  // All windows so far were of small ones.
  while (program.wall_ns() < 10 * kSecond)
    for (const Signature* k : small) program.launch(*k, kMs / 10);
  double worst = 0;
  while (program.wall_ns() < 4'000 * kSecond)
    for (uint64_t i = 0; i < 4; ++i) {
      for (const Signature* s : small) program.launch(*s, kMs / 10);
      program.launch(*large[i], (i + 1) * kSecond);
      const double spent = program.cost() * static_cast<double>(program.wall_ns());
      const double allowed =
          config.budget * static_cast<double>(program.wall_ns() + config.startup_ns);
      worst = std::max(worst, spent / allowed);
    }
  CHECK(worst < 1.25);
  for (const Signature* s : small) CHECK(program.samples_of(*s, kSass) > 0);
  CHECK(program.samples_of(*large[0], kScreening) > 0);
}

TEST_CASE("sampling: a kernel whose parameters never come again is measured across them") {
  // As a dropout in a training step is, with 20 other kernels or none.
  struct Case {
    uint32_t others;
    bool matters;  // the parameter, for the work
  };
  for (const Case& c : {Case{20, false}, Case{0, false}, Case{20, true}, Case{0, true}}) {
    INFO(c.others << c.matters);
    SimulatedProgram program(unlimited(), {});
    program.plan();
    const Signature* last = nullptr;
    for (uint64_t step = 1; step <= 40; ++step) {
      for (uint32_t k = 0; k < c.others; ++k)
        program.launch(program.kernel("k" + std::to_string(k)), 10'000);
      last = &program.kernel("dropout", step);
      program.launch(*last, 10'000, c.matters ? static_cast<double>(step) : 1);
    }
    program.launch(program.kernel("end"), 10'000, 1, kSecond);
    CHECK((last->parameter_class == ParameterClass::kMerged) == !c.matters);
    if (c.matters) continue;
    CHECK(program.samples_of(*last, kScreening) > 0);
    CHECK(program.samples_of(*last, kSass) > 0);
  }
}

TEST_CASE("sampling: kernels that come again are never merged, however alike") {
  SimulatedProgram program(unlimited(), {});
  program.plan();
  for (uint64_t step = 0; step < 20; ++step)
    for (uint64_t layer = 0; layer < 60; ++layer)
      program.launch(program.kernel("product", layer + 1), 10'000, static_cast<double>(layer));
  for (uint64_t layer = 0; layer < 60; ++layer)
    CHECK(program.kernel("product", layer + 1).parameter_class == ParameterClass::kExact);
}

TEST_CASE("sampling: what is armed and not launched any more gives its budget back") {
  SchedulerConfig config;
  config.startup_ns = 0;
  config.budget = 0.5;
  SimulatedProgram program(config, {});
  program.plan();
  // Each gets its first samples, and is armed for a round when its phase of the program ends.
  for (int k = 0; k < 200; ++k) {
    const Signature& s = program.kernel("k" + std::to_string(k));
    for (int i = 0; i < 400; ++i) program.launch(s, 10'000);
  }
  const Signature& last = program.kernel("last");
  for (uint64_t i = 0; i < 500'000; ++i) program.launch(last, 10'000, static_cast<double>(i % 5));
  CHECK(program.samples_of(last, kSass) > 250);
}

TEST_CASE("sampling: 10,000 signatures all get their counts") {
  SchedulerConfig config;
  SimulatedProgram::Machine machine;
  machine.gpu_bound = true;
  machine.slow_down = 2;  // 10,000 kernels at 100 times would be 100 s
  SimulatedProgram program(config, machine);
  program.plan();
  std::vector<const Signature*> kernels;
  for (int i = 0; i < 10'000; ++i) kernels.push_back(&program.kernel("k" + std::to_string(i)));
  for (int step = 0; step < 30; ++step)
    for (const Signature* s : kernels) program.launch(*s, 100'000);
  CHECK(program.scheduler.coverage().launches > 290'000);
  CHECK(program.scheduler.coverage().share() == 1);
  CHECK(program.cost() * static_cast<double>(program.wall_ns()) <
        1.1 * config.budget * static_cast<double>(program.wall_ns() + config.startup_ns));
}

TEST_CASE("a measured launch has its place for every group that was read of it") {
  LaunchCounts counts;
  const DeviceId device{1};
  const SignatureId signature{7};
  for (uint32_t launch = 0; launch < 10; ++launch)
    counts.taken(device, signature, 100 + launch, launch != 5 ? LaunchRecord::kWindowed : 0U);
  for (int group = 0; group < 3; ++group) {
    CHECK(counts.ordinal(device, signature, 103) == 3);
    CHECK(counts.ordinal(device, signature, 109) == 9);
    CHECK(counts.ordinal(device, signature, 110) == 10);  // did not come yet
  }
}

TEST_CASE("launches on green contexts have a place among the others, and are announced to nobody") {
  LaunchCounts counts;
  const DeviceId device{1};
  const SignatureId green{7}, both{8};
  for (uint32_t launch = 0; launch < 10; ++launch) {
    counts.taken(device, green, 100 + launch, LaunchRecord::kGreenContext);
    counts.taken(device, both, 200 + launch, launch < 4 ? LaunchRecord::kGreenContext : 0U);
  }
  CHECK(counts.ordinal(device, both, 210) == 10);
  const auto& changed = counts.changed();
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].signature == both);
  CHECK(changed[0].launches == 6);
}

TEST_CASE("stretches grow, and their place to arm leaves room for what is passed over") {
  Random random(5);
  for (uint32_t round = 0; round < 120; ++round)
    for (const bool varying : {false, true}) {
      const Stretch s = stretch_of(round, varying, random);
      const uint64_t fixed = round < 64 ? 16 + round : uint64_t{80} << std::min(round - 63, 40U);
      CHECK(s.launches == std::min(fixed, varying ? kVaryingStretch : ~uint64_t{0}));
      CHECK(s.arm_after + s.skip_below <= s.launches);
      CHECK(s.skip_below <= 4'096);
      CHECK(s.skip_below >= std::min<uint64_t>(s.launches, 1'024));
    }
}

TEST_CASE("random numbers below a bound are uniform") {
  Random random(7);
  std::array<int, 6> seen{};
  for (int i = 0; i < 60'000; ++i) ++seen[random.below(6)];
  double chi_square = 0;
  for (const int n : seen) chi_square += (n - 10'000.0) * (n - 10'000.0) / 10'000;
  CHECK(chi_square < 20.52);  // 5 degrees of freedom, p = 0.001
  CHECK(random.below(1) == 0);
  CHECK(random.below(0) == 0);
}

TEST_CASE("budget: the larger bound of the undisturbed time counts") {
  MeasuringBudget budget(0.01, 0);
  budget.begin(0);
  // 10 launches, 1 ms of calls, the window open for 1.2 ms: 0.2 ms were the program's own.
  budget.window(false, {50, 1'000'000, 1'200'000, 10}, 0);
  CHECK(budget.spent_ns() == 1'000'050);
  // Calls outside take 30 us: 10 of them are no cost.
  budget.calls_outside(100, 3'000'000);
  CHECK(budget.spent_ns() == 700'050);
  // The kernels take 0.7 ms outside, 0.2 of it behind the program's own time: 0.5 are no cost.
  MeasuringBudget gpu(0.01, 0);
  gpu.calls_outside(100, 3'000'000);
  gpu.window(false, {50, 1'000'000, 1'200'000, 10}, 700'000);
  CHECK(gpu.spent_ns() == 500'050);
  // Where the calls do not wait for instrumented kernels, the GPU's own view counts.
  gpu.slowed_down(900'000);
  CHECK(gpu.spent_ns() == 900'050);
}

TEST_CASE("budget: an instrumented kernel is expected to take the worst that others took") {
  MeasuringBudget budget(0.01, 0);
  budget.window(true, {500, 1'000, 2'000, 1}, 0);
  CHECK(budget.predicted_ns(true, 0, 0) == 1'500);
  CHECK(budget.predicted_ns(true, 0, kSecond) == 500 + 100 * kSecond);
  CHECK(budget.predicted_ns(true, 7'000, kSecond) == 7'500);  // its own call is known
  CHECK(budget.predicted_ns(false, 0, kSecond) == 1'500);
  for (const double times : {3.0, 8.0}) budget.slow_down_seen(times);
  CHECK(budget.predicted_ns(true, 0, kSecond) == 500 + 100 * kSecond);
  budget.slow_down_seen(2);
  CHECK(budget.predicted_ns(true, 0, kSecond) == 500 + 8 * kSecond);
}

TEST_CASE("budget: what may be spent grows with wall time, less what is reserved") {
  MeasuringBudget budget(0.01, 200 * kSecond);
  budget.begin(5 * kSecond);
  CHECK(budget.left_ns(true, 5 * kSecond) == 2 * kSecond);
  CHECK(budget.left_ns(false, 5 * kSecond) == 0);
  CHECK(budget.left_ns(false, 105 * kSecond) == kSecond);
  budget.reserve(kSecond / 2);
  CHECK(budget.left_ns(false, 105 * kSecond) == kSecond / 2);
  CHECK(budget.affords(false, kSecond / 2, 105 * kSecond));
  CHECK_FALSE(budget.affords(false, kSecond / 2 + 1, 105 * kSecond));
  budget.release(kSecond / 2);
  CHECK(budget.left_ns(false, 105 * kSecond) == kSecond);
  CHECK(budget.left_ns(false, 0) == 0);  // clocks may step back
  MeasuringBudget none(MeasuringBudget::kUnlimited, 0);
  none.overhead(kSecond);
  CHECK(none.affords(false, ~uint64_t{0}, 0));
}

TEST_CASE("ranks that measure") {
  const auto measuring = [](const char* text, int32_t rank) {
    const auto list = RankList::parse(text);
    REQUIRE(list);
    return list->contains(rank);
  };
  CHECK(RankList::only_rank_0().contains(0));
  CHECK_FALSE(RankList::only_rank_0().contains(1));
  CHECK(RankList::only_rank_0().contains(-1));
  CHECK(measuring("all", 7));
  CHECK_FALSE(measuring("none", 0));
  CHECK_FALSE(measuring("none", -1));
  for (const int32_t rank : {0, 8, 9, 15, 20}) CHECK(measuring("0,8-15,20", rank));
  for (const int32_t rank : {1, 7, 16, 21}) CHECK_FALSE(measuring("0,8-15,20", rank));
  CHECK(measuring("3-3", 3));
  for (const char* bad :
       {"", ",", "1,", "-1", "a", "1-", "5-3", "0 ,1", "all,1", "1--2", "99999999999"})
    CHECK_FALSE(RankList::parse(bad));
}
