// Plans of devices, made on a thread of their own, by a CUPTI that the test plays.
#include <injector/counters/profiler/planner.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.h"
#include "unit/injector/played_gpu.h"

using namespace flopinj;
using namespace std::chrono_literals;
using test::PlayedGpu;

namespace {

std::atomic<uint32_t> g_host_objects{0}, g_ended{0};
std::atomic<bool> g_held_up{false};
std::vector<const uint8_t*> g_images;  // given to host objects, in turn
std::set<std::string> g_lacking;       // metrics that cannot be configured

struct Scene {
  Scene() {
    g_host_objects = g_ended = 0;
    g_images.clear();
    g_lacking.clear();
    g_held_up = false;
    gpu.edge.cupti.ProfilerHostInitialize = [](CUpti_Profiler_Host_Initialize_Params* p) {
      ++g_host_objects;
      g_images.push_back(p->pCounterAvailabilityImage);
      while (g_held_up) std::this_thread::sleep_for(1ms);
      p->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(uintptr_t{1});
      return CUPTI_SUCCESS;
    };
    gpu.edge.cupti.ProfilerHostConfigAddMetrics =
        [](CUpti_Profiler_Host_ConfigAddMetrics_Params* p) {
          for (size_t i = 0; i < p->numMetrics; ++i)
            if (g_lacking.contains(p->ppMetricNames[i])) return CUPTI_ERROR_INVALID_PARAMETER;
          return CUPTI_SUCCESS;
        };
    gpu.edge.cupti.ProfilerHostDeinitialize = [](CUpti_Profiler_Host_Deinitialize_Params*) {
      return ++g_ended, CUPTI_SUCCESS;
    };
  }
  ~Scene() { stopped = stopped || planner.stop(); }

  PlayedGpu gpu;
  Planner planner{gpu.edge};
  bool stopped = false;
};

}  // namespace

TEST_CASE("a plan is made once for all devices of a chip") {
  Scene scene;
  CHECK(scene.planner.plan(0) == nullptr);
  scene.planner.device_seen(0);
  scene.planner.wait(0, 20'000);
  REQUIRE(scene.planner.plan(0) != nullptr);
  const uint32_t made = g_host_objects;
  CHECK(made >= scene.planner.plan(0)->groups.size());
  scene.planner.device_seen(1);
  scene.planner.device_seen(0);
  scene.planner.wait(1, 20'000);
  REQUIRE(scene.planner.plan(1) != nullptr);
  CHECK(g_host_objects == made);
  CHECK(scene.planner.plan(1)->groups.data() == scene.planner.plan(0)->groups.data());
}

TEST_CASE("devices of a chip that have other counters have plans of their own") {
  Scene scene;
  std::vector<uint32_t> asked;
  scene.planner.set_availability([&](uint32_t ordinal) {
    asked.push_back(ordinal);
    return ordinal == 0 ? std::vector<uint8_t>() : std::vector<uint8_t>{uint8_t{7}, 8, 9};
  });
  for (uint32_t ordinal = 0; ordinal < 3; ++ordinal) {
    scene.planner.device_seen(ordinal);
    scene.planner.wait(ordinal, 20'000);
    REQUIRE(scene.planner.plan(ordinal) != nullptr);
  }
  CHECK(asked == std::vector<uint32_t>{0, 1, 2});
  const auto groups_of = [&](uint32_t ordinal) {
    return scene.planner.plan(ordinal)->groups.data();
  };
  CHECK(groups_of(0) != groups_of(1));
  CHECK(groups_of(1) == groups_of(2));
  REQUIRE(g_images.size() == 2 * scene.planner.plan(0)->groups.size());
  for (size_t i = 0; i < g_images.size(); ++i) {
    if (i < g_images.size() / 2) {
      CHECK(g_images[i] == nullptr);
    } else {
      REQUIRE(g_images[i] != nullptr);  // there still, as long as the host objects are
      CHECK((g_images[i][0] == 7 && g_images[i][2] == 9));
    }
  }
}

TEST_CASE("of optional metrics those that cannot be read leave their group, and it says so") {
  using Names = std::vector<std::string>;
  const auto lacking = GENERATE(Names{"dram__bytes_read.sum"},
                                Names{"dram__bytes_read.sum", "dram__bytes_write.sum"});
  Scene scene;
  g_lacking = {lacking.begin(), lacking.end()};
  scene.planner.device_seen(0);
  scene.planner.wait(0, 20'000);
  REQUIRE(scene.planner.plan(0) != nullptr);
  Names expected = metric_plan_for("GH100").front().metrics;
  std::erase_if(expected, [](const std::string& metric) { return g_lacking.contains(metric); });
  const MetricGroupPlan& screening = scene.planner.plan(0)->groups.front()->plan;
  CHECK(screening.name == "screening");
  CHECK(screening.metrics == expected);
  scene.stopped = scene.planner.stop();
  const std::string trace = scene.gpu.trace();
  CHECK(trace.find("counters.lacking") != std::string::npos);
  CHECK(trace.find("without " + lacking.front()) != std::string::npos);
  CHECK(trace.find("metric group screening cannot be measured") == std::string::npos);
}

TEST_CASE("a device that CUPTI does not support has no plan, and waiting for it ends") {
  Scene scene;
  scene.gpu.edge.cupti.ProfilerDeviceSupported = [](CUpti_Profiler_DeviceSupported_Params* p) {
    return p->isSupported = CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED, CUPTI_SUCCESS;
  };
  scene.planner.device_seen(0);
  scene.planner.wait(0, 20'000);
  CHECK(scene.planner.plan(0) == nullptr);
  scene.planner.device_seen(Planner::kMostDevices);
  scene.planner.wait(Planner::kMostDevices, 20'000);
  CHECK(scene.planner.plan(Planner::kMostDevices) == nullptr);
}

TEST_CASE("groups of several passes are read only where kernels are replayed") {
  const bool replayed = GENERATE(false, true);
  Scene scene;
  if (replayed) scene.gpu.edge.settings.mode = Mode::kFull;
  scene.gpu.edge.cupti.ProfilerHostGetNumOfPasses =
      [](CUpti_Profiler_Host_GetNumOfPasses_Params* p) {
        return p->numOfPasses = 2, CUPTI_SUCCESS;
      };
  scene.planner.device_seen(0);
  scene.planner.wait(0, 20'000);
  CHECK((scene.planner.plan(0) != nullptr) == replayed);
  scene.stopped = scene.planner.stop();
  CHECK((scene.gpu.trace().find("it needs 2 passes") == std::string::npos) == replayed);
}

TEST_CASE("every host object that a plan has made ends with it") {
  const bool replayed = GENERATE(false, true), known = GENERATE(false, true);
  CAPTURE(replayed, known);
  {
    Scene scene;
    if (replayed) scene.gpu.edge.settings.mode = Mode::kFull;
    if (!known) {  // its plan is worked out from the metrics that CUPTI names
      scene.gpu.edge.cupti.DeviceGetChipName = [](CUpti_Device_GetChipName_Params* p) {
        return p->pChipName = "GX999", CUPTI_SUCCESS;
      };
      scene.gpu.edge.cupti.ProfilerHostGetBaseMetrics =
          [](CUpti_Profiler_Host_GetBaseMetrics_Params* p) {
            static const char* names[] = {
                "gpu__time_duration", "sm__inst_executed_pipe_tensor_op_hmma",
                "sm__ops_path_tensor_src_bf16_dst_fp32", "sm__ops_path_tensor_src_fp16_dst_fp32"};
            p->ppMetricNames = names;
            return p->numMetrics = std::size(names), CUPTI_SUCCESS;
          };
    }
    scene.planner.device_seen(0);
    scene.planner.device_seen(1);
    scene.planner.wait(0, 20'000);
    scene.planner.wait(1, 20'000);
    CHECK(scene.planner.plan(1) != nullptr);
  }
  CHECK(g_host_objects.load() > 0);
  CHECK(g_ended.load() == g_host_objects.load());
}

TEST_CASE("waiting for a plan has a limit") {
  Scene scene;
  g_held_up = true;
  scene.planner.device_seen(0);
  scene.planner.wait(0, 1);
  CHECK(scene.planner.plan(0) == nullptr);
  g_held_up = false;
  scene.planner.wait(0, 20'000);
  CHECK(scene.planner.plan(0) != nullptr);
}

TEST_CASE("visits come again until there is no reason, and at once where there is a hurry") {
  Scene scene;
  std::atomic<int> visits{0};
  scene.planner.set_visit([&] { return ++visits < 3; });
  scene.planner.device_seen(0);
  scene.planner.wait(0, 20'000);
  CHECK(visits == 0);
  scene.planner.visit_now();
  const auto give_up = std::chrono::steady_clock::now() + 10s;
  while (visits < 3 && std::chrono::steady_clock::now() < give_up) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(200ms);
  CHECK(visits == 3);
}

TEST_CASE("the thread ends when it is told to, and makes no plan afterwards") {
  Scene scene;
  scene.planner.device_seen(0);
  scene.planner.wait(0, 20'000);
  scene.stopped = scene.planner.stop();
  CHECK(scene.stopped);
  scene.planner.device_seen(1);
  CHECK(scene.planner.plan(1) == nullptr);
}

TEST_CASE("the thread answers as soon as it is asked, and nobody waits for it too long") {
  Scene scene;
  std::atomic<uint32_t> answered{0};
  std::atomic<std::thread::id> by;
  scene.planner.set_answer([&] {
    by = std::this_thread::get_id();
    ++answered;
  });
  CHECK_FALSE(scene.planner.ask(20s));  // there is no thread yet
  scene.planner.device_seen(0);
  scene.planner.wait(0, 20'000);
  for (uint32_t i = 1; i <= 3; ++i) {
    CHECK(scene.planner.ask(20s));
    CHECK(answered == i);
  }
  CHECK(by.load() != std::this_thread::get_id());
  g_held_up = true;
  scene.gpu.edge.cupti.DeviceGetChipName = [](CUpti_Device_GetChipName_Params* p) {
    return p->pChipName = "GA100", CUPTI_SUCCESS;  // another plan, which takes long
  };
  const uint32_t made = g_host_objects;
  scene.planner.device_seen(1);
  while (g_host_objects == made) std::this_thread::sleep_for(1ms);
  CHECK_FALSE(scene.planner.ask(5ms));
  CHECK(answered == 3);
  g_held_up = false;
  scene.planner.wait(1, 20'000);
  CHECK(scene.planner.ask(20s));
  scene.stopped = scene.planner.stop();
  CHECK_FALSE(scene.planner.ask(20s));
}

TEST_CASE("a thread that waits for something else answers meanwhile, and ends") {
  Scene scene;
  std::atomic<uint32_t> answered{0};
  std::atomic<bool> goes_on{true};
  scene.planner.set_answer([&] { ++answered; });
  scene.planner.set_availability([&](uint32_t) {
    bool waits = true;
    while (waits) waits = scene.planner.pause(20s);
    goes_on = false;
    return std::vector<uint8_t>();
  });
  scene.planner.device_seen(0);
  for (uint32_t i = 1; i <= 3; ++i) {
    CHECK(scene.planner.ask(20s));
    CHECK(answered == i);
  }
  CHECK(goes_on);
  scene.stopped = scene.planner.stop();
  CHECK(scene.stopped);
  CHECK_FALSE(goes_on);
}
