// Figures per training step, from traces whose steps are known.
#include "catch.h"
#include "passes/definitions.h"
#include "passes/rows/single_steps.h"
#include "reduce_bytes.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

constexpr uint32_t kKernel = 1, kUnmeasured = 2, kPath = 1;
constexpr uint64_t kFlopEach = 300;  // 100 FFMA, 100 FADD

// Step n has n launches, of 10 ns each, and takes `wall` ns; the next begins 5 ns later.
std::string trace_of(const std::vector<uint64_t>& wall, uint64_t session = 1) {
  TraceBuilder t = started(session);
  t.kernel(kKernel, "kernel", 11);
  t.kernel(kUnmeasured, "other", 12);
  t.string(100, "train_step 7");
  t.path(kPath, 0, "train_step 7");
  t.samples(1, kKernel, {sass(100, 0, 100), sass(100, 0, 100)});
  std::vector<TraceBuilder::Launch> launches;
  std::vector<TraceBuilder::Step> steps;
  uint64_t at = 1'000'000;
  for (uint32_t n = 1; n <= wall.size(); ++n) {
    for (uint32_t i = 0; i < n; ++i)
      launches.push_back({.signature = kKernel, .duration_ns = 10, .path = kPath, .step = n});
    steps.push_back({n, at, wall[n - 1]});
    at += wall[n - 1] + 5;
  }
  launches.push_back({.signature = kKernel, .duration_ns = 10});
  const auto unfinished = static_cast<uint32_t>(wall.size() + 1);
  launches.push_back({.signature = kKernel, .duration_ns = 10, .path = kPath, .step = unfinished});
  t.launches(launches);
  // In two messages, as they end.
  const size_t half = steps.size() / 2;
  t.steps({steps.begin(), steps.begin() + static_cast<ptrdiff_t>(half)}, kPath);
  t.steps({steps.begin() + static_cast<ptrdiff_t>(half), steps.end()}, kPath);
  t.end();
  return t.bytes();
}

ReduceOptions skipping(uint64_t steps) {
  ReduceOptions options;
  options.utilization.skip_steps = steps;
  return options;
}

}  // namespace

TEST_CASE("steps: spreads are those of the steps") {
  const Report report = reduce_bytes({trace_of({900, 100, 110, 100, 160, 120})});
  const StepsReport& s = report.steps;
  CHECK(s.range == "train_step");
  CHECK(s.count == 6);
  CHECK(s.single);
  REQUIRE(s.wall_ns);
  CHECK(s.wall_ns->min == 100);
  CHECK(s.wall_ns->median == 115);  // 100 100 110 120 160 900
  CHECK(s.wall_ns->mean == 1490.0 / 6);
  CHECK(s.wall_ns->max == 900);
  REQUIRE(s.flop);
  CHECK(s.flop->min == 1 * kFlopEach);
  CHECK(s.flop->median == 3.5 * kFlopEach);
  CHECK(s.flop->max == 6 * kFlopEach);
  CHECK(!s.exact_flop);
  REQUIRE(s.gpu_ns);
  CHECK(s.gpu_ns->mean == 35);
  REQUIRE(s.outliers.size() == 1);
  CHECK(s.outliers[0].number == 1);
  CHECK(s.window_ns == 1490 + 5 * 5);
  const auto row = json_of(report)["step_summary"][0];
  for (const auto& [key, times] :
       {std::pair("min", 1.0), {"median", 3.5}, {"mean", 3.5}, {"max", 6.0}}) {
    INFO(row << key);
    CHECK(row["launches_" + std::string(key)] == times);
    CHECK(row["flop_" + std::string(key)] == times * kFlopEach);
  }
  CHECK(row["flop_of_all_processes"] == 3.5 * kFlopEach);
  CHECK(row["flop_each"].is_null());
}

TEST_CASE("steps: those that are skipped are in no figure") {
  const StepsReport s = reduce_bytes({trace_of({900, 100, 110, 100, 160, 120})}, skipping(2)).steps;
  CHECK(s.count == 4);
  CHECK(s.skipped == 2);
  CHECK(s.wall_ns->min == 100);
  CHECK(s.wall_ns->max == 160);
  CHECK(s.flop->min == 3 * kFlopEach);
  CHECK(s.window_ns == 110 + 100 + 160 + 120 + 3 * 5);
  CHECK(*s.mean_flop == 4.5 * kFlopEach);
}

TEST_CASE("steps: where none is left, all say why") {
  const Report report = reduce_bytes({trace_of({900, 100, 110})}, skipping(3));
  CHECK(report.steps.missing == "--skip-steps 3 leaves no step");
  CHECK(report.steps.hfu.why() == report.steps.missing);
  CHECK(report.steps.mfu.why() == report.steps.missing);
  const std::string text = text_of(report);
  INFO(text);
  CHECK(text.find("FLOP of a step: -, no launches") != std::string::npos);
  for (const char* name : {"HFU of these steps", "MFU of these steps"})
    CHECK(text.find(std::string(name) + "  -  --skip-steps 3 leaves no step") != std::string::npos);
  const auto j = json_of(report);
  CHECK(j["step_summary"][0]["hfu_why"] == report.steps.missing);
  // Of sums there is no share either, and it is said why.
  const std::string summary = merge_bytes({{"a.pb", trace_of({900, 100, 110})}}).bytes;
  CHECK(!reduce_bytes({summary}).steps.hfu.why().empty());
}

TEST_CASE("steps: of several processes") {
  const std::vector<uint64_t> wall = {100, 200, 300};
  const StepsReport s = reduce_bytes({trace_of(wall, 1), trace_of(wall, 2)}, skipping(1)).steps;
  CHECK(s.processes == 2);
  CHECK(s.per_process == 2);
  CHECK(s.count == 4);
  CHECK(s.skipped == 2);
  CHECK(s.wall_ns->median == 250);
  CHECK(*s.mean_flop == 2.5 * kFlopEach);
  CHECK(*s.job_flop == 2 * 2.5 * kFlopEach);
}

TEST_CASE("steps: an unmeasured launch leaves the FLOP unknown, and the times known") {
  TraceBuilder t = started();
  t.kernel(kKernel, "kernel", 11);
  t.kernel(kUnmeasured, "other", 12);
  t.string(100, "step");
  t.path(kPath, 0, "step");
  t.samples(1, kKernel, {sass(100, 0, 100), sass(100, 0, 100)});
  t.launches({{.signature = kKernel, .duration_ns = 10, .step = 1},
              {.signature = kUnmeasured, .duration_ns = 30, .step = 1},
              {.signature = kUnmeasured, .duration_ns = 90, .windowed = true, .step = 1}});
  t.steps({{1, 1000, 500}}, kPath);
  t.end();
  const StepsReport s = reduce_bytes({t.bytes()}).steps;
  CHECK(!s.mean_flop);
  CHECK(s.wall_ns->median == 500);
  REQUIRE(s.mean_gpu_ns.known());
  // What measuring slowed counts with the time of the other: about so.
  CHECK(*s.mean_gpu_ns.number() == 10 + 30 + 30);
  CHECK(has(s.mean_gpu_ns.marks(), Mark::kEstimate));
}

TEST_CASE("steps: a summary that has all of them says of them what the trace says") {
  for (const std::vector<uint64_t>& wall :
       {std::vector<uint64_t>{900, 100, 110, 100, 160, 120}, {100, 900}, {100, 110, 800, 900}}) {
    const std::string bytes = trace_of(wall);
    const std::string summary = merge_bytes({{"a.pb", bytes}}).bytes;
    const auto of_trace = json_of(reduce_bytes({bytes})), found = json_of(reduce_bytes({summary}));
    for (const char* table : {"steps", "step_summary", "slow_steps", "step_list", "ratio"})
      CHECK(found.value(table, nlohmann::json()) == of_trace.value(table, nlohmann::json()));
    CHECK(reduce_bytes({summary}).steps.single);
    CHECK(!reduce_bytes({summary}, skipping(1)).steps.missing.empty());
    // A summary of a summary is the same.
    CHECK(merge_bytes({{"b.pb", summary}}).bytes == summary);
  }
}

// Steps of one launch each, of 10 ns, that take `wall(number)` ns.
template <typename Wall>
std::string many_steps(uint32_t count, uint64_t session, Wall&& wall) {
  TraceBuilder t = started(session);
  t.kernel(kKernel, "kernel", 11);
  t.string(100, "step");
  t.path(kPath, 0, "step");
  t.samples(1, kKernel, {sass(100, 0, 100), sass(100, 0, 100)});
  std::vector<TraceBuilder::Launch> launches;
  std::vector<TraceBuilder::Step> steps;
  uint64_t at = 1'000'000;
  for (uint32_t n = 1; n <= count; ++n) {
    launches.push_back({.signature = kKernel, .duration_ns = 10, .path = kPath, .step = n});
    steps.push_back({n, at, wall(n)});
    at += wall(n) + 5;
  }
  t.launches(launches);
  t.steps(steps, kPath);
  t.end();
  return t.bytes();
}

TEST_CASE("steps: of more than a summary has, what their sums say") {
  const auto wall = [](uint32_t n) { return n == 1 ? 900 : 100 + n % 20; };
  const std::string summary = merge_bytes({{"a.pb", many_steps(1025, 1, wall)}}).bytes;
  const StepsReport s = reduce_bytes({summary}).steps;
  CHECK(!s.single);
  CHECK(s.count == 1025);
  CHECK(s.wall_ns->min == 100);
  CHECK(s.wall_ns->max == 900);
  CHECK(s.wall_ns->median_approximate);
  CHECK(s.wall_ns->median == Approx(110).epsilon(0.01));
  CHECK(*s.mean_flop == kFlopEach);
  CHECK(!s.hfu.known());
}

TEST_CASE("steps: where summaries have too many, all are sums, in any form") {
  std::string summaries;
  constexpr uint32_t kEach = 1000;
  const auto wall = [](uint32_t n) { return 100 + n % 20; };
  const uint32_t ranks = DefinitionPass::kMostSingleSteps / kEach;
  const auto of = [&](uint32_t count) {
    std::string all;
    for (uint32_t rank = 0; rank < count; ++rank)
      all += merge_bytes({{"a.pb", many_steps(kEach, rank + 1, wall)}}).bytes;
    return all;
  };
  CHECK(reduce_bytes({of(ranks)}).steps.single);
  const std::string more = of(ranks + 1);
  ReduceOptions with_facts;
  with_facts.facts = true;
  for (const ReduceOptions& options : {ReduceOptions(), with_facts})
    CHECK(!reduce_bytes({more}, options).steps.single);
}

TEST_CASE("steps: the same whatever the number of threads") {
  std::vector<uint64_t> wall;
  for (uint64_t n = 0; n < 150; ++n) wall.push_back(100 + n * n % 37);
  const std::string trace = trace_of(wall);
  ReduceOptions options;
  options.jobs = 1;
  const std::string one = json_text_of(reduce_bytes({trace}, options));
  options.jobs = 4;
  CHECK(json_text_of(reduce_bytes({trace}, options)) == one);
}

TEST_CASE("steps: messages that cannot be are logged, and the rest is used") {
  TraceBuilder t = started();
  t.kernel(kKernel, "kernel", 11);
  t.launches({{.signature = kKernel, .duration_ns = 10, .step = 3}});
  t.steps({{0, 1000, 5}, {3, 1000, 500}, {4, 2000, UINT64_MAX / 2}}, 77);
  flopinj::trace::TracePacket p;
  p.mutable_steps()->add_number_delta(1);
  t.add(p);
  p.mutable_step_sums()->set_steps(5);  // and no buckets
  t.add(p);
  t.end();
  const Report report = reduce_bytes({t.bytes()});
  CHECK(report.steps.count == 1);
  CHECK(report.steps.range.empty());
  CHECK(damage_of(report, Damage::kBadTime) == 2);
  CHECK(damage_of(report, Damage::kBadColumns) == 2);
}

namespace {

SingleSteps::Launch timed_launch(uint32_t device, uint64_t start_ns, uint64_t duration_ns,
                                 uint32_t signature = 1) {
  return {device, signature, start_ns, duration_ns, true};
}

StepTable ended_steps(uint32_t count) {
  flopinj::trace::Steps message;
  for (uint32_t n = 0; n < count; ++n) {
    message.add_number_delta(1);
    message.add_gap_ns(0);
    message.add_duration_ns(100);
  }
  StepTable table;
  DamageLog damage;
  table.add(message, damage);
  return table;
}

}  // namespace

TEST_CASE("single steps: busy time is the union of kernels, added up over devices") {
  const StepTable table = ended_steps(2);
  SingleSteps steps(table, 1024);
  steps.launch(2, timed_launch(1, 100, 10));
  steps.launch(1, timed_launch(1, 5, 10));
  steps.launch(1, timed_launch(1, 0, 10));  // 0 to 15 together
  steps.launch(1, timed_launch(1, 20, 5));
  steps.launch(1, timed_launch(2, 0, 12));
  SingleSteps::Launch windowed = timed_launch(1, 40, 3);
  windowed.windowed = true;
  steps.launch(1, windowed);
  steps.launch(3, timed_launch(1, 0, 10));  // did not end
  const auto times = steps.take_times();
  REQUIRE(times.size() == 2);
  CHECK(times.at(1).busy_ns == 15 + 5 + 12 + 3);
  CHECK(times.at(1).gpu_ns == 10 + 10 + 5 + 12);
  CHECK(times.at(1).untimed == 1);
  CHECK(times.at(2).busy_ns == 10);
}

TEST_CASE("single steps: a launch that comes after its step was closed is counted") {
  const StepTable table = ended_steps(2);
  SingleSteps steps(table, 1024);
  steps.launch(1, timed_launch(1, 0, 10));
  for (uint64_t i = 0; i <= SingleSteps::kMostOpen; ++i)
    steps.launch(2, timed_launch(1, 100 + i * 10, 10));
  steps.launch(1, timed_launch(1, 50, 10));
  const auto message = steps.take_message(spans_of(table.steps()));
  REQUIRE(message);
  REQUIRE(message->launches_size() == 2);
  CHECK(message->launches(0) == 2);
  CHECK(message->gpu_time_ns(0) == 20);
  CHECK(message->busy_ns(0) == 0);  // not known
  CHECK(message->kind(0) == 0);
}

TEST_CASE("single steps: equal launches are one kind, and kinds have a bound") {
  const auto most = static_cast<uint32_t>(SingleSteps::kMostKinds);
  const StepTable table = ended_steps(most + 3);
  SingleSteps steps(table, 1024);
  for (uint32_t n = 1; n <= most + 2; ++n) steps.launch(n, timed_launch(1, n, 1, n));
  steps.launch(most + 3, timed_launch(1, 9999, 1, 1));  // as step 1
  const auto message = steps.take_message(spans_of(table.steps()));
  REQUIRE(message);
  CHECK(message->kind(0) == message->kind(static_cast<int>(most) + 2));
  CHECK(message->kind(static_cast<int>(most) - 1) == most);
  CHECK(message->kind(static_cast<int>(most)) == 0);
  DamageLog damage;
  StepTable read;
  read.add(*message, damage);
  CHECK_FALSE(damage.partial());
  CHECK(read.in_summary().steps.size() == most + 3);
  CHECK(read.in_summary().kinds.size() == most);
  flopinj::trace::SingleSteps wrong = *message;
  wrong.set_kind(0, most + 1);
  StepTable nothing;
  nothing.add(wrong, damage);
  CHECK(damage.count(Damage::kBadColumns) == 1);
  CHECK(nothing.in_summary().steps.empty());
}

TEST_CASE("single steps: at most so many are kept, evenly") {
  const StepTable table = ended_steps(1025);
  const auto message = SingleSteps(table, 1024).take_message(spans_of(table.steps()));
  REQUIRE(message);
  CHECK(message->every() == 2);
  CHECK(message->kind_size() == 513);  // 1, 3, ... 1025
  const StepTable fewer = ended_steps(1024);
  CHECK(SingleSteps(fewer, 1024).take_message(spans_of(fewer.steps()))->every() == 1);
}
