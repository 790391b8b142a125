// Faults of enabling and disabling the range profiler, one each, as SIMGPU_FAULT asks for in the
// environment of the test; EXPECTED_FAULT names it here.
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "catch.h"
#include "fake_driver.h"
#include "range_client.h"

namespace {

bool fault_is(const char* name) {
  const char* text = std::getenv("EXPECTED_FAULT");
  return text != nullptr && std::string(text) == name;
}

// Runs `action` in the next callback.
std::function<void()> g_action;
void CUPTIAPI callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {
  if (g_action) std::exchange(g_action, nullptr)();
}

void in_a_callback(std::function<void()> action) {
  CUpti_SubscriberHandle handle{};
  REQUIRE(cuptiSubscribe(&handle, callback, nullptr) == CUPTI_SUCCESS);
  REQUIRE(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS);
  g_action = std::move(action);
  FakeDriver::get().launch({});
  CHECK_FALSE(g_action);
  REQUIRE(cuptiUnsubscribe(handle) == CUPTI_SUCCESS);
}

}  // namespace

TEST_CASE("what is disabled may be taken by another client, for a while") {
  REQUIRE(initialize_profiler() == CUPTI_SUCCESS);
  in_a_callback([] {
    RangeClient client;
    const CUcontext context = FakeDriver::context(1);
    CHECK(client.enable(context) == CUPTI_SUCCESS);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(client.disable() == CUPTI_SUCCESS);
    const CUptiResult again = client.enable(context);
    // Taken for 300 ms; a loaded machine may let as much pass between two calls.
    const bool taken = fault_is("taken_when_free") &&
                       std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(290);
    if (taken || !fault_is("taken_when_free"))
      CHECK(again == (taken ? CUPTI_ERROR_HARDWARE_BUSY : CUPTI_SUCCESS));
    if (again == CUPTI_SUCCESS) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(320));
    CHECK(client.enable(context) == CUPTI_SUCCESS);
  });
  cuptiFinalize();
}

TEST_CASE("enabling and disabling outside a callback") {
  REQUIRE(initialize_profiler() == CUPTI_SUCCESS);
  const CUptiResult expected =
      fault_is("switch_elsewhere") ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS;
  RangeClient outside, inside;
  CHECK(outside.enable(FakeDriver::context(1)) == expected);
  in_a_callback([&] { CHECK(inside.enable(FakeDriver::context(2)) == CUPTI_SUCCESS); });
  CHECK(inside.disable() == expected);
  cuptiFinalize();
}
