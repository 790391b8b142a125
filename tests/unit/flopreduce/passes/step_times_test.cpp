// How long training steps take, where the program runs ahead of the GPU: by hand, and on random
// time lines against the definition written out.
#include "tables/step_times.h"

#include <random>
#include <set>

#include "catch.h"
#include "passes/launches.h"
#include "reduce_bytes.h"
#include "sections/screens/comparison.h"
#include "sections/sections.h"

using namespace flopinj::test;
using namespace flopinj::reduce;

namespace {

struct Ran {
  uint32_t device = 1, stream = 1, step = 0;
  uint64_t begin_ns = 0, ns = 0;
};
struct Scene {
  std::vector<TraceBuilder::Step> ranges;
  std::vector<Ran> kernels;
  uint64_t wall_ns = 0;
};

// 10^9 additions in each kernel: 1 / 66.9 us at the peak of an H100.
constexpr double kFlop = 1e9, kPeak = 66.9e3;
constexpr uint32_t kUntimed = 9;

TraceBuilder begun(bool simulated = false) {
  TraceBuilder t;
  t.header(1, simulated);
  return t;
}

std::string trace_of(const Scene& scene, TraceBuilder t = begun()) {
  t.thread(1, "main");
  std::map<uint32_t, std::map<uint32_t, std::vector<Ran>>> by_device;
  for (const Ran& one : scene.kernels) by_device[one.device][one.stream].push_back(one);
  t.string(100, "step");
  t.path(1, 0, "step");
  t.kernel(1, "kernel", 11);
  for (const auto& [device, streams] : by_device) {
    t.device(device, "GH100", "NVIDIA H100 80GB HBM3", 132);
    t.group(device, "sass", sass_metrics(), true, device);
    t.samples(device, 1, {sass(kFlop, 0, 0)});
    for (const auto& [stream, ran] : streams) {
      const uint32_t id = 10 * device + stream;
      t.stream(id, device, stream);
      for (const Ran& one : ran)
        t.launches({{.signature = 1,
                     .duration_ns = static_cast<int64_t>(one.ns),
                     .path = 1,
                     .step = one.step}},
                   1, id, one.begin_ns);
    }
  }
  t.steps(scene.ranges, 1);
  t.overhead(0, scene.wall_ns);
  t.end();
  return t.bytes();
}

Report report_of(const Scene& scene, uint64_t skip = 0) {
  ReduceOptions options;
  options.facts = true;
  options.lost = true;
  options.utilization.skip_steps = skip;
  options.utilization.tokens_per_step = 1000;
  return reduce_bytes({trace_of(scene)}, std::move(options));
}

std::vector<uint64_t> walls(const Report& report) {
  std::vector<uint64_t> list;
  for (const auto& step : report.steps.steps) list.push_back(step.wall_ns);
  return list;
}

// Steps whose ranges take 40 us each, and whose kernels take 100 us, one after the other.
Scene ahead(uint32_t steps = 5) {
  Scene scene;
  for (uint32_t n = 0; n < steps; ++n) {
    scene.ranges.push_back({n + 1, 1'000 + n * 40'000, 40'000});
    scene.kernels.push_back({.step = n + 1, .begin_ns = 11'000 + n * 100'000, .ns = 100'000});
  }
  scene.wall_ns = 600'000;
  return scene;
}

using Interval = std::pair<uint64_t, uint64_t>;

uint64_t length_of_union(std::vector<Interval> list) {
  std::sort(list.begin(), list.end());
  uint64_t ns = 0, until = 0;
  for (const auto& [begin, end] : list) {
    if (end > std::max(begin, until)) ns += end - std::max(begin, until);
    until = std::max(until, end);
  }
  return ns;
}

// Of every step: the union of its kernels by device, and over all of them.
struct Unions {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::vector<Interval>> of_step;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Interval>> of_device;  // in any step
};

void check_unions(const std::vector<std::string>& traces) {
  ReduceOptions options;
  Unions unions;
  options.facts = true;
  options.launches = [&](Launches& launches) {
    launches.for_each([&](const TimedLaunch& launch) {
      if (launch.step == 0) return true;
      const Interval ran{launch.start_ns, launch.start_ns + launch.duration_ns};
      unions.of_step[{launch.trace, launch.device, launch.step}].push_back(ran);
      unions.of_device[{launch.trace, launch.device}].push_back(ran);
      return true;
    });
  };
  const Report report = reduce_bytes(traces, std::move(options));
  std::map<std::pair<size_t, uint32_t>, uint64_t> wall;
  for (const auto& step : report.steps.steps) wall[{step.trace, step.number}] = step.wall_ns;
  for (const auto& [of, list] : unions.of_step) {
    const auto& [trace, device, number] = of;
    const auto found = wall.find({trace, number});
    if (found == wall.end()) continue;
    INFO("step " << number << " of trace " << trace << " on device " << device);
    CHECK(length_of_union(list) <= found->second);
  }
  // No more of the peak than its kernels reached while any of them ran.
  if (report.steps.hfu.known() && !has(report.steps.hfu.marks(), Mark::kAtLeast)) {
    StepWork work;
    uint64_t busy_ns = 0;
    for (const auto& step : report.steps.steps) work.add(step.work);
    for (const auto& [of, list] : unions.of_device) busy_ns += length_of_union(list);
    const double reached = static_cast<double>(work.least_fs) / 1e6 / static_cast<double>(busy_ns);
    CHECK(*report.steps.hfu.number() <= reached * (1 + 1e-9));
  }
}

}  // namespace

TEST_CASE("step times: a program that runs ahead has steps as long as the GPU takes for them") {
  const Report report = report_of(ahead());
  // The first one from the start of its range.
  CHECK(walls(report) == std::vector<uint64_t>{110'000, 100'000, 100'000, 100'000, 100'000});
  CHECK(report.steps.wall_ns->median == 100'000);
  CHECK_FALSE(report.steps.wall_ns->about);
  CHECK(report.steps.window_ns == 510'000);
  CHECK(*report.steps.hfu.number() == Approx(5 * kFlop / kPeak / 510'000));
  CHECK(*report.steps.hfu.number() <= *utilization_of(report.total).number());
  CHECK(*report.steps.tokens_per_s.number() == Approx(5 * 1000 / 510e-6));
  // Everywhere the same.
  const auto j = json_of(report);
  CHECK(j["figures"]["step_time"].get<double>() == Approx(100e-6));
  CHECK(row_of(j, "steps", "what", "wall time")["max_ns"] == 110'000);
  CHECK(j["step_list"][0]["wall_ns"] == 110'000);
  CHECK(j["step_list"][4]["wall_ns"] == 100'000);
  const std::string summary = merge_bytes({{"a.pb", trace_of(ahead())}}).bytes;
  ReduceOptions facts;
  facts.facts = true;
  const auto s = json_of(reduce_bytes({summary}, std::move(facts)));
  CHECK(row_of(s, "steps", "what", "wall time")["max_ns"] == 110'000);
  CHECK(row_of(s, "steps", "what", "wall time")["mean_ns"] == 102'000);
  CHECK(s["step_list"] == j["step_list"]);
  const auto compared = json_of(comparison_tables(compare(report, reduce_bytes({summary}), {})));
  for (const auto& row : compared["total"])
    if (row["figure"] == "step_time") CHECK(row["ratio"].get<double>() == Approx(1).epsilon(0.01));
}

TEST_CASE("step times: after skipped steps time begins when their kernels have ended") {
  const Report report = report_of(ahead(), 2);
  CHECK(report.steps.window_ns == 300'000);
  CHECK(*report.steps.hfu.number() == Approx(kFlop / kPeak / 100'000));
  CHECK(*report.steps.tokens_per_s.number() == Approx(1000 / 100e-6));
  // The ledger is of the same time and work.
  REQUIRE(report.lost.known());
  CHECK(report.lost.capacity_ns == 300'000);
  const LostNs& ns = report.lost.ns;
  CHECK(static_cast<double>(ns[place_of(LostLine::kOtherFlop)]) ==
        Approx(3 * kFlop / kPeak).margin(1));
}

TEST_CASE("step times: a program that waits for the GPU has the steps of its ranges") {
  Scene scene;
  for (uint32_t n = 0; n < 4; ++n) {
    scene.ranges.push_back({n + 1, 1'000 + n * 200'000, 150'000});
    scene.kernels.push_back({.step = n + 1, .begin_ns = 41'000 + n * 200'000, .ns = 100'000});
  }
  CHECK(walls(report_of(scene)) == std::vector<uint64_t>(4, 150'000));
}

TEST_CASE("step times: waiting once for several steps makes no step slow") {
  // Ranges of 10 us, and every fourth waits for all kernels.
  Scene scene = ahead(8);
  uint64_t at = 1'000;
  for (uint32_t n = 0; n < 8; ++n) {
    const uint64_t end = n % 4 == 3 ? 11'000 + (n + 1) * 100'000 : at + 10'000;
    scene.ranges[n] = {n + 1, at, end - at};
    at = end;
  }
  CHECK(walls(report_of(scene)) == std::vector<uint64_t>{110'000, 100'000, 100'000, 100'000,
                                                         100'000, 100'000, 100'000, 100'000});
  CHECK(report_of(scene).steps.outliers.empty());
}

TEST_CASE("step times: what is between steps is in none") {
  // The optimizer's kernels run on for 5 us; then the program does something else for a long time.
  Scene scene;
  for (uint32_t n = 0; n < 3; ++n) {
    const uint64_t at = 1'000 + n * 1'000'000;
    scene.ranges.push_back({n + 1, at, 100'000});
    scene.kernels.push_back({.step = n + 1, .begin_ns = at + 20'000, .ns = 60'000});
    scene.kernels.push_back({.step = n + 1, .begin_ns = at + 95'000, .ns = 10'000});
    scene.kernels.push_back({.step = 0, .begin_ns = at + 400'000, .ns = 200'000});
  }
  CHECK(walls(report_of(scene)) == std::vector<uint64_t>(3, 105'000));
}

TEST_CASE("step times: kernels of the next step that run beside those of the one before") {
  // On a second stream each step begins 30 us before the one before has ended.
  Scene scene = ahead(4);
  for (uint32_t n = 1; n < 4; ++n)
    scene.kernels.push_back(
        {.stream = 2, .step = n + 1, .begin_ns = 11'000 + n * 100'000 - 30'000, .ns = 20'000});
  CHECK(walls(report_of(scene)) == std::vector<uint64_t>{110'000, 120'000, 120'000, 120'000});
}

TEST_CASE("step times: of several devices a step takes as long as on the one that took longest") {
  // A pipeline: device 2 works on a step when device 1 is done with it, and takes longer.
  Scene scene;
  for (uint32_t n = 0; n < 4; ++n) {
    scene.ranges.push_back({n + 1, 1'000 + n * 10'000, 10'000});
    scene.kernels.push_back({1, 1, n + 1, 11'000 + n * 80'000, 80'000});
    scene.kernels.push_back({2, 1, n + 1, 91'000 + n * 100'000, 100'000});
  }
  const Report report = report_of(scene);
  CHECK(walls(report) == std::vector<uint64_t>{190'000, 100'000, 100'000, 100'000});
  CHECK(report.steps.window_ns == 490'000);
  CHECK(report.steps.device_window_ns == 2 * 490'000);
}

TEST_CASE("step times: without times of kernels they are those of ranges, about, and it is said") {
  Scene scene = ahead(4);
  const auto untimed = [&](uint32_t step) {
    TraceBuilder t = begun();
    t.kernel(kUntimed, "untimed", 19);
    t.device(1, "GH100", "NVIDIA H100 80GB HBM3", 132);
    t.thread(2, "other");
    t.stream(77, 1, 77);
    t.launches({{.signature = kUntimed, .step = step}}, 2, 77);
    return t;
  };
  // Of the step itself, and of the one after, which may have waited for it.
  const std::string bytes = trace_of(scene, untimed(2));
  const Report report = reduce_bytes({bytes});
  CHECK(report.steps.wall_ns->about);
  std::vector<bool> about;
  for (const auto& step : report.steps.steps) about.push_back(step.about);
  CHECK(about == std::vector<bool>{false, true, true, false});
  CHECK(has((++report.steps.steps.begin())->wall().marks(), Mark::kEstimate));
  CHECK(text_of(report).find("not all kernels have times") != std::string::npos);
  CHECK(row_of(json_of(report), "steps", "what", "wall time")["mean_ns_estimated"] == true);
  const Report summary = reduce_bytes({merge_bytes({{"a.pb", bytes}}).bytes});
  CHECK(summary.steps.wall_ns->about);
  CHECK_FALSE(reduce_bytes({merge_bytes({{"a.pb", trace_of(scene)}}).bytes}).steps.wall_ns->about);
  // None has a time: the ranges.
  scene.kernels.clear();
  TraceBuilder t = untimed(1);
  t.launches({{.signature = kUntimed, .step = 2},
              {.signature = kUntimed, .step = 3},
              {.signature = kUntimed, .step = 4}},
             2, 77);
  const Report ranges = reduce_bytes({trace_of(scene, t)});
  CHECK(walls(ranges) == std::vector<uint64_t>(4, 40'000));
  CHECK(ranges.steps.wall_ns->about);
  for (const ShownFigure& figure : screen_figures(ranges))
    if (std::string(figure.name) == "Per step") {
      CHECK(figure.value == "~ 40.00 us");
      CHECK(figure.note.find("by ranges") != std::string::npos);
    }
}

TEST_CASE("step times: modelled times of a GPU say nothing of a real clock's steps") {
  const std::string bytes = trace_of(ahead(), begun(true));
  const Report report = reduce_bytes({bytes});
  REQUIRE(report.clocks_differ());
  CHECK(walls(report) == std::vector<uint64_t>(5, 40'000));
  CHECK(report.steps.wall_ns->about);
  const Report summary = reduce_bytes({merge_bytes({{"a.pb", bytes}}).bytes});
  CHECK(summary.steps.wall_ns->max == 40'000);
  CHECK(summary.steps.wall_ns->about);
}

namespace {

// The definition, written out for one step after the other.
uint64_t wall_by_definition(const Scene& scene, uint32_t number) {
  const auto range_of = [&](uint32_t n) {
    const TraceBuilder::Step& r = scene.ranges[n - 1];
    return Interval{r.start_ns, r.start_ns + r.duration_ns};
  };
  const auto kernels_of = [&](uint32_t n, uint32_t device) {
    std::vector<Ran> all;
    for (const Ran& one : scene.kernels)
      if (one.step == n && one.device == device) all.push_back(one);
    return all;
  };
  const auto last_end = [](const std::vector<Ran>& all) {
    uint64_t last = 0;
    for (const Ran& one : all) last = std::max(last, one.begin_ns + one.ns);
    return last;
  };
  const auto [start, end] = range_of(number);
  uint64_t longest = 0;
  bool any = false;
  for (uint32_t device = 1; device <= 3; ++device) {
    const std::vector<Ran> own = kernels_of(number, device);
    if (own.empty()) continue;
    any = true;
    uint64_t begin = start, first = UINT64_MAX, sum = 0;
    for (uint32_t n = 1; n < number; ++n) {
      const uint64_t until = last_end(kernels_of(n, device));
      if (until > range_of(n).second) begin = std::max(begin, until);
    }
    for (const Ran& one : own) first = std::min(first, one.begin_ns), sum += one.ns;
    const uint64_t last = std::max(end, last_end(own));
    const uint64_t follows = last > begin ? last - begin : 0;
    longest = std::max({longest, follows, std::min(sum, last_end(own) - first)});
  }
  return any ? longest : end - start;
}

// A program that launches, waits now and then, and does other things in between.
Scene random_scene(std::mt19937_64& random, bool one_stream) {
  const auto below = [&](uint64_t most) { return random() % (most + 1); };
  Scene scene;
  uint64_t host = 1'000;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> busy;
  const uint32_t devices = one_stream ? 1 : static_cast<uint32_t>(1 + below(2));
  const uint64_t kernel_ns = 100 + below(5'000), call_ns = 10 + below(5'000);
  const uint64_t waits = below(3);
  const auto wait = [&] {
    for (const auto& [of, until] : busy) host = std::max(host, until);
  };
  const auto launch = [&](uint32_t step) {
    const auto device = static_cast<uint32_t>(1 + below(devices - 1));
    const auto stream = one_stream ? 1 : static_cast<uint32_t>(1 + below(1));
    host += 1 + below(call_ns);
    uint64_t& until = busy[{device, stream}];
    const uint64_t begin = std::max(host, until + below(1) * below(500)), ns = 1 + below(kernel_ns);
    until = begin + ns;
    scene.kernels.push_back({device, stream, step, begin, ns});
  };
  const auto steps = static_cast<uint32_t>(2 + below(12));
  for (uint32_t n = 1; n <= steps; ++n) {
    const uint64_t start = host;
    for (uint64_t i = below(6); i > 0; --i) launch(n);
    if (waits > 0 && n % waits == 0) wait();
    for (uint64_t i = below(2); i > 0; --i) launch(n);
    host += 1 + below(100);
    scene.ranges.push_back({n, start, host - start});
    if (below(3) == 0) host += below(20'000);
    if (below(5) == 0) launch(0);
    if (below(9) == 0) wait();
  }
  wait();
  scene.wall_ns = host;
  return scene;
}

}  // namespace

TEST_CASE("step times: on random time lines they are those of the definition") {
  std::mt19937_64 random(7);
  size_t apart = 0;
  for (size_t run = 0; run < 400; ++run) {
    INFO("run " << run);
    const bool one_stream = run % 2 == 0;
    const Scene scene = random_scene(random, one_stream);
    if (scene.kernels.empty()) continue;
    const std::string bytes = trace_of(scene);
    const Report report = reduce_bytes({bytes});
    uint64_t sum = 0;
    for (const auto& step : report.steps.steps) {
      INFO("step " << step.number);
      CHECK(step.wall_ns == wall_by_definition(scene, step.number));
      CHECK(step.wall_ns >= 1);
      apart += step.wall_ns != scene.ranges[step.number - 1].duration_ns;
      sum += step.wall_ns;
    }
    check_unions({bytes});
    // Where nothing runs beside anything steps follow each other; one without kernels waits for
    // none.
    std::set<uint32_t> launched;
    for (const Ran& one : scene.kernels) launched.insert(one.step);
    launched.erase(0);
    if (one_stream && launched.size() == scene.ranges.size())
      CHECK(static_cast<double>(sum) <= report.steps.window_ns);
    const Report summary = reduce_bytes({merge_bytes({{"a.pb", bytes}}).bytes});
    REQUIRE(report.steps.wall_ns);
    CHECK(summary.steps.wall_ns->min == report.steps.wall_ns->min);
    CHECK(summary.steps.wall_ns->max == report.steps.wall_ns->max);
    CHECK(summary.steps.wall_ns->mean == Approx(report.steps.wall_ns->mean));
    CHECK(summary.steps.wall_ns->median == report.steps.wall_ns->median);
    CHECK(summary.steps.window_ns == report.steps.window_ns);
  }
  CHECK(apart > 500);
}
