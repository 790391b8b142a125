#include <injector/counters/profiler/device_support.h>

#include <cstring>

#include "catch.h"

using namespace flopinj;

namespace {

using Params = CUpti_Profiler_DeviceSupported_Params;

// As CUPTI fills it, of any version: levels are numbers that the headers need not know.
Params all(int level) {
  Params p{};
  for (auto* const field :
       {&p.isSupported, &p.architecture, &p.sli, &p.vGpu, &p.confidentialCompute, &p.cmp, &p.wsl})
    std::memcpy(field, &level, sizeof level);
  return p;
}

std::string refused_for(CUpti_Profiler_Support_Level Params::*field,
                        CUpti_Profiler_Support_Level level) {
  Params p = all(CUPTI_PROFILER_CONFIGURATION_SUPPORTED);
  p.isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
  p.*field = level;
  Problem problem;
  CHECK(device_support(p, problem) == DeviceSupport::kRefused);
  return problem.code;
}

}  // namespace

TEST_CASE("limited support is support, and said; what CUPTI cannot tell is tried") {
  Problem problem;
  CHECK(device_support(all(4), problem) == DeviceSupport::kLimited);
  CHECK(problem.code == "counters.limited");
  for (const int level : {0, 3}) {
    Problem none;
    CHECK(device_support(all(level), none) == DeviceSupport::kTry);
    CHECK(none.code.empty());
  }
}

TEST_CASE("a refusal names the feature that refuses, and no feature that is unknown") {
  constexpr auto kNo = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED;
  constexpr auto kOff = CUPTI_PROFILER_CONFIGURATION_DISABLED;
  CHECK(refused_for(&Params::architecture, kNo) == "counters.architecture");
  CHECK(refused_for(&Params::sli, kNo) == "counters.sli");
  CHECK(refused_for(&Params::vGpu, kNo) == "counters.vgpu");
  CHECK(refused_for(&Params::vGpu, kOff) == "counters.vgpu");
  CHECK(refused_for(&Params::confidentialCompute, kNo) == "counters.confidential");
  CHECK(refused_for(&Params::cmp, kNo) == "counters.cmp");
  CHECK(refused_for(&Params::wsl, kNo) == "counters.wsl");
  CHECK(refused_for(&Params::wsl, CUPTI_PROFILER_CONFIGURATION_UNKNOWN) == "counters.failed");
}

TEST_CASE("a result of CUPTI that says why is told apart from a failure") {
  struct Expected {
    CUptiResult result;
    std::string code;
    bool lasting, passing;
  };
  for (const Expected& of : {Expected{CUPTI_ERROR_NOT_INITIALIZED, "cupti.driver", true, false},
                             Expected{CUPTI_ERROR_HARDWARE_BUSY, "counters.busy", false, true},
                             Expected{CUPTI_ERROR_UNKNOWN, "counters.failed", false, false}}) {
    Problem problem;
    CHECK_FALSE(check(of.result, "cuptiCall", problem));
    CHECK(problem.code == of.code);
    CHECK(problem.lasting == of.lasting);
    CHECK(problem.passing == of.passing);
    CHECK(problem.line.find("cuptiCall") != std::string::npos);
  }
}
