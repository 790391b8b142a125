#include <collector/metric_plan.h>

#include <algorithm>
#include <set>
#include <string>

#include "catch.h"

using namespace flopinj;

TEST_CASE("metric plan: the first group is what a FLOP count needs, for every chip") {
  for (const std::string_view chip : {"GH100", "GV100", "GB202", "XX999", ""}) {
    INFO(chip);
    const auto plan = metric_plan_for(chip);
    REQUIRE_FALSE(plan.empty());
    CHECK(plan[0].name == "sass");
    CHECK(plan[0].required);
    CHECK(plan[0].instrumented);
    for (const char* type : {"f", "d", "h"})
      for (const char* operation : {"add", "mul", "fma"}) {
        const std::string metric =
            std::string("smsp__sass_thread_inst_executed_op_") + type + operation + "_pred_on.sum";
        CHECK(std::count(plan[0].metrics.begin(), plan[0].metrics.end(), metric) == 1);
      }
  }
}

TEST_CASE("metric plan: a chip that is not in the table gets that group alone") {
  CHECK(metric_plan_for("XX999").size() == 1);
  CHECK(metric_plan_for("XX999")[0].metrics.size() == 9);
  CHECK(metric_plan_for("gh100").size() == 1);  // CUPTI writes capitals
}

TEST_CASE("metric plan: instrumented and hardware metrics are never in one group") {
  CHECK(planned_chips().size() >= 25);
  std::set<std::string_view> chips;
  for (const std::string_view chip : planned_chips()) {
    INFO(chip);
    CHECK(chips.insert(chip).second);
    const auto plan = metric_plan_for(chip);
    CHECK(plan.size() == 2);
    std::set<std::string> names;
    for (const MetricGroupPlan& group : plan) {
      CHECK(names.insert(group.name).second);
      std::set<std::string> metrics(group.metrics.begin(), group.metrics.end());
      CHECK(metrics.size() == group.metrics.size());
      for (const std::string& metric : group.metrics) {
        CHECK(group.instrumented == (metric.find("__sass_") != std::string::npos));
        CHECK(metric.find('.') != std::string::npos);
      }
    }
    CHECK(plan[1].name == "screening");
    CHECK_FALSE(plan[1].required);
  }
}
