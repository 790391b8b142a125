// The metric table and the pass rule against the real host API, where one is installed.
//
// This program links the parts of the simulated library, not the library: the names of the two
// would collide.
#include "real_host.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <string_view>

#include "catch.h"
#include "chips.h"
#include "counters/config_image.h"
#include "counters/metrics.h"

namespace {

using namespace simgpu::cupti;

// Nothing, with a message, where there is no real CUPTI.
std::optional<RealHost> real_host() {
  auto host = RealHost::find();
  if (!host) WARN("no real libcupti.so.13 found (set SIMGPU_TEST_REAL_CUPTI): not compared");
  return host;
}

size_t model_passes(uint32_t chip, const std::vector<std::string>& names) {
  std::vector<Counter> counters;
  for (const auto& name : names)
    for (const Counter counter : counters_of(find_metric(chip, name).value()))
      counters.push_back(counter);
  return schedule_passes(chip, counters).passes.size();
}

// Of the simulated GPU alone: no CUPTI has names that begin with its name.
bool is_own(const MetricInfo& metric) {
  return std::string_view(metric.base).starts_with("simgpu__");
}

std::vector<std::string> table(uint32_t chip, bool own = false) {
  std::vector<std::string> names;
  for (const MetricInfo& metric : all_metrics())
    if (exists(metric, chip) && is_own(metric) == own)
      names.push_back(std::string(metric.base) + ".sum");
  return names;
}

}  // namespace

TEST_CASE("the chips are those of the real host API") {
  const auto real = real_host();
  if (!real) return;
  std::vector<std::string> ours;
  for (const char* chip : chip_names()) ours.emplace_back(chip);
  CHECK(ours == real->chips());
}

TEST_CASE("a metric of the table exists on a chip exactly when the real host API has it there") {
  const auto real = real_host();
  if (!real) return;
  for (uint32_t chip = 0; chip < chips().size(); ++chip) {
    const auto names = real->base_metrics(chips()[chip].name);
    for (const MetricInfo& metric : all_metrics()) {
      INFO(metric.base << " on " << chips()[chip].name);
      if (is_own(metric))
        CHECK_FALSE(names.contains(metric.base));
      else
        CHECK(exists(metric, chip) == (names.count(metric.base) == 1));
    }
  }
}

TEST_CASE(
    "on GH100 every metric alone and every pair takes the passes that the real host API says") {
  const auto real = real_host();
  if (!real) return;
  const uint32_t chip = find_chip("GH100").value();
  const auto names = table(chip);
  for (size_t i = 0; i < names.size(); ++i)
    for (size_t j = i; j < names.size(); ++j) {
      INFO(names[i] << " and " << names[j]);
      CHECK(model_passes(chip, {names[i], names[j]}) ==
            real->passes("GH100", {names[i], names[j]}));
    }
}

TEST_CASE("the simulated GPU's own metrics take no pass beside instrumented ones") {
  for (uint32_t chip = 0; chip < chips().size(); ++chip) {
    const std::string instrumented = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum";
    for (const std::string& own : table(chip, true)) {
      INFO(own << " on " << chips()[chip].name);
      CHECK(model_passes(chip, {instrumented, own}) == model_passes(chip, {instrumented}));
    }
  }
}

TEST_CASE("on GH100 larger sets take the passes of the real host API, or one more or less") {
  const auto real = real_host();
  if (!real) return;
  const uint32_t chip = find_chip("GH100").value();
  const auto names = table(chip);
  std::mt19937 random(20);
  int equal = 0, all = 0;
  for (size_t size = 3; size <= 12; ++size)
    for (int i = 0; i < 20; ++i, ++all) {
      std::vector<std::string> set;
      std::ranges::sample(names, std::back_inserter(set), static_cast<int>(size), random);
      const auto ours = static_cast<long>(model_passes(chip, set));
      const auto theirs = static_cast<long>(real->passes("GH100", set));
      CHECK(std::labs(ours - theirs) <= 1);
      equal += ours == theirs ? 1 : 0;
    }
  CHECK(equal >= all * 8 / 10);
}
