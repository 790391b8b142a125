// Activity with a CUPTI that the test plays: when it is called, and with what.
#include <injector/activity/activity.h>
#include <injector/process/this_thread.h>
#include <injector/vendor/kernel_record.h>
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "catch.h"

namespace flopinj {
// The library's is in a file that needs all the rest.
constinit thread_local ThreadSlot this_thread_slot
    __attribute__((tls_model("initial-exec"))) = {nullptr, nullptr, nullptr, 0, false};
bool hand_back_at_end_of_thread() noexcept { return true; }
}  // namespace flopinj

using namespace flopinj;

namespace {

struct Played {
  std::vector<std::string> calls;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  int per_thread = -1;
  std::set<CUpti_ActivityKind> copy_kinds;  // that are enabled
  bool no_copies = false;                   // the kinds are refused
  CUptiResult flush_result = CUPTI_SUCCESS, record_result = CUPTI_ERROR_MAX_LIMIT_REACHED;
  uint64_t now_ns = 1;
};
Played* played = nullptr;

struct Scene {
  explicit Scene(uint32_t version, bool refuses_copies = false, bool no_copies = false)
      : collector({}, {}) {
    played = &cupti;
    cupti.no_copies = refuses_copies;
    edge.settings.no_copies = no_copies;
    edge.collector = &collector;
    edge.cupti.version = version;
    edge.cupti.ActivitySetAttribute = [](CUpti_ActivityAttribute attribute, size_t* size,
                                         void* value) {
      played->calls.emplace_back("set");
      if (attribute == CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER && *size == 1)
        played->per_thread = *static_cast<uint8_t*>(value);
      return CUPTI_SUCCESS;
    };
    edge.cupti.ActivityRegisterCallbacks = [](CUpti_BuffersCallbackRequestFunc requested,
                                              CUpti_BuffersCallbackCompleteFunc completed) {
      played->calls.emplace_back("register");
      played->request = requested;
      played->complete = completed;
      return CUPTI_SUCCESS;
    };
    edge.cupti.ActivityEnable = [](CUpti_ActivityKind kind) {
      if (kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
        if (played->no_copies) return CUPTI_ERROR_INVALID_KIND;
        played->copy_kinds.insert(kind);
        return CUPTI_SUCCESS;
      }
      played->calls.emplace_back("enable");
      return CUPTI_SUCCESS;
    };
    edge.cupti.ActivityDisable = [](CUpti_ActivityKind kind) {
      if (played->copy_kinds.erase(kind) == 0) played->calls.emplace_back("disable");
      return CUPTI_SUCCESS;
    };
    edge.cupti.ActivityFlushAll = [](uint32_t flag) {
      played->calls.emplace_back(flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED ? "flush all" : "flush");
      return played->flush_result;
    };
    edge.cupti.ActivityGetNextRecord = [](uint8_t*, size_t, CUpti_Activity**) {
      played->calls.emplace_back("read");
      return played->record_result;
    };
    edge.cupti.ActivityGetNumDroppedRecords = [](CUcontext, uint32_t, size_t* dropped) {
      *dropped = 3;
      return CUPTI_SUCCESS;
    };
    std::string error;
    buffers.emplace(
        ActivityBuffers::Limits{.buffer_bytes = 4'096, .most_bytes = 4 * 4'096, .kept = 2},
        version >= kFirstVersionThatTakesNoBuffer);
    activity.emplace(edge, *buffers, []() noexcept { return played->now_ns; });
    REQUIRE(activity->start(error));
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  // What CUPTI holds at the end is CUPTI's: this one gives every buffer back.
  ~Scene() {
    played = &cupti;  // not of a later scene, which is gone
    while (!held.empty()) complete();
  }

  bool request() {
    uint8_t* buffer = nullptr;
    size_t size = 0, records = 1;
    cupti.request(&buffer, &size, &records);
    CHECK(records == 0);
    CHECK((size != 0) == (buffer != nullptr));
    if (buffer != nullptr) held.push_back(buffer);
    return buffer != nullptr;
  }
  void complete(size_t valid_bytes = 0) {
    cupti.complete(nullptr, 0, held.back(), 4'096, valid_bytes);
    held.pop_back();
  }

  // The calls that switch records on or off, so far.
  std::vector<std::string> switched() const {
    std::vector<std::string> calls = cupti.calls;
    std::erase_if(calls, [](const std::string& call) { return call == "flush" || call == "read"; });
    return calls;
  }

  Played cupti;
  std::vector<uint8_t*> held;
  Edge edge;
  Collector collector;
  std::optional<ActivityBuffers> buffers;
  std::optional<Activity> activity;
};

// What `act` writes to stderr.
template <class Act>
std::string said(Act&& act) {
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  act();
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  std::string text(4'096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

}  // namespace

TEST_CASE("buffers for each thread are switched off before anything else is asked of CUPTI") {
  const Scene scene(130'001);
  CHECK(scene.cupti.calls == std::vector<std::string>{"set", "register", "enable"});
  CHECK(scene.cupti.per_thread == 0);
}

TEST_CASE("copies between memories and fills are recorded with kernels, where they can be") {
  const std::set<CUpti_ActivityKind> kAll{CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                          CUPTI_ACTIVITY_KIND_MEMSET};
  Scene scene(24);
  CHECK(scene.activity->has_copies());
  CHECK(scene.cupti.copy_kinds == kAll);
  // At the bound they are switched off and on with those of kernels.
  for (int i = 0; i < 7; ++i) REQUIRE(scene.request());
  scene.activity->flush();
  CHECK(scene.cupti.copy_kinds.empty());
  while (!scene.held.empty()) scene.complete();
  scene.activity->flush();
  CHECK(scene.cupti.copy_kinds == kAll);
  scene.activity->stop();
  CHECK(scene.cupti.copy_kinds.empty());

  const Scene refused(24, true);
  CHECK_FALSE(refused.activity->has_copies());
  const Scene unwanted(24, false, true);
  CHECK_FALSE(unwanted.activity->has_copies());
  CHECK(unwanted.cupti.copy_kinds.empty());
}

TEST_CASE("CUPTI 12.6 is never answered null; it is stopped at the bound and goes on after") {
  for (const uint32_t version : {24U, 26U}) {
    Scene scene(version);
    for (int i = 0; i < 7; ++i) REQUIRE(scene.request());
    scene.cupti.calls.clear();
    scene.activity->flush();
    scene.activity->flush();
    CHECK(scene.switched() == std::vector<std::string>{"disable"});  // once
    for (int i = 0; i < 4; ++i) scene.complete();
    scene.activity->flush();
    CHECK(scene.switched().size() == 1);  // not before half of the bound is free
    scene.complete();
    scene.activity->flush();
    scene.activity->flush();
    CHECK(scene.switched() == std::vector<std::string>{"disable", "enable"});
    CHECK(scene.activity->lost() == 5 * 3);  // what CUPTI says it dropped
  }
}

TEST_CASE("CUPTI 12.9 and later gets no buffer past the bound and counts what it drops") {
  for (const uint32_t version : {27U, 130'000U}) {
    Scene scene(version);
    for (int i = 0; i < 4; ++i) REQUIRE(scene.request());
    CHECK_FALSE(scene.request());
    scene.cupti.calls.clear();
    scene.activity->flush();
    CHECK(scene.switched().empty());
  }
}

TEST_CASE("callbacks that another client has taken are taken back after ten seconds of silence") {
  Scene scene(130'000);
  ThreadState* const thread = scene.collector.add_thread(1);
  REQUIRE(thread != nullptr);
  constexpr uint64_t kSecond = 1'000'000'000;
  scene.cupti.calls.clear();
  scene.activity->flush();
  for (int second = 0; second < 25; ++second) {
    scene.collector.record(*thread, DeviceId{1}, {});
    scene.cupti.now_ns += kSecond;
    scene.activity->flush();
    CHECK(scene.switched().empty() == (second < 10));
  }
  CHECK(scene.switched() == std::vector<std::string>{"register", "enable"});
}

TEST_CASE("a recording that ends while the program goes on asks CUPTI for every buffer") {
  Scene scene(130'000);
  scene.cupti.calls.clear();
  scene.activity->end();
  CHECK(scene.cupti.calls == std::vector<std::string>{"disable", "flush all"});
}

// Its records are of launches whose correlation ids CUPTI may give again.
TEST_CASE("what comes in a buffer that was left behind is not read") {
  Scene scene(130'000);
  REQUIRE(scene.request());
  scene.activity->ended(true);
  REQUIRE(scene.request());
  scene.cupti.calls.clear();
  scene.complete(100);
  CHECK(scene.cupti.calls == std::vector<std::string>{"read"});
  scene.complete(100);
  CHECK(scene.cupti.calls.size() == 1);
}

TEST_CASE("each reason why times are missing is said once, also at the end") {
  const auto has = [](const std::string& text, const char* words) {
    return text.find(words) != std::string::npos;
  };
  for (const bool last : {false, true}) {
    Scene scene(130'000);
    const auto flushed = [&] {
      return said([&] {
        if (last) scene.activity->finish();
        scene.activity->flush();
      });
    };
    CHECK(flushed().empty());
    scene.cupti.flush_result = CUPTI_ERROR_UNKNOWN;
    CHECK(has(flushed(), "does not hand out"));
    for (int i = 0; i < 5; ++i) scene.request();
    CHECK(has(flushed(), "than there is memory for"));
    scene.cupti.record_result = CUPTI_ERROR_INVALID_KIND;
    scene.complete(100);
    CHECK(has(flushed(), "could not read itself"));
    CHECK(flushed().empty());
  }
}
