#include <collector/schedule/scheduler.h>

#include <string>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr DeviceId kGpu{1};
constexpr uint32_t kScreening = 0, kPipes = 1, kSass = 2;
using Kernels = std::vector<const Signature*>;

// Screening reads instructions and a time; pipes stand in for sass.
std::vector<MetricGroupPlan> groups() {
  std::vector<MetricGroupPlan> plan = {
      {"screening", {"sm__inst_executed_pipe_x.sum", "gpu__time_duration.sum"}},
      {"pipes", {"sm__inst_executed_pipe_fma.sum"}},
      {"sass", {"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"}, true, true}};
  plan[kPipes].instead_of = "sass";
  return plan;
}

SchedulerConfig unlimited() {
  SchedulerConfig config;
  config.budget = MeasuringBudget::kUnlimited;
  return config;
}

struct Scene {
  explicit Scene(GraphMode graphs, const SchedulerConfig& config = unlimited())
      : mode(graphs), scheduler(config, table) {
    scheduler.add_plan(kGpu, "GH100", groups());
    outside = &signature("outside");
    inside = &signature("inside");
    graph = {outside, inside, inside};
  }

  const Signature& signature(const std::string& name) {
    FunctionInfo info;
    info.name = name;
    return *table.intern_signature(*table.intern_function(info), {}, 0, scheduler.initial_wanted());
  }
  // Three samples of a kernel that was launched outside of graphs.
  void measure(const Signature& s, uint32_t group, std::vector<double> values) {
    for (int i = 0; i < 3; ++i) {
      MeasurementWindow window;
      window.device = kGpu;
      window.group = group;
      window.rows.push_back({&s, {}, 0, true, 0});
      scheduler.window_succeeded(window, values);
    }
  }
  void measure_outside() {
    measure(*outside, kScreening, {7, 1'000});
    measure(*outside, kSass, {64});
  }
  std::optional<uint32_t> wants(bool may_instrument = true) {
    return scheduler.decide_graph(kGpu, graph, mode, may_instrument, 0);
  }
  // One launch of the graph, in a window that reads this. False: it was not taken.
  bool launch(uint32_t group, const std::vector<double>& values) {
    wants();
    MeasurementWindow window;
    window.device = kGpu;
    window.group = group;
    window.checked = mode == GraphMode::kChecked;
    scheduler.graph_launched(window, graph, {}, 3'000);
    chosen.clear();
    for (const WindowRow& row : window.rows) chosen.push_back(row.chosen);
    const bool taken = scheduler.graph_agrees(window, values);
    if (taken)
      scheduler.window_succeeded(window, values);
    else
      scheduler.window_unread(window);
    return taken;
  }

  const GraphMode mode;
  SignatureTable table;
  MeasurementScheduler scheduler;
  const Signature *outside = nullptr, *inside = nullptr;
  Kernels graph;
  std::vector<bool> chosen;
};

}  // namespace

TEST_CASE("graphs: nothing is read where nothing was measured outside, unless the user wants it") {
  CHECK(Scene(GraphMode::kChecked).wants() == std::nullopt);
  Scene scene(GraphMode::kOn);
  CHECK(scene.wants() == kScreening);
  CHECK_FALSE(scene.scheduler.graphs_unchecked());
  CHECK(scene.launch(kScreening, {7, 900, 0, 800, 0, 700}));
  CHECK(scene.scheduler.graphs_unchecked());
}

TEST_CASE("graphs: what they lack is taken once a kernel has counted in them as outside") {
  Scene scene(GraphMode::kChecked);
  scene.measure_outside();
  CHECK(scene.wants() == kScreening);
  CHECK(scene.launch(kScreening, {7, 500, 0, 800, 0, 700}));  // its time may be another one
  CHECK(scene.chosen == std::vector<bool>{false, true, true});
  CHECK(scene.wants() == kScreening);  // two samples of three
  CHECK(scene.launch(kScreening, {7, 500, 0, 800, 0, 700}));
  CHECK(scene.chosen == std::vector<bool>{false, true, false});
  CHECK(scene.wants() == kSass);
  for (int i = 0; i < 2; ++i) CHECK(scene.launch(kSass, {64, 96, 96}));
  CHECK(scene.wants() == std::nullopt);
  CHECK_FALSE(scene.scheduler.varying(kGpu, scene.inside->id));

  // Then of a graph with nothing to compare, too.
  scene.graph = {&scene.signature("another")};
  CHECK(scene.wants() == kScreening);
  CHECK(scene.launch(kScreening, {0, 100}));
}

TEST_CASE("graphs: hardware counters that are right show nothing of instrumented kernels") {
  Scene scene(GraphMode::kChecked);
  scene.measure(*scene.outside, kScreening, {7, 1'000});
  CHECK(scene.launch(kScreening, {7, 500, 0, 800, 0, 700}));
  CHECK(scene.launch(kScreening, {7, 500, 0, 800, 0, 700}));
  CHECK(!scene.wants().has_value());  // of sass, which no kernel outside has
}

TEST_CASE("graphs: after three windows that disagree with what is known they are left alone") {
  const std::vector<double> wrong[] = {{8, 500, 0, 800, 0, 700}, {0, 0, 0, 0, 0, 0}};
  for (const std::vector<double>& values : wrong)
    for (const GraphMode mode : {GraphMode::kChecked, GraphMode::kOn}) {
      Scene scene(mode);
      scene.measure_outside();
      for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(scene.scheduler.graphs_given_up());
        CHECK(scene.wants() == kScreening);
        CHECK_FALSE(scene.launch(kScreening, values));
      }
      CHECK(scene.scheduler.graphs_given_up());
      CHECK(scene.wants() == std::nullopt);
    }
}

TEST_CASE("graphs: 0 is no proof of instrumented counts, and another count is one against them") {
  Scene scene(GraphMode::kChecked);
  scene.measure(*scene.outside, kScreening, {7, 1'000});
  scene.measure(*scene.outside, kSass, {0});
  CHECK_FALSE(scene.launch(kSass, {0, 96, 96}));
  CHECK_FALSE(scene.launch(kSass, {5, 96, 96}));
}

TEST_CASE("graphs: what cannot be instrumented has its bound read") {
  Scene scene(GraphMode::kChecked);
  scene.measure_outside();
  for (int i = 0; i < 2; ++i) CHECK(scene.launch(kScreening, {7, 500, 0, 800, 0, 700}));
  CHECK(!scene.wants(false).has_value());
  CHECK(scene.wants(false) == kPipes);
}

TEST_CASE("graphs: the budget is for all kernels of a launch, whose times are known") {
  SchedulerConfig config;
  config.budget = 0.01;
  config.startup_ns = 10'000'000'000;  // so 100 ms may be spent
  Scene scene(GraphMode::kOn, config);
  scene.scheduler.begin(0, 1);
  scene.graph = {scene.inside};
  for (int i = 0; i < 3; ++i) CHECK(scene.launch(kScreening, {0, 900}));
  // A call in a window took 3,000 ns, so that is what it takes; 100 times that fits, 100,000 of
  // them do not.
  CHECK(scene.wants() == kSass);
  scene.graph.assign(100'000, scene.inside);
  CHECK(scene.wants() == std::nullopt);
}
