// What differs between CUPTI's versions. The version comes from the environment of the test; the
// sizes are those of the headers in the wheels of each release.
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "catch.h"
#include "fake_driver.h"

namespace {

uint32_t expected_version() {
  const char* text = std::getenv("EXPECTED_VERSION");
  return text == nullptr ? CUPTI_API_VERSION : static_cast<uint32_t>(std::atoi(text));
}
bool is(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text == '1';
}

// A structure as a client of other headers has it: `size` bytes, and what follows is not ours.
template <class Params>
struct Sized {
  explicit Sized(size_t size) { params()->structSize = size; }
  Params* params() { return reinterpret_cast<Params*>(bytes); }
  alignas(16) unsigned char bytes[sizeof(Params) + 64] = {};
};

CUptiResult device_supported(size_t size) {
  Sized<CUpti_Profiler_DeviceSupported_Params> sized(size);
  return cuptiProfilerDeviceSupported(sized.params());
}
CUptiResult host_initialize(size_t size) {
  Sized<CUpti_Profiler_Host_Initialize_Params> sized(size);
  sized.params()->pChipName = "GH100";
  sized.params()->profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  return cuptiProfilerHostInitialize(sized.params());
}
// Not enabled: a size that is known is followed by NOT_INITIALIZED.
CUptiResult range_enable(size_t size) {
  Sized<CUpti_RangeProfiler_Enable_Params> sized(size);
  sized.params()->ctx = FakeDriver::context(1);
  const CUptiResult result = cuptiRangeProfilerEnable(sized.params());
  return result == CUPTI_ERROR_NOT_INITIALIZED ? CUPTI_SUCCESS : result;
}

// How a child that calls this ends.
template <class Call>
int status_of(Call call) {
  const pid_t child = fork();
  if (child == 0) _exit(static_cast<int>(call()) & 0x7f);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

void CUPTIAPI ignore(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

}  // namespace

TEST_CASE("structures have the sizes of the version, and of older ones", "[.sizes]") {
  const uint32_t version = expected_version();
  const bool exact = is("EXACT");
  const auto check = [&](CUptiResult (*call)(size_t), uint32_t since, size_t before, size_t now) {
    const bool grown = version >= since;
    CHECK((call(now) == CUPTI_SUCCESS) == grown);
    CHECK((call(before) == CUPTI_SUCCESS) == (!grown || !exact));
    CHECK(call(before - 8) == CUPTI_ERROR_INVALID_PARAMETER);
    CHECK(call(now + 8) == CUPTI_ERROR_INVALID_PARAMETER);
  };
  check(device_supported, 130100, 52, 56);
  check(host_initialize, 130200, 48, 56);
  check(range_enable, 130400, 32, 36);
}

TEST_CASE("where CUPTI cannot start, it answers as its version does", "[.unstarted]") {
  const uint32_t version = expected_version();
  uint32_t answer = 0;
  uint64_t time = 0;
  CUpti_SubscriberHandle handle{};
  if (version >= 130200 && version < 130300) {  // it calls itself for ever
    const int status = status_of([&] { return cuptiGetVersion(&answer); });
    CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) != 0));
    const char* text = nullptr;
    CHECK(status_of([&] { return cuptiGetResultString(CUPTI_SUCCESS, &text); }) != 0);
    return;
  }
  const bool mute = version >= 130300;
  CHECK(cuptiGetVersion(&answer) == (mute ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS));
  CHECK(answer == (mute ? 0 : version));
  CHECK(cuptiGetTimestamp(&time) == (mute ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS));
  CHECK(host_initialize(version >= 130200 ? 56 : 48) ==
        (mute ? CUPTI_ERROR_UNKNOWN : CUPTI_SUCCESS));
  CHECK(cuptiSubscribe(&handle, ignore, nullptr) ==
        (version < 130000 ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_ERROR_UNKNOWN));
}
