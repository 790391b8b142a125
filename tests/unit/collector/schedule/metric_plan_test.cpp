#include <collector/schedule/computed_plan.h>
#include <collector/schedule/metric_plan.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "catch.h"

using namespace flopinj;

TEST_CASE("metric plan: the last group is what a FLOP count needs, for every chip") {
  for (const std::string_view chip : {"GH100", "GV100", "GB202"}) {
    INFO(chip);
    const auto plan = metric_plan_for(chip);
    REQUIRE_FALSE(plan.empty());
    CHECK(plan.back().name == "sass");
    CHECK(plan.back().required);
    CHECK(plan.back().instrumented);
    for (const char* type : {"f", "d", "h"})
      for (const char* operation : {"add", "mul", "fma"}) {
        const std::string metric =
            std::string("smsp__sass_thread_inst_executed_op_") + type + operation + "_pred_on.sum";
        CHECK(std::count(plan.back().metrics.begin(), plan.back().metrics.end(), metric) == 1);
      }
  }
}

TEST_CASE("metric plan: a chip that is not in the table has none") {
  CHECK(metric_plan_for("XX999").empty());
  CHECK(metric_plan_for("").empty());
  CHECK(metric_plan_for("gh100").empty());  // CUPTI writes capitals
}

TEST_CASE("metric plan: an older CUPTI's names of the same metrics") {
  const auto screening = metric_plan_for("GB202").front();
  const auto former = with_former_names(screening);
  REQUIRE(former);
  const auto has = [](const MetricGroupPlan& plan, const char* metric) {
    return std::count(plan.metrics.begin(), plan.metrics.end(), metric) == 1;
  };
  CHECK((has(screening, "dram__bytes_op_read.sum") && !has(screening, "dram__bytes_read.sum")));
  CHECK((has(*former, "dram__bytes_read.sum") && !has(*former, "dram__bytes_op_read.sum")));
  CHECK((has(*former, "dram__bytes_write.sum") && has(*former, "gpu__time_duration.sum")));
  CHECK(former->metrics.size() == screening.metrics.size());
  CHECK_FALSE(with_former_names(metric_plan_for("GH100").front()));
}

namespace {

// A chip whose pipe counters share a pass, as do any two metrics of tensor operations but those
// named here, each of which takes two.
struct ImaginedChip {
  std::vector<std::string> names;
  std::set<std::string> two_passes = {};

  std::vector<MetricGroupPlan> plan() const {
    return compute_metric_plan("XX999", names, [&](const std::vector<std::string>& metrics) {
      size_t tensor = 0, passes = 1;
      for (const std::string& metric : metrics) {
        const std::string base = metric.substr(0, metric.find('.'));
        if (std::count(names.begin(), names.end(), base) == 0) return size_t{0};
        tensor += base.starts_with("sm__ops_path_tensor_");
        if (two_passes.contains(base)) ++passes;
      }
      return tensor > 2 ? size_t{2} : passes;
    });
  }
};
const std::string kOps = "sm__ops_path_tensor_", kPipe = "sm__inst_executed_pipe_tensor_op_";

}  // namespace

TEST_CASE("computed plan: every kernel is read with all groups, none of them twice") {
  const auto plan = ImaginedChip{
      {kPipe + "hmma", kPipe + "hmma_type_hfma2", "gpu__time_duration", kOps + "src_fp2",
       kOps + "src_bf16", kOps + "src_bf16_dst_fp32", kOps + "op_hmma_src_bf16", kOps + "src_int4",
       kOps + "src_fp8", kOps + "src_fp8_sparsity_on", kOps + "src_fp8_sparsity_off"},
      {kOps +
       "src_fp8"}}.plan();
  REQUIRE(plan.size() == 4);
  CHECK(plan[0].name == "screening");
  CHECK(plan[0].metrics == std::vector<std::string>{kPipe + "hmma.sum", "gpu__time_duration.sum"});
  CHECK(plan[1].metrics == std::vector<std::string>{kOps + "src_fp2.sum", kOps + "src_bf16.sum"});
  CHECK(plan[2].metrics == std::vector<std::string>{kOps + "src_fp8_sparsity_on.sum",
                                                    kOps + "src_fp8_sparsity_off.sum"});
  for (size_t i = 1; i < 4; ++i) {
    CHECK(plan[i].required);
    CHECK(plan[i].needed_if.empty());
    CHECK(plan[i].unavailable.empty());
  }
  CHECK(plan[3].name == "sass");
}

TEST_CASE("computed plan: tensor work that nothing tells is unavailable, never left out") {
  const auto lacking = [](const std::vector<MetricGroupPlan>& plan) {
    REQUIRE(plan.size() >= 2);
    const MetricGroupPlan& group = plan[plan.size() - 2];
    CHECK(group.unavailable.find("XX999") != std::string::npos);
    CHECK(plan.back().name == "sass");
    return group;
  };
  // Screening shows which kernels do tensor work: the others can be counted.
  const auto screened = lacking(ImaginedChip{{kPipe + "hmma", kPipe + "imma"}}.plan());
  CHECK_FALSE(screened.required);
  CHECK(screened.needed_if.size() == 2);
  // It does not, or CUPTI names nothing at all: no kernel can.
  for (const auto& chip : {ImaginedChip{{}}, ImaginedChip{{"gpu__time_duration"}},
                           ImaginedChip{{kPipe + "hmma"}, {kPipe + "hmma"}},
                           ImaginedChip{{kOps + "src_bf16"}, {kOps + "src_bf16"}}}) {
    const auto blind = lacking(chip.plan());
    CHECK(blind.required);
    CHECK(blind.needed_if.empty());
  }
  // One half of sparsity is not the whole.
  const auto half = lacking(ImaginedChip{
      {kPipe + "hmma", kOps + "src_fp8", kOps + "src_fp8_sparsity_on", kOps + "src_bf16"},
      {kOps + "src_fp8"}}.plan());
  CHECK(half.metrics == std::vector<std::string>{kOps + "src_fp8.sum"});
  CHECK(half.needed_if.size() == 1);
}

TEST_CASE("metric plan: a simulated GPU's own metrics are read with the instructions") {
  auto plan = metric_plan_for("GH100");
  const auto before = plan;
  add_simulated_metrics(plan);
  REQUIRE(plan.size() == before.size());
  for (size_t i = 0; i + 1 < plan.size(); ++i) CHECK(plan[i].metrics == before[i].metrics);
  const MetricGroupPlan& sass = plan.back();
  CHECK(sass.metrics.size() == before.back().metrics.size() + sass.optional.size());
  CHECK(sass.optional.size() == 15);
  CHECK(sass.optional.front() == "simgpu__thread_inst_executed_hadd_one.sum");
}

TEST_CASE("metric plan: instrumented and hardware metrics are never in one group") {
  CHECK(planned_chips().size() >= 25);
  std::set<std::string_view> chips;
  for (const std::string_view chip : planned_chips()) {
    INFO(chip);
    CHECK(chips.insert(chip).second);
    const auto plan = metric_plan_for(chip);
    REQUIRE(plan.size() >= 2);
    std::set<std::string> names, all;
    for (const MetricGroupPlan& group : plan) {
      CHECK(names.insert(group.name).second);
      std::set<std::string> metrics(group.metrics.begin(), group.metrics.end());
      CHECK(metrics.size() == group.metrics.size());
      for (const std::string& metric : group.metrics) {
        CHECK(group.instrumented == (metric.find("__sass_") != std::string::npos));
        CHECK(metric.find('.') != std::string::npos);
        CHECK(all.insert(metric).second);
      }
    }
    CHECK(plan[0].name == "screening");
    CHECK_FALSE(plan[0].required);
    CHECK(plan[0].needed_if.empty());
    // What makes a group necessary is what screening reads.
    const auto screened = [&](const std::string& metric) {
      return std::count(plan[0].metrics.begin(), plan[0].metrics.end(), metric) == 1;
    };
    const MetricGroupPlan& pipes = plan[plan.size() - 2];
    CHECK(pipes.instead_of == plan.back().name);
    CHECK(pipes.needed_if.empty());
    CHECK_FALSE(pipes.required);
    for (size_t i = 1; i + 2 < plan.size(); ++i) {
      CHECK_FALSE(plan[i].required);
      CHECK(plan[i].instead_of.empty());
      CHECK_FALSE(plan[i].needed_if.empty());
      for (const NeededIf& need : plan[i].needed_if) {
        INFO(need.metric << " " << need.included);
        CHECK(screened(need.metric));
        CHECK((need.included.empty() || screened(need.included)));
      }
    }
  }
}

// A tensor metric's name is a set of restrictions; one includes another when its restrictions are a
// part of the other's. fp4, fp6 and fp8 are told apart by the whole source.
TEST_CASE("metric plan: no tensor metric includes another") {
  const auto contains = [](const std::string& parent, const std::string& child) {
    const auto part = [](const std::string& name, const std::string& key) {
      const std::string keys[] = {"_op_", "_src_", "_dst_", "_sparsity_", ".sum"};
      const size_t at = name.find(key);
      if (at == std::string::npos) return std::string();
      size_t end = name.size();
      for (const std::string& next : keys) {
        const size_t found = name.find(next, at + key.size());
        if (found != std::string::npos) end = std::min(end, found);
      }
      return name.substr(at + key.size(), end - at - key.size());
    };
    for (const char* key : {"_op_", "_src_", "_dst_", "_sparsity_"}) {
      const std::string p = part(parent, key), c = part(child, key);
      if (!p.empty() && !c.empty() && p != c) return false;
    }
    return true;
  };
  CHECK(contains("x_src_fp16.sum", "x_op_hmma_src_fp16_dst_fp32.sum"));
  CHECK_FALSE(contains("x_src_fp16_dst_fp16.sum", "x_op_hmma_src_fp16_dst_fp32.sum"));
  for (const std::string_view chip : planned_chips()) {
    std::vector<std::string> operations;
    for (const MetricGroupPlan& group : metric_plan_for(chip))
      for (const std::string& metric : group.metrics)
        if (metric.starts_with("sm__ops_path_tensor_")) operations.push_back(metric);
    for (size_t i = 0; i < operations.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        INFO(chip << " " << operations[i] << " " << operations[j]);
        CHECK_FALSE(contains(operations[i], operations[j]));
      }
  }
}

namespace {

// Warp-level instructions of a kernel on Hopper.
struct Instructions {
  double hmma = 0, hfma2 = 0, hgmma = 0, qgmma = 0, imma = 0, bmma = 0, igmma = 0, bgmma = 0,
         dmma = 0;

  // What the pipes' counters show of them, by CUPTI's descriptions (metric_plan_real_cupti_test).
  double counted(const std::string& metric) const {
    if (metric.ends_with("op_hmma.sum")) return hmma + hfma2 + hgmma + qgmma;
    if (metric.ends_with("op_gmma.sum")) return hgmma + qgmma + igmma + bgmma;
    if (metric.ends_with("op_imma.sum")) return imma + igmma + bmma + bgmma;
    if (metric.ends_with("op_dmma.sum")) return dmma;
    FAIL("not a counter of Hopper's screening: " << metric);
    return 0;
  }
  // Instructions that a metric of operations counts.
  double behind(const std::string& metric) const {
    if (metric.find("_op_hmma_") != std::string::npos) return hmma;
    if (metric.find("_op_hgmma_") != std::string::npos) return hgmma;
    if (metric.find("_op_imma_") != std::string::npos) return imma;
    if (metric.find("_op_igmma_") != std::string::npos) return igmma;
    if (metric.find("_src_fp8") != std::string::npos) return qgmma;
    if (metric.find("_src_fp64") != std::string::npos) return dmma;
    FAIL("of which instructions is " << metric << "?");
    return 0;
  }
  bool need(const MetricGroupPlan& group) const {
    return std::ranges::any_of(group.needed_if, [&](const NeededIf& condition) {
      const double included = condition.included.empty() ? 0 : counted(condition.included);
      return counted(condition.metric) > included;
    });
  }
};

}  // namespace

TEST_CASE("metric plan: Hopper's conditions miss no operation of any mix of instructions") {
  const auto plan = metric_plan_for("GH100");
  const auto check = [&](const Instructions& kernel) {
    for (const MetricGroupPlan& group : plan) {
      if (group.needed_if.empty()) continue;
      for (const std::string& metric : group.metrics)
        if (kernel.behind(metric) > 0) {
          INFO(group.name << " " << metric);
          CHECK(kernel.need(group));
        }
    }
  };
  // Every mix of none, one and many of each.
  constexpr double kAmounts[] = {0, 1, 1'000};
  for (size_t mix = 0; mix < 3 * 3 * 3 * 3 * 3 * 3 * 3 * 3 * 3; ++mix) {
    size_t rest = mix;
    const auto next = [&] {
      const double amount = kAmounts[rest % 3];
      rest /= 3;
      return amount;
    };
    Instructions kernel;
    for (double* const count :
         {&kernel.hmma, &kernel.hfma2, &kernel.hgmma, &kernel.qgmma, &kernel.imma, &kernel.bmma,
          &kernel.igmma, &kernel.bgmma, &kernel.dmma})
      *count = next();
    check(kernel);
  }
}

TEST_CASE("metric plan: a product of Hopper's warp groups is complete after three windows") {
  const auto windows = [](const Instructions& kernel) {
    size_t count = 0;
    for (const MetricGroupPlan& group : metric_plan_for("GH100"))
      count += group.instead_of.empty() && (group.needed_if.empty() || kernel.need(group));
    return count;
  };
  CHECK(windows({.hgmma = 4'096}) == 3);
  CHECK(windows({.qgmma = 4'096}) == 3);
  CHECK(windows({}) == 2);
  CHECK(windows({.dmma = 64}) == 3);
  CHECK(windows({.hmma = 64}) == 6);
}
