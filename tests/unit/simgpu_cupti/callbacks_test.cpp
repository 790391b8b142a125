// The callback API against its headers' rules.
#include <cupti.h>

#include <cstring>
#include <string>
#include <vector>

#include "catch.h"
#include "fake_driver.h"

namespace {

struct Seen {
  CUpti_CallbackDomain domain;
  uint32_t id;
  CUpti_CallbackData api;
  unsigned grid_x;
  CUresult result;
};

struct Client {
  CUpti_SubscriberHandle handle{};
  std::vector<Seen> seen;
  bool launch_inside = false;

  static void CUPTIAPI callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                const void* data) {
    auto& client = *static_cast<Client*>(self);
    Seen seen{domain, id, {}, 0, CUDA_ERROR_UNKNOWN};
    if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
      seen.api = *static_cast<const CUpti_CallbackData*>(data);
      if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel)
        seen.grid_x = static_cast<const cuLaunchKernel_params*>(seen.api.functionParams)->gridDimX;
      if (seen.api.callbackSite == CUPTI_API_ENTER)
        *seen.api.correlationData = 4711;
      else {
        seen.result = *static_cast<CUresult*>(seen.api.functionReturnValue);
        CHECK(*seen.api.correlationData == 4711);
      }
    }
    client.seen.push_back(seen);
    if (client.launch_inside) FakeDriver::get().launch({});
  }
  Client() { REQUIRE(cuptiSubscribe(&handle, callback, this) == CUPTI_SUCCESS); }
  ~Client() { cuptiUnsubscribe(handle); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  void enable(CUpti_CallbackDomain domain, uint32_t id) const {
    REQUIRE(cuptiEnableCallback(1, handle, domain, id) == CUPTI_SUCCESS);
  }
};

}  // namespace

TEST_CASE("a launch is called back at enter and exit with the same correlation") {
  Client client;
  client.enable(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  FakeDriver::Launch launch;
  launch.symbol = "_Z4axpyv";
  const uint32_t correlation = FakeDriver::get().launch(launch);
  REQUIRE(client.seen.size() == 2);
  const Seen &enter = client.seen[0], &exit = client.seen[1];
  CHECK(enter.api.callbackSite == CUPTI_API_ENTER);
  CHECK(exit.api.callbackSite == CUPTI_API_EXIT);
  for (const Seen& seen : client.seen) {
    CHECK(std::string(seen.api.functionName) == "cuLaunchKernel");
    CHECK(std::string(seen.api.symbolName) == "_Z4axpyv");
    CHECK(seen.api.correlationId == correlation);
    CHECK(seen.api.context == FakeDriver::context(1));
    CHECK(seen.api.contextUid == 1);
    CHECK(seen.grid_x == 2);
  }
  CHECK(exit.result == CUDA_SUCCESS);
}

TEST_CASE("only enabled callbacks arrive, and none after disabling or unsubscribing") {
  Client client;
  client.enable(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
  FakeDriver::get().launch({});
  CHECK(client.seen.empty());
  FakeDriver::get().launch_graph({{}, {}});
  CHECK(client.seen.size() == 2);
  REQUIRE(cuptiEnableDomain(0, client.handle, CUPTI_CB_DOMAIN_DRIVER_API) == CUPTI_SUCCESS);
  FakeDriver::get().launch_graph({{}});
  CHECK(client.seen.size() == 2);
  for (const auto domain :
       {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_SYNCHRONIZE})
    REQUIRE(cuptiEnableDomain(1, client.handle, domain) == CUPTI_SUCCESS);
  FakeDriver::get().launch({});
  CHECK(client.seen.size() == 4);
  REQUIRE(cuptiUnsubscribe(client.handle) == CUPTI_SUCCESS);
  FakeDriver::get().launch({});
  CHECK(client.seen.size() == 4);
}

TEST_CASE("there is one subscriber at a time, and version 2 names it") {
  CUpti_SubscriberHandle second{};
  char old_name[64] = "";
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "first";
  params.oldSubscriberName = old_name;
  params.oldSubscriberSize = sizeof old_name;
  CUpti_SubscriberHandle first{};
  REQUIRE(cuptiSubscribe_v2(&first, Client::callback, nullptr, &params) == CUPTI_SUCCESS);
  CHECK(cuptiSubscribe(&second, Client::callback, nullptr) ==
        CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK(cuptiSubscribe_v2(&second, Client::callback, nullptr, &params) ==
        CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  CHECK(std::string(old_name) == "CUPTI for first");
  CHECK(cuptiUnsubscribe(first) == CUPTI_SUCCESS);
  CHECK(cuptiUnsubscribe(first) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(cuptiEnableCallback(1, first, CUPTI_CB_DOMAIN_RESOURCE, 1) ==
        CUPTI_ERROR_INVALID_PARAMETER);
  REQUIRE(cuptiSubscribe(&second, Client::callback, nullptr) == CUPTI_SUCCESS);
  CHECK(cuptiUnsubscribe(second) == CUPTI_SUCCESS);
}

TEST_CASE("ids and domains that do not exist are refused") {
  const Client client;
  CHECK(cuptiEnableCallback(1, client.handle, CUPTI_CB_DOMAIN_DRIVER_API,
                            CUPTI_DRIVER_TRACE_CBID_SIZE) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(cuptiEnableCallback(1, client.handle, CUPTI_CB_DOMAIN_INVALID, 1) ==
        CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(cuptiEnableDomain(1, client.handle, CUPTI_CB_DOMAIN_SIZE) == CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_CASE("a CUDA call made inside a callback is not called back") {
  Client client;
  client.launch_inside = true;
  client.enable(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  FakeDriver::get().launch({});
  CHECK(client.seen.size() == 2);
}

TEST_CASE("resources and synchronization are called back with their data") {
  struct Events {
    std::vector<std::string> log;
    static void CUPTIAPI callback(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                  const void* data) {
      std::string text = std::to_string(domain) + ":" + std::to_string(id);
      if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        const auto* resource = static_cast<const CUpti_ResourceData*>(data);
        if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
          const auto* module =
              static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor);
          text += " module " + std::to_string(module->moduleId) + " " +
                  std::string(module->pCubin, module->cubinSize);
        }
        if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
          const auto* graph = static_cast<const CUpti_GraphData*>(resource->resourceDescriptor);
          text += graph->node != graph->originalNode && graph->nodeType == CU_GRAPH_NODE_TYPE_KERNEL
                      ? " clone"
                      : "";
        }
        if (id == CUPTI_CBID_RESOURCE_STREAM_CREATED)
          text += resource->resourceHandle.stream == FakeDriver::stream(5) ? " stream 5" : "";
      } else {
        text +=
            static_cast<const CUpti_SynchronizeData*>(data)->stream == nullptr ? " all" : " stream";
      }
      static_cast<Events*>(self)->log.push_back(text);
    }
  } events;
  CUpti_SubscriberHandle handle{};
  REQUIRE(cuptiSubscribe(&handle, Events::callback, &events) == CUPTI_SUCCESS);
  REQUIRE(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_RESOURCE) == CUPTI_SUCCESS);
  REQUIRE(cuptiEnableDomain(1, handle, CUPTI_CB_DOMAIN_SYNCHRONIZE) == CUPTI_SUCCESS);
  const simgpu::Observer& driver = *FakeDriver::get().observer();
  const CUcontext context = FakeDriver::context(1);
  driver.context_created(driver.self, context, 1, 0);
  driver.stream_created(driver.self, context, FakeDriver::stream(5), 5);
  const simgpu::ModuleInfo module{42, "cubin", 5, 1};
  driver.module_loaded(driver.self, context, &module);
  simgpu::GraphInfo graph{};
  graph.node = reinterpret_cast<CUgraphNode>(2);
  graph.original_node = reinterpret_cast<CUgraphNode>(1);
  graph.node_type = CU_GRAPH_NODE_TYPE_KERNEL;
  driver.graph(driver.self, simgpu::GraphEvent::kNodeCloned, &graph);
  driver.synchronized(driver.self, context, nullptr);
  driver.synchronized(driver.self, context, FakeDriver::stream(5));
  driver.context_destroying(driver.self, context, 1, 0);
  CHECK(events.log == std::vector<std::string>{"3:1", "3:3 stream 5", "3:6 module 42 cubin", "3:8",
                                               "3:20 clone", "4:2 all", "4:1 stream", "3:2"});
  CHECK(cuptiUnsubscribe(handle) == CUPTI_SUCCESS);
}

TEST_CASE("after finalize the driver reports to nobody, and a new subscription works") {
  {
    const Client client;
    REQUIRE(FakeDriver::get().observer() != nullptr);
    CHECK(cuptiFinalize() == CUPTI_SUCCESS);
    CHECK(FakeDriver::get().observer() == nullptr);
    CHECK(cuptiEnableDomain(1, client.handle, CUPTI_CB_DOMAIN_RESOURCE) ==
          CUPTI_ERROR_INVALID_PARAMETER);
  }
  Client again;
  again.enable(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  FakeDriver::get().launch({});
  CHECK(again.seen.size() == 2);
}

TEST_CASE("names, versions, ids and time") {
  const char* name = nullptr;
  CHECK(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                             &name) == CUPTI_SUCCESS);
  CHECK(std::string(name) == "cuLaunchKernelEx");
  CHECK(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, 211, &name) == CUPTI_SUCCESS);
  CHECK(std::string(name) == "cudaLaunchKernel_v7000");
  CHECK(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RESOURCE, 3, &name) == CUPTI_ERROR_INVALID_PARAMETER);
  CHECK(cuptiGetResultString(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, &name) == CUPTI_SUCCESS);
  CHECK(std::string(name) == "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
  CHECK(cuptiGetResultString(static_cast<CUptiResult>(47), &name) == CUPTI_ERROR_INVALID_PARAMETER);
  uint32_t id = 0;
  CHECK(cuptiGetContextId(FakeDriver::context(3), &id) == CUPTI_SUCCESS);
  CHECK(id == 3);
  CHECK(cuptiGetContextId(FakeDriver::context(99), &id) == CUPTI_ERROR_INVALID_CONTEXT);
  CHECK(cuptiGetStreamId(nullptr, FakeDriver::stream(2), &id) == CUPTI_SUCCESS);
  CHECK(id == 9);
  CHECK(cuptiGetStreamId(nullptr, FakeDriver::stream(99), &id) == CUPTI_ERROR_INVALID_STREAM);
  uint64_t time = 0;
  CHECK(cuptiGetTimestamp(&time) == CUPTI_SUCCESS);
  CHECK(time == 123456789);
}
