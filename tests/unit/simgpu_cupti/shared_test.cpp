// Several subscribers in one process, from CUPTI 13.2 on. The version comes from the environment of
// the test.
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "catch.h"
#include "fake_driver.h"

namespace {

// As in the headers of 13.2 and later.
struct Params {
  size_t size = 40;
  const char* name = "test";
  char* old_name = nullptr;
  size_t old_name_size = 0;
  uint8_t allow_multiple = 1;
  uint8_t padding[7] = {};
};
static_assert(sizeof(Params) == 40);

template <class... Arguments>
CUptiResult call(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<CUptiResult (*)(Arguments...)>(dlsym(RTLD_DEFAULT, name));
  REQUIRE(function != nullptr);
  return function(arguments...);
}

CUptiResult subscribe(CUpti_SubscriberHandle* handle, int* calls, uint8_t allow = 1) {
  Params params;
  params.allow_multiple = allow;
  const CUpti_CallbackFunc count = [](void* data, CUpti_CallbackDomain, CUpti_CallbackId,
                                      const void*) { ++*static_cast<int*>(data); };
  return call("cuptiSubscribe_v2", handle, count, static_cast<void*>(calls), &params);
}

std::vector<uint8_t*> g_completed[2];
alignas(8) uint8_t g_memory[2][1 << 14];
size_t g_bytes[2];
template <int client>
void request(uint8_t** buffer, size_t* size, size_t* records, void* info) {
  REQUIRE(info != nullptr);
  *buffer = g_memory[client];
  *size = sizeof g_memory[client];
  *records = 0;
}
template <int client>
void complete(uint8_t* buffer, size_t, size_t valid, void* info) {
  REQUIRE(info != nullptr);
  g_completed[client].push_back(buffer);
  g_bytes[client] += valid;
}

}  // namespace

TEST_CASE("subscribers that allow others have callbacks and records of their own") {
  const char* const version = std::getenv("SIMGPU_CUPTI_VERSION");
  const bool can = version != nullptr && std::strcmp(version, "13.3") == 0;
  CUpti_SubscriberHandle first{}, second{}, third{};
  int calls[2] = {};
  if (!can) {  // an older version does not know the structure
    CHECK(subscribe(&first, &calls[0]) == CUPTI_ERROR_INVALID_PARAMETER);
    return;
  }
  REQUIRE(subscribe(&first, &calls[0]) == CUPTI_SUCCESS);
  REQUIRE(subscribe(&second, &calls[1]) == CUPTI_SUCCESS);
  CHECK(subscribe(&third, &calls[1], 0) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK(cuptiSubscribe(
            &third, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr) ==
        CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_ERROR_NOT_COMPATIBLE);
  uint64_t now = 0;
  CHECK(cuptiGetTimestamp(&now) == CUPTI_ERROR_NOT_COMPATIBLE);
  CHECK(call("cuptiGetTimestamp_v2", first, &now) == CUPTI_SUCCESS);

  const CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  void* const config = nullptr;
  REQUIRE(call("cuptiActivityRegisterCallbacks_v2", first, request<0>, complete<0>) ==
          CUPTI_SUCCESS);
  REQUIRE(call("cuptiActivityRegisterCallbacks_v2", second, request<1>, complete<1>) ==
          CUPTI_SUCCESS);
  REQUIRE(call("cuptiActivityEnable_v2", first, kind, config) == CUPTI_SUCCESS);
  REQUIRE(cuptiEnableDomain(1, first, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS);
  FakeDriver::get().launch({});  // the first alone
  REQUIRE(call("cuptiActivityEnable_v2", second, kind, config) == CUPTI_SUCCESS);
  REQUIRE(cuptiEnableDomain(1, second, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS);
  FakeDriver::get().launch({});
  FakeDriver::get().launch({});
  REQUIRE(call("cuptiActivityDisable_v2", second, kind, config) == CUPTI_SUCCESS);
  REQUIRE(cuptiUnsubscribe(second) == CUPTI_SUCCESS);
  FakeDriver::get().launch({});  // the first alone
  REQUIRE(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) == CUPTI_SUCCESS);
  CHECK(calls[0] == 2 * 4);  // ENTER and EXIT
  CHECK(calls[1] == 2 * 2);
  CHECK(g_bytes[0] == 2 * g_bytes[1]);  // 4 records and 2
  CHECK(g_bytes[1] > 0);
  REQUIRE(cuptiUnsubscribe(first) == CUPTI_SUCCESS);
  CHECK(cuptiSubscribe(
            &third, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {},
            nullptr) == CUPTI_SUCCESS);  // nobody is there any more
  cuptiFinalize();
}
