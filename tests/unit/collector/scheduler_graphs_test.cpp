#include <collector/measured_graph.h>
#include <collector/scheduler.h>

#include <list>
#include <string>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr DeviceId kGpu{1};
constexpr uint32_t kScreening = 0, kTensor = 1, kSass = 2;
constexpr uint64_t kSecond = 1'000'000'000, kMillisecond = 1'000'000;

std::vector<MetricGroupPlan> three_groups() {
  return {{"screening", {"instructions"}, false, false},
          {"tensor", {"operations"}, false, false, {{"instructions", ""}}},
          {"sass", {"adds"}, true, true}};
}

SchedulerConfig with_budget(double budget) {
  SchedulerConfig config;
  config.budget = budget;
  config.seed = 7;
  return config;
}

struct Graphs {
  explicit Graphs(double budget = MeasuringBudget::kUnlimited)
      : config(with_budget(budget)), scheduler(config, table) {
    scheduler.begin(0, 1);
    scheduler.add_plan(kGpu, "GH100", three_groups());
  }

  SignatureTable table;
  SchedulerConfig config;
  MeasurementScheduler scheduler;
  std::list<MeasuredGraph> graphs;

  const Signature& signature(const std::string& name) {
    FunctionInfo info;
    info.name = name;
    LaunchShape shape;
    shape.grid[0] = 1;
    return *table.intern_signature(*table.intern_function(info), shape, 0,
                                   scheduler.initial_wanted());
  }
  MeasuredGraph& graph(const std::vector<const Signature*>& kernels) {
    MeasuredGraph& made = graphs.emplace_back();
    for (const Signature* s : kernels) made.kernels.push_back({s->id, {}});
    made.ordered = true;
    return made;
  }
  // As the launch path asks: only where the flag is set.
  std::optional<uint32_t> launch(MeasuredGraph& graph, uint64_t now = 0) {
    if (!graph.wants) return std::nullopt;
    return scheduler.decide_graph(kGpu, graph, now);
  }
  void read(MeasuredGraph& graph, uint32_t group, double value, uint64_t call_ns = 0) {
    scheduler.graph_window_closed({kGpu, group, &graph, {0, call_ns, call_ns, 1}},
                                  {GraphVerdict::kPerKernel, 1, graph.kernels,
                                   std::vector<double>(graph.kernels.size(), value)});
  }
  void useless(MeasuredGraph& graph, uint32_t group) {
    scheduler.graph_window_closed({kGpu, group, &graph, {}}, {GraphVerdict::kUnordered, 1, {}, {}});
  }
  // The writer saw so many launches in graphs, each of which took so long.
  void launched(const Signature& s, uint64_t launches, uint64_t each_ns, uint64_t now) {
    LaunchProgress seen;
    seen.device = kGpu;
    seen.signature = s.id;
    seen.recorded = seen.timed = launches;
    seen.gpu_ns = launches * each_ns;
    scheduler.progress(std::vector{seen}, 0, 0, now);
  }
  // Samples of a group from an eager window.
  void eager(const Signature& s, uint32_t group, double value = 0) {
    MeasurementWindow w;
    w.device = kGpu;
    w.group = group;
    w.rows.push_back({&s, {}, 0, true, 0});
    scheduler.window_succeeded(w, std::vector{value});
  }
};

}  // namespace

TEST_CASE("graphs: a window for each group that a kernel lacks, and no more") {
  Graphs g;
  const Signature &a = g.signature("a"), &b = g.signature("b");
  MeasuredGraph& graph = g.graph({&a, &b});
  CHECK(g.launch(graph) == kScreening);
  g.read(graph, kScreening, 0);  // no tensor work
  CHECK(g.launch(graph) == kSass);
  g.read(graph, kSass, 5);
  CHECK(g.launch(graph) == std::nullopt);
  CHECK_FALSE(graph.wants);
  CHECK(g.scheduler.windows_opened() == 2);
  g.launched(a, 1, 100, kSecond);
  g.launched(b, 1, 100, kSecond);
  CHECK(g.scheduler.coverage().covered_launches == 2);
}

TEST_CASE("graphs: screening says which kernels need another group") {
  Graphs g;
  MeasuredGraph& graph = g.graph({&g.signature("a")});
  CHECK(g.launch(graph) == kScreening);
  g.read(graph, kScreening, 64);
  CHECK(g.launch(graph) == kTensor);
  g.read(graph, kTensor, 4096);
  CHECK(g.launch(graph) == kSass);
}

TEST_CASE("graphs: what eager launches have given is not read again") {
  Graphs g;
  const Signature &a = g.signature("a"), &b = g.signature("b");
  MeasuredGraph& known = g.graph({&a});
  g.eager(a, kScreening);
  CHECK(g.launch(known) == kSass);
  g.eager(a, kSass);
  CHECK(g.launch(known) == std::nullopt);
  CHECK_FALSE(known.wants);
  CHECK(g.launch(g.graph({&a, &b})) == kScreening);  // one of them lacks it
}

TEST_CASE("graphs: kernels that wait for others keep their graph out of windows") {
  Graphs g;
  MeasuredGraph& graph =
      g.graph({&g.signature("a"), &g.signature("ncclDevKernel_AllReduce_Sum_f32_RING_LL")});
  CHECK(g.launch(graph) == std::nullopt);
  CHECK_FALSE(graph.wants);
  MeasuredGraph& unknown = g.graph({&g.signature("a")});
  unknown.kernels.push_back({});
  CHECK(g.launch(unknown) == std::nullopt);
  CHECK_FALSE(unknown.wants);
}

TEST_CASE("graphs: two useless windows end it for a graph, sixteen in a row for all") {
  Graphs g;
  const Signature& a = g.signature("a");
  for (int tried = 0; tried < 8; ++tried) {
    MeasuredGraph& graph = g.graph({&a});
    for (int i = 0; i < 2; ++i) {
      CHECK(g.launch(graph) == kScreening);
      g.useless(graph, kScreening);
    }
    CHECK_FALSE(graph.wants);
  }
  CHECK(g.scheduler.windows_discarded() == 16);
  CHECK(g.launch(g.graph({&a})) == std::nullopt);
  CHECK(g.scheduler.decide(kGpu, a, nullptr, 0).open == kScreening);  // eager launches go on
}

TEST_CASE("graphs: once CUPTI has refused, none is measured") {
  Graphs g;
  MeasuredGraph& graph = g.graph({&g.signature("a")});
  g.scheduler.never_measure_graphs();
  CHECK(g.launch(graph) == std::nullopt);
  CHECK_FALSE(graph.wants);
}

TEST_CASE("graphs: an instrumented window waits until it is known how long the kernels take") {
  Graphs g(0.01);  // 2 s at once
  const Signature &a = g.signature("a"), &b = g.signature("b");
  MeasuredGraph& graph = g.graph({&a, &b});
  CHECK(g.launch(graph) == kScreening);
  g.read(graph, kScreening, 0);
  CHECK(g.launch(graph) == std::nullopt);
  CHECK_FALSE(graph.wants);  // the launch path is left alone
  g.launched(a, 1, 15 * kMillisecond, kSecond);
  CHECK_FALSE(graph.wants);
  // 100 times 15 + 15 ms: 3 s are earned at 1 % in 300 s, 200 of which may be spent at once.
  g.launched(b, 1, 15 * kMillisecond, 2 * kSecond);
  CHECK_FALSE(graph.wants);
  g.launched(b, 1, 15 * kMillisecond, 99 * kSecond);
  CHECK_FALSE(graph.wants);
  g.launched(b, 1, 15 * kMillisecond, 101 * kSecond);
  CHECK(graph.wants);
  CHECK(g.launch(graph, 101 * kSecond) == kSass);
}

TEST_CASE("graphs: a graph that was measured is measured again, ever more rarely") {
  Graphs g;
  const Signature& a = g.signature("a");
  MeasuredGraph& graph = g.graph({&a});
  std::vector<uint64_t> rounds;
  uint64_t launches = 0;
  for (; launches < 2'000; ++launches) {
    if (const auto group = g.launch(graph)) {
      g.read(graph, *group, *group == kSass ? 5 : 0);
      if (group == kSass) rounds.push_back(launches);
    }
    g.launched(a, 1, 100, launches);
  }
  // At the latest after 16, 32, 64, ... launches more; at the earliest after one.
  REQUIRE(rounds.size() >= 6);
  uint64_t stretch = 16;
  for (size_t i = 1; i < rounds.size(); ++i, stretch *= 2)
    CHECK(rounds[i] - rounds[i - 1] <= stretch + 4);
  CHECK(rounds.size() < 40);
}
