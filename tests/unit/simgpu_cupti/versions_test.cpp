// What differs between CUPTI's versions. The version comes from the environment of the test; the
// sizes are those of the headers in the wheels of each release.
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

#include <cstdlib>

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

// As the real ones do beside NVIDIA's libcuda.so.1 on a machine without a GPU.
TEST_CASE("where CUPTI cannot start, it says so and its version", "[.unstarted]") {
  const uint32_t version = expected_version();
  uint32_t answer = 0;
  uint64_t time = 0;
  CUpti_SubscriberHandle handle{};
  CHECK(cuptiGetVersion(&answer) == CUPTI_SUCCESS);
  CHECK(answer == version);
  CHECK(cuptiGetTimestamp(&time) == CUPTI_SUCCESS);
  CHECK(host_initialize(version >= 130200 ? 56 : 48) == CUPTI_SUCCESS);
  const CUptiResult refusal = version < 130000 ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_ERROR_UNKNOWN;
  CHECK(cuptiSubscribe(&handle, ignore, nullptr) == refusal);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == refusal);
}
