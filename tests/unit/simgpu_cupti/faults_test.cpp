// One failure each, as SIMGPU_FAULT asks for in the environment of the test: EXPECTED_FAULT names
// it here.
#include <cstdlib>
#include <string>

#include "catch.h"
#include "fake_driver.h"
#include "range_client.h"

namespace {

void CUPTIAPI ignore(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

void CUPTIAPI request(uint8_t** buffer, size_t* size, size_t* max_records) {
  alignas(8) static uint8_t memory[8192];
  *buffer = memory;
  *size = sizeof memory;
  *max_records = 0;
}
void CUPTIAPI complete(CUcontext, uint32_t, uint8_t*, size_t, size_t) {}

CUpti_Profiler_DeviceSupported_Params supported() {
  CUpti_Profiler_DeviceSupported_Params params{};
  params.structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE;
  params.api = CUPTI_PROFILER_RANGE_PROFILING;
  REQUIRE(cuptiProfilerDeviceSupported(&params) == CUPTI_SUCCESS);
  return params;
}

}  // namespace

TEST_CASE("which counters a device has is said while no session is active there") {
  const char* text = std::getenv("EXPECTED_FAULT");
  const std::string fault = text == nullptr ? "none" : text;
  std::vector<uint8_t> image;
  CHECK(counter_availability(FakeDriver::context(1), image) == CUPTI_ERROR_NOT_INITIALIZED);
  REQUIRE(initialize_profiler() == CUPTI_SUCCESS);
  const CUptiResult told = counter_availability(FakeDriver::context(1), image);
  CUptiResult expected = CUPTI_SUCCESS;
  if (fault == "no_privileges") expected = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  if (fault == "hardware_busy") expected = CUPTI_ERROR_HARDWARE_BUSY;
  if (fault == "unsupported_device") expected = CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED;
  CHECK(told == expected);
  if (told != CUPTI_SUCCESS) return;
  CHECK(counter_availability(FakeDriver::context(99), image) == CUPTI_ERROR_INVALID_CONTEXT);
  std::vector<uint8_t> of_current;
  CHECK(counter_availability(nullptr, of_current) == CUPTI_SUCCESS);
  CHECK(of_current == image);
  CUpti_Profiler_GetCounterAvailability_Params small{};
  small.structSize = CUpti_Profiler_GetCounterAvailability_Params_STRUCT_SIZE;
  small.ctx = FakeDriver::context(1);
  small.pCounterAvailabilityImage = of_current.data();
  small.counterAvailabilityImageSize = image.size() - 1;
  CHECK(cuptiProfilerGetCounterAvailability(&small) == CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);

  if (fault == "host_objects") return;  // there is room for one
  const auto lacks = fault == "slice_lacks" ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
  CHECK(HostPlan(kSassMetrics, "GH100", image.data()).result == lacks);
  CHECK(HostPlan(kSassMetrics, "GH100").result == CUPTI_SUCCESS);
  CHECK(HostPlan(kScreening, "GH100", image.data()).result == CUPTI_SUCCESS);
  CHECK(HostPlan(kScreening, "GB100", image.data()).result == CUPTI_ERROR_INVALID_PARAMETER);
  of_current.back() ^= 1U;
  CHECK(HostPlan(kScreening, "GH100", of_current.data()).result == CUPTI_ERROR_INVALID_PARAMETER);

  RangeClient client;
  if (client.enable(FakeDriver::context(2)) != CUPTI_SUCCESS) return;
  CHECK(counter_availability(FakeDriver::context(1), image) == CUPTI_ERROR_HARDWARE_BUSY);
  CHECK(client.disable() == CUPTI_SUCCESS);
  CHECK(counter_availability(FakeDriver::context(1), image) == CUPTI_SUCCESS);
}

TEST_CASE("the fault of this run shows where it should and nowhere else") {
  const char* text = std::getenv("EXPECTED_FAULT");
  const std::string fault = text == nullptr ? "none" : text;
  const auto or_success = [&](const char* name, CUptiResult result) {
    return fault == name ? result : CUPTI_SUCCESS;
  };

  CUpti_SubscriberHandle handle{};
  CHECK(cuptiSubscribe(&handle, ignore, nullptr) ==
        or_success("second_subscriber", CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED));

  const bool device = fault != "unsupported_device";
  const auto support = supported();
  CHECK(support.isSupported == (device ? CUPTI_PROFILER_CONFIGURATION_SUPPORTED
                                       : CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED));
  CHECK(support.vGpu ==
        (device ? CUPTI_PROFILER_CONFIGURATION_SUPPORTED : CUPTI_PROFILER_CONFIGURATION_DISABLED));

  REQUIRE(cuptiActivityRegisterCallbacks(request, complete) == CUPTI_SUCCESS);
  REQUIRE(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  for (int i = 0; i < 9; ++i) FakeDriver::get().launch({});
  size_t lost = 99;
  REQUIRE(cuptiActivityGetNumDroppedRecords(nullptr, 0, &lost) == CUPTI_SUCCESS);
  CHECK(lost == (fault == "drop_activity" ? 3U : 0U));

  REQUIRE(initialize_profiler() == CUPTI_SUCCESS);
  RangeClient client;
  const CUptiResult enabled = client.enable(FakeDriver::context(1));
  CUptiResult expected = or_success("no_privileges", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  if (fault == "hardware_busy") expected = CUPTI_ERROR_HARDWARE_BUSY;
  if (fault == "unsupported_device") expected = CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED;
  if (fault == "enable_fails") expected = CUPTI_ERROR_UNKNOWN;
  if (fault == "no_records_beside") expected = CUPTI_ERROR_NOT_COMPATIBLE;
  CHECK(enabled == expected);
  if (fault == "no_records_beside") {  // whichever comes first
    REQUIRE(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
    CHECK(client.enable(FakeDriver::context(1)) == CUPTI_SUCCESS);
    CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_ERROR_NOT_COMPATIBLE);
    CHECK(client.disable() == CUPTI_SUCCESS);
    CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS);
  }
  if (enabled != CUPTI_SUCCESS) return;
  const HostPlan plan(kSassMetrics);
  CUpti_Profiler_Host_Initialize_Params second{};
  second.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  second.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  second.pChipName = "GH100";
  CHECK(cuptiProfilerHostInitialize(&second) ==
        or_success("host_objects", CUPTI_ERROR_OUT_OF_MEMORY));
  if (fault == "host_objects") return;
  REQUIRE(client.make_image(kSassMetrics, 20) == CUPTI_SUCCESS);
  if (fault == "one_group_refused" || fault == "slice_lacks") {
    CHECK(client.set_config(plan, 20) == CUPTI_ERROR_INVALID_PARAMETER);
    const HostPlan other(kScreening);
    REQUIRE(client.make_image(kScreening, 20) == CUPTI_SUCCESS);
    CHECK(client.set_config(other, 20) == CUPTI_SUCCESS);
    return;
  }
  REQUIRE(client.set_config(plan, 20) == CUPTI_SUCCESS);
  CHECK(client.start() == or_success("start_refused", CUPTI_ERROR_UNKNOWN));
  if (fault == "start_refused") return;
  for (int i = 0; i < 9; ++i) FakeDriver::get().launch({});
  REQUIRE(client.stop() == CUPTI_SUCCESS);
  CHECK(client.decode() == or_success("decode_fails", CUPTI_ERROR_UNKNOWN));
  if (fault == "decode_fails") return;
  CHECK(client.dropped == (fault == "drop_ranges" ? 3U : 0U));
  CHECK(client.ranges() == (fault == "drop_ranges" || fault == "lose_ranges" ? 6U : 9U));
}
