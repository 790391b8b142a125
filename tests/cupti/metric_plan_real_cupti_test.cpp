// Asks a real CUPTI about the metric plan, through the code of the library. Its host API needs no
// GPU; from 13.2 on it needs a driver, which FLOPINJ_TEST_DRIVER names.
//
// The library is looked for in FLOPINJ_TEST_CUPTI, then by its usual names, then beside the headers
// the build found. Without one the test says so and passes: ctest shows it as skipped.
#include <collector/schedule/computed_plan.h>
#include <collector/schedule/metric_plan.h>
#include <dlfcn.h>
#include <injector/counters/profiler/metric_groups.h>
#include <injector/vendor/cupti_structs.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"

using namespace flopinj;

namespace {

// FLOPINJ_TEST_CUPTI may name several, with colons between: the first that is there.
std::string open_cupti() {
  std::vector<std::string> names;
  if (const char* const given = std::getenv("FLOPINJ_TEST_CUPTI"); given != nullptr) {
    std::istringstream list(given);
    for (std::string one; std::getline(list, one, ':');) names.push_back(one);
  } else {
    for (const std::string directory :
         {"", FLOPINJ_CUPTI_HEADERS "/../lib/", FLOPINJ_CUPTI_HEADERS "/../lib64/",
          FLOPINJ_CUPTI_HEADERS "/../../../lib64/", "/usr/local/cuda/lib64/",
          "/usr/local/cuda/lib/", "/usr/local/cuda/extras/CUPTI/lib64/"})
      for (const char* const file : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})
        names.push_back(directory + file);
  }
  for (const std::string& name : names) {
    // CUPTI opens libnvperf_host.so by that name, and must not get the one of another version: what
    // is loaded already comes first.
    const size_t folder = name.rfind('/');
    if (folder != std::string::npos)
      dlopen((name.substr(0, folder) + "/libnvperf_host.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return name;
  }
  return {};
}

// CUPTI as the library uses it, with the structure sizes that the library gives it.
struct RealCupti {
  CuptiApi api;
  std::set<std::string> chips;

  size_t passes(const std::string& chip, const std::vector<std::string>& metrics) const {
    return passes_of(api, {chip, {}}, metrics);
  }
};

// CUPTI from 13.2 on needs a libcuda.so.1; one that finds no device is enough.
bool driver_is_there() {
  const char* const given = std::getenv("FLOPINJ_TEST_DRIVER");
  return given == nullptr || dlopen(given, RTLD_NOW | RTLD_LOCAL) != nullptr;
}

// Null where there is none; then it has said so, in words that ctest looks for.
std::unique_ptr<RealCupti> real_cupti() {
  if (!driver_is_there()) {
    std::puts("SKIPPED: no libcupti without a driver; `tools/dev test-real-driver` brings one");
    return nullptr;
  }
  const std::string path = open_cupti();
  auto real = std::make_unique<RealCupti>();
  std::string error;
  if (path.empty() || !load_cupti(path, CudaApi{}, real->api, error)) {
    std::printf("%s\n", error.c_str());
    std::puts("SKIPPED: no libcupti with its host API; `tools/dev cupti-matrix` brings them");
    return nullptr;
  }
  INFO(path << " has no " << real->api.missing);
  REQUIRE(real->api.range_profiler);
  void* const library = dlopen(real->api.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto supported = reinterpret_cast<decltype(&cuptiProfilerHostGetSupportedChips)>(
      dlsym(library, "cuptiProfilerHostGetSupportedChips"));
  REQUIRE(supported != nullptr);
  auto p = sized<CUpti_Profiler_Host_GetSupportedChips_Params>();
  REQUIRE(supported(&p) == CUPTI_SUCCESS);
  real->chips = {p.ppChipNames, p.ppChipNames + p.numChips};
  return real;
}

// Of two metrics of tensor operations: are the restrictions of one a part of the other's? Names are
// sequences of restrictions, in the order op, src, dst, sparsity.
bool one_includes_the_other(const std::string& a, const std::string& b) {
  const std::regex form(
      "sm__ops_path_tensor(_op_[a-z0-9]+)?_src_([a-z0-9_]+?)(_dst_[a-z0-9]+)?(_sparsity_[a-z]+)?\\."
      "sum");
  std::smatch x, y;
  if (!std::regex_match(a, x, form) || !std::regex_match(b, y, form)) return false;
  for (size_t i = 1; i < 5; ++i)
    if (x[i].length() != 0 && y[i].length() != 0 && x[i] != y[i]) return false;
  return true;
}

}  // namespace

TEST_CASE("every group of every chip's plan is one pass of a real CUPTI") {
  const auto cupti = real_cupti();
  if (!cupti) return;
  const std::set<std::string>& supported = cupti->chips;
  REQUIRE_FALSE(supported.empty());
  size_t checked = 0;
  size_t chips = 0;
  for (const std::string_view name : planned_chips()) {
    const std::string chip(name);
    if (!supported.contains(chip)) {
      std::printf("%s is not known to this CUPTI\n", chip.c_str());
      continue;
    }
    ++chips;
    for (const MetricGroupPlan& plan : metric_plan_for(chip)) {
      Problem problem;
      const auto group = prepare_group(cupti->api, {chip, {}}, plan, Passes::kOne, problem);
      INFO(chip << " " << plan.name << " " << problem.line);
      REQUIRE(group != nullptr);
      CHECK(group->plan.metrics.size() == plan.metrics.size());  // optional ones, too
      CHECK(group->config_image.size() > 100);
      ++checked;
    }
  }
  CHECK(chips >= 19);  // CUPTI 12.6 knows them from GV100 to GH100, 13.0 those of Blackwell too
  CHECK(checked >= 6 * chips);
}

// As if the chip were in no table. What is worked out is as complete as what was put together by
// hand.
TEST_CASE("a plan computed for a known chip tells all that its own plan does") {
  const auto cupti = real_cupti();
  if (!cupti) return;
  const std::set<std::string>& supported = cupti->chips;
  for (const char* const name :
       {"GV100", "TU116", "GA100", "AD102", "GH100", "GB100", "GB110", "GB202"}) {
    const std::string chip = name;
    if (!supported.contains(chip)) continue;
    INFO(chip);
    const auto passes = [&](const std::vector<std::string>& metrics) {
      return cupti->passes(chip, metrics);
    };
    const auto computed =
        compute_metric_plan(chip, metrics_of_chip(cupti->api, {chip, {}}), passes);
    const auto by_hand = metric_plan_for(chip);
    CHECK(computed.front().name == "screening");
    CHECK(computed.back().metrics == by_hand.back().metrics);
    std::vector<std::string> read;
    bool lacking = false;
    for (const MetricGroupPlan& group : computed) {
      INFO(group.name << " " << group.unavailable);
      lacking = lacking || !group.unavailable.empty();
      if (!group.unavailable.empty()) continue;
      CHECK(passes(group.metrics) == 1);
      for (const std::string& metric : group.metrics)
        if (metric.starts_with("sm__ops_path_tensor_")) read.push_back(metric);
    }
    CHECK(lacking == (by_hand.size() == 3));  // TU116
    for (size_t i = 0; i < read.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        INFO(read[i] << " " << read[j]);
        CHECK_FALSE(one_includes_the_other(read[i], read[j]));
      }
    for (const MetricGroupPlan& group : by_hand)
      for (const std::string& metric : group.metrics) {
        if (!metric.starts_with("sm__ops_path_tensor_")) continue;
        INFO(metric);
        CHECK(std::any_of(read.begin(), read.end(), [&](const std::string& r) {
          return r == metric || one_includes_the_other(r, metric);
        }));
      }
  }
}

TEST_CASE("sources that stand as parts do so because they take two passes") {
  const auto cupti = real_cupti();
  if (!cupti) return;
  const std::set<std::string>& supported = cupti->chips;
  const std::pair<std::string, std::string> split[] = {
      {"GA100", "src_int8"},          {"AD102", "src_int8"},
      {"GH100", "src_fp16"},          {"GH100", "op_imma_src_int8"},
      {"GB100", "src_fp16_dst_fp16"}, {"GB100", "src_tf32_dst_fp32"},
      {"GB110", "src_fp8_dst_fp32"},  {"GB100", "src_fp4_fp6_fp8_dst_fp32"}};
  for (const auto& [chip, source] : split) {
    if (!supported.contains(chip)) continue;
    INFO(chip << " " << source);
    CHECK(cupti->passes(chip, {"sm__ops_path_tensor_" + source + ".sum"}) == 2);
  }
}

// A metric and all of its parts fit one pass; src_fp4 and src_fp4_fp6 do not. GB100 and GB110 have
// the same names, and there the first is of UTCOMMA, the second of UTCQMMA.
TEST_CASE("of Blackwell's small formats, none is a part of another") {
  const auto cupti = real_cupti();
  if (!cupti) return;
  const std::string fp4 = "sm__ops_path_tensor_src_fp4_dst_fp32",
                    fp6 = "sm__ops_path_tensor_src_fp4_fp6_dst_fp32";
  for (const std::string chip : {"GB202", "GB207"}) {
    if (!cupti->chips.contains(chip)) continue;
    INFO(chip);
    for (const std::string& whole : {fp4, fp6})
      CHECK(cupti->passes(chip, {whole + ".sum", whole + "_sparsity_off.sum",
                                 whole + "_sparsity_on.sum"}) == 1);
    CHECK(cupti->passes(chip, {fp4 + ".sum", fp6 + ".sum"}) == 2);
  }
}

TEST_CASE("Hopper's counters of instructions hold what the plan's conditions rely on") {
  const auto cupti = real_cupti();
  if (!cupti || !cupti->chips.contains("GH100")) return;
  void* const library = dlopen(cupti->api.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto properties_of = reinterpret_cast<decltype(&cuptiProfilerHostGetMetricProperties)>(
      dlsym(library, "cuptiProfilerHostGetMetricProperties"));
  REQUIRE(properties_of != nullptr);
  auto host = sized<CUpti_Profiler_Host_Initialize_Params>();
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = "GH100";
  REQUIRE(cupti->api.ProfilerHostInitialize(&host) == CUPTI_SUCCESS);
  const std::pair<const char*, const char*> descriptions[] = {
      {"hmma", "(HMMA/HFMA2.MMA/HGMMA/QGMMA ops)"},
      {"gmma", "(HGMMA/QGMMA/IGMMA/BGMMA ops)"},
      {"imma", "(IMMA/IGMMA/BMMA/BGMMA ops)"},
      {"dmma", "(DMMA ops)"}};
  for (const auto& [pipe, instructions] : descriptions) {
    const std::string metric = std::string("sm__inst_executed_pipe_tensor_op_") + pipe + ".sum";
    struct {
      CUpti_Profiler_Host_GetMetricProperties_Params params;
      uint64_t room_for_newer_fields[16];
    } asked{};
    asked.params.structSize = 60;  // of 12.6
    asked.params.pHostObject = host.pHostObject;
    asked.params.pMetricName = metric.c_str();
    INFO(metric);
    REQUIRE(properties_of(&asked.params) == CUPTI_SUCCESS);
    CHECK(std::string(asked.params.pDescription).find(instructions) != std::string::npos);
  }
  auto end = sized<CUpti_Profiler_Host_Deinitialize_Params>();
  end.pHostObject = host.pHostObject;
  cupti->api.ProfilerHostDeinitialize(&end);
}

TEST_CASE("the check can fail: two groups together are more than one pass") {
  const auto cupti = real_cupti();
  if (!cupti) return;
  auto plan = metric_plan_for("GA100");
  REQUIRE(plan.size() > 2);
  plan[0].metrics.insert(plan[0].metrics.end(), plan[1].metrics.begin(), plan[1].metrics.end());
  Problem problem;
  CHECK(prepare_group(cupti->api, {"GA100", {}}, plan[0], Passes::kOne, problem) == nullptr);
  CHECK(problem.code == "counters.passes");
  plan[1].metrics = {"sm__no_such_metric.sum"};
  CHECK(prepare_group(cupti->api, {"GA100", {}}, plan[1], Passes::kOne, problem) == nullptr);
  CHECK(problem.code != "counters.passes");
}

// CUPTI's own text is not asked for in a program, since a CUPTI that cannot start may crash.
TEST_CASE("results have the names that CUPTI gives them") {
  const auto cupti = real_cupti();
  if (!cupti) return;
  void* const library = dlopen(cupti->api.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  const auto name_of =
      reinterpret_cast<decltype(&cuptiGetResultString)>(dlsym(library, "cuptiGetResultString"));
  REQUIRE(name_of != nullptr);
  std::string error;
  CHECK(read_version(cupti->api, error));
  size_t named = 0;
  for (int number = 0; number < 1'000; ++number) {
    const char* name = nullptr;
    const auto result = static_cast<CUptiResult>(number);
    if (name_of(result, &name) != CUPTI_SUCCESS || name == nullptr) continue;
    CHECK(describe(result) == std::string(name) + " (" + std::to_string(number) + ")");
    ++named;
  }
  CHECK(named >= 40);
}
