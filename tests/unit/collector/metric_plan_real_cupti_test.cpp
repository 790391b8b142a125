// Asks a real CUPTI about the metric plan. Its host API needs neither a GPU nor a driver.
//
// The library is looked for in FLOPINJ_TEST_CUPTI, then by its usual names, then beside the headers
// the build found. Without one the test says so and passes: ctest shows it as skipped.
#include <collector/computed_plan.h>
#include <collector/metric_plan.h>
#include <cupti_profiler_host.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"

using namespace flopinj;

namespace {

void* open_cupti() {
  const char* const given = std::getenv("FLOPINJ_TEST_CUPTI");
  std::vector<std::string> names;
  if (given != nullptr && *given != '\0') {
    names = {given};
  } else {
    for (const std::string directory :
         {"", FLOPINJ_CUPTI_HEADERS "/../lib/", FLOPINJ_CUPTI_HEADERS "/../lib64/",
          FLOPINJ_CUPTI_HEADERS "/../../../lib64/", "/usr/local/cuda/lib64/",
          "/usr/local/cuda/lib/", "/usr/local/cuda/extras/CUPTI/lib64/"})
      for (const char* const file : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"})
        names.push_back(directory + file);
  }
  for (const std::string& name : names) {
    // CUPTI opens libnvperf_host.so by that name alone, and it must not get that of another version:
    // what is loaded already comes first.
    const size_t folder = name.rfind('/');
    if (folder != std::string::npos)
      dlopen((name.substr(0, folder) + "/libnvperf_host.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// The few functions of the host API that are needed, from a library opened at run time.
class HostApi {
 public:
  explicit HostApi(void* library)
      : chips_(symbol<decltype(cuptiProfilerHostGetSupportedChips)>(
            library, "cuptiProfilerHostGetSupportedChips")),
        initialize_(
            symbol<decltype(cuptiProfilerHostInitialize)>(library, "cuptiProfilerHostInitialize")),
        deinitialize_(symbol<decltype(cuptiProfilerHostDeinitialize)>(
            library, "cuptiProfilerHostDeinitialize")),
        add_metrics_(symbol<decltype(cuptiProfilerHostConfigAddMetrics)>(
            library, "cuptiProfilerHostConfigAddMetrics")),
        image_size_(symbol<decltype(cuptiProfilerHostGetConfigImageSize)>(
            library, "cuptiProfilerHostGetConfigImageSize")),
        image_(symbol<decltype(cuptiProfilerHostGetConfigImage)>(
            library, "cuptiProfilerHostGetConfigImage")),
        passes_(symbol<decltype(cuptiProfilerHostGetNumOfPasses)>(
            library, "cuptiProfilerHostGetNumOfPasses")),
        base_metrics_(symbol<decltype(cuptiProfilerHostGetBaseMetrics)>(
            library, "cuptiProfilerHostGetBaseMetrics")) {}

  bool complete() const {
    return chips_ && initialize_ && deinitialize_ && add_metrics_ && image_size_ && image_ &&
           passes_ && base_metrics_;
  }

  std::set<std::string> chips() const {
    CUpti_Profiler_Host_GetSupportedChips_Params p{};
    p.structSize = CUpti_Profiler_Host_GetSupportedChips_Params_STRUCT_SIZE;
    if (chips_(&p) != CUPTI_SUCCESS) return {};
    return {p.ppChipNames, p.ppChipNames + p.numChips};
  }

  // Passes for these metrics on that chip; 0 and a reason in `error` when they cannot be
  // configured.
  size_t passes(const std::string& chip, const std::vector<std::string>& metrics,
                std::string& error) const {
    size_t result = 0;
    with_host(chip, error, [&](auto* host) { result = count(host, metrics, error); });
    return result;
  }

  // Names of all counters of a chip, without roll-up.
  std::vector<std::string> names(const std::string& chip) const {
    std::vector<std::string> result;
    std::string error;
    with_host(chip, error, [&](auto* host) {
      CUpti_Profiler_Host_GetBaseMetrics_Params p{};
      p.structSize = CUpti_Profiler_Host_GetBaseMetrics_Params_STRUCT_SIZE;
      p.pHostObject = host;
      p.metricType = CUPTI_METRIC_TYPE_COUNTER;
      if (base_metrics_(&p) == CUPTI_SUCCESS)
        result.assign(p.ppMetricNames, p.ppMetricNames + p.numMetrics);
    });
    return result;
  }

 private:
  static bool ok(CUptiResult result, const char* what, std::string& error) {
    if (result != CUPTI_SUCCESS) error = std::string(what) + ": " + std::to_string(result);
    return result == CUPTI_SUCCESS;
  }

  template <class Use>
  void with_host(const std::string& chip, std::string& error, Use&& use) const {
    CUpti_Profiler_Host_Initialize_Params init{};
    init.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
    init.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
    init.pChipName = chip.c_str();
    if (!ok(initialize_(&init), "initialize", error)) return;
    use(init.pHostObject);
    CUpti_Profiler_Host_Deinitialize_Params end{};
    end.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
    end.pHostObject = init.pHostObject;
    deinitialize_(&end);
  }

  CUptiResult add(CUpti_Profiler_Host_Object* host, std::vector<const char*> names) const {
    CUpti_Profiler_Host_ConfigAddMetrics_Params p{};
    p.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
    p.pHostObject = host;
    p.ppMetricNames = names.data();
    p.numMetrics = names.size();
    return add_metrics_(&p);
  }

  size_t count(CUpti_Profiler_Host_Object* host, const std::vector<std::string>& metrics,
               std::string& error) const {
    // All in one call: CUPTI schedules the metrics of each call into passes of their own.
    std::vector<const char*> names;
    for (const std::string& metric : metrics) names.push_back(metric.c_str());
    if (!ok(add(host, names), "add metrics", error)) {
      for (const char* name : names)
        if (add(host, {name}) != CUPTI_SUCCESS) error += std::string(" ") + name;
      return 0;
    }
    CUpti_Profiler_Host_GetConfigImageSize_Params size{};
    size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
    size.pHostObject = host;
    if (!ok(image_size_(&size), "config image size", error)) return 0;
    std::vector<uint8_t> bytes(size.configImageSize);
    CUpti_Profiler_Host_GetConfigImage_Params image{};
    image.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    image.pHostObject = host;
    image.configImageSize = bytes.size();
    image.pConfigImage = bytes.data();
    if (!ok(image_(&image), "config image", error)) return 0;
    CUpti_Profiler_Host_GetNumOfPasses_Params passes{};
    passes.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
    passes.configImageSize = bytes.size();
    passes.pConfigImage = bytes.data();
    if (!ok(passes_(&passes), "passes", error)) return 0;
    return passes.numOfPasses;
  }

  decltype(cuptiProfilerHostGetSupportedChips)* chips_;
  decltype(cuptiProfilerHostInitialize)* initialize_;
  decltype(cuptiProfilerHostDeinitialize)* deinitialize_;
  decltype(cuptiProfilerHostConfigAddMetrics)* add_metrics_;
  decltype(cuptiProfilerHostGetConfigImageSize)* image_size_;
  decltype(cuptiProfilerHostGetConfigImage)* image_;
  decltype(cuptiProfilerHostGetNumOfPasses)* passes_;
  decltype(cuptiProfilerHostGetBaseMetrics)* base_metrics_;
};

// Null where there is none; then it has said so, in words that ctest looks for.
std::unique_ptr<HostApi> host_api() {
  void* const library = open_cupti();
  auto api = library != nullptr ? std::make_unique<HostApi>(library) : nullptr;
  if (api && api->complete()) return api;
  std::puts("SKIPPED: no libcupti with the profiler host API; set FLOPINJ_TEST_CUPTI to one");
  return nullptr;
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
  const auto api = host_api();
  if (!api) return;
  const std::set<std::string> supported = api->chips();
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
    for (const MetricGroupPlan& group : metric_plan_for(chip)) {
      std::string error;
      const size_t passes = api->passes(chip, group.metrics, error);
      INFO(chip << " " << group.name << " " << error);
      CHECK(passes == 1);
      ++checked;
    }
  }
  CHECK(chips >= 19);  // CUPTI 12.6 knows them from GV100 to GH100, 13.0 those of Blackwell too
  CHECK(checked >= 6 * chips);
}

// As if the chip were in no table. What is worked out is as complete as what was put together by hand.
TEST_CASE("a plan computed for a known chip tells all that its own plan does") {
  const auto api = host_api();
  if (!api) return;
  const std::set<std::string> supported = api->chips();
  for (const char* const name :
       {"GV100", "TU116", "GA100", "AD102", "GH100", "GB100", "GB110", "GB202"}) {
    const std::string chip = name;
    if (!supported.contains(chip)) continue;
    INFO(chip);
    std::string error;
    const auto passes = [&](const std::vector<std::string>& metrics) {
      return api->passes(chip, metrics, error);
    };
    const auto computed = compute_metric_plan(chip, api->names(chip), passes);
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
    CHECK(lacking == (by_hand.size() == 2));  // TU116
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
  const auto api = host_api();
  if (!api) return;
  const std::set<std::string> supported = api->chips();
  const std::pair<std::string, std::string> split[] = {
      {"GA100", "src_int8"},          {"AD102", "src_int8"},
      {"GH100", "src_fp16"},          {"GH100", "op_imma_src_int8"},
      {"GB100", "src_fp16_dst_fp16"}, {"GB100", "src_tf32_dst_fp32"},
      {"GB110", "src_fp8_dst_fp32"},  {"GB100", "src_fp4_fp6_fp8_dst_fp32"}};
  for (const auto& [chip, source] : split) {
    if (!supported.contains(chip)) continue;
    std::string error;
    INFO(chip << " " << source);
    CHECK(api->passes(chip, {"sm__ops_path_tensor_" + source + ".sum"}, error) == 2);
  }
}

TEST_CASE("the check can fail: two groups together are more than one pass") {
  const auto api = host_api();
  if (!api) return;
  auto plan = metric_plan_for("GA100");
  REQUIRE(plan.size() > 2);
  plan[0].metrics.insert(plan[0].metrics.end(), plan[1].metrics.begin(), plan[1].metrics.end());
  std::string error;
  CHECK(api->passes("GA100", plan[0].metrics, error) > 1);
  CHECK(api->passes("GA100", {"sm__no_such_metric.sum"}, error) == 0);
  CHECK(error.find("sm__no_such_metric") != std::string::npos);
}
