// Launches and their times, which come by other ways and in any order.
#include <collector/writer/launch_merger.h>

#include <vector>

#include "catch.h"

using namespace flopinj;

namespace {

struct Merged {
  LaunchMerger merger{true, false};
  std::vector<TimedLaunch> out;
  std::vector<TallyRow> late;

  void launch(uint32_t correlation, uint32_t signature, uint32_t flags = 0, uint64_t called = 0) {
    LaunchRecord record;
    record.flags = flags;
    record.called = called;
    record.correlation = correlation;
    record.signature = SignatureId{signature};
    merger.launch({ThreadId{1}, StreamId{1}, DeviceId{1}}, record);
  }
  void time(uint32_t correlation, uint64_t start_ns, uint64_t end_ns) {
    const KernelTime time{correlation, 0, start_ns, end_ns};
    merger.times({&time, 1});
  }
  // What has waited for so many releases goes without a time.
  void release(uint32_t max_age) {
    merger.release(
        max_age, false, [&](const auto&, const TimedLaunch& l) { out.push_back(l); },
        [&](const TallyRow& row) { late.push_back(row); });
  }
};

}  // namespace

TEST_CASE("merger: a kernel may end as it starts, and times that CUPTI does not know are none") {
  Merged merged;
  merged.launch(1, 1);
  merged.launch(2, 2);
  merged.launch(3, 3);
  merged.time(1, 700, 700);
  merged.time(2, 0, 0);
  merged.time(3, 700, 699);
  merged.release(100);
  REQUIRE(merged.out.size() == 3);
  CHECK(merged.out[0].start_ns == 700);
  CHECK(merged.out[0].end_ns == 700);
  for (const size_t i : {1, 2}) CHECK(merged.out[i].start_ns == 0);
  CHECK(merged.merger.unusable() == 2);
}

TEST_CASE("merger: of launches in windows a time from before the launch is none") {
  constexpr uint64_t kCalled = 5'000'000'000;
  const bool told = GENERATE(false, true);  // the call's time, by the user's wish
  const uint32_t flags =
      LaunchRecord::kWindowed | LaunchRecord::kNotBefore | (told ? 0U : LaunchRecord::kCallUntold);
  Merged merged;
  for (uint32_t i = 1; i <= 4; ++i) merged.launch(i, 1, flags, kCalled);
  merged.launch(5, 1, 0, told ? kCalled : 0);
  merged.time(1, kCalled - 1'000'001, kCalled);
  merged.time(2, kCalled - 1'000'000, kCalled);  // within what clocks may be apart
  merged.time(3, 0, 0);
  merged.time(5, 700, 800);
  merged.release(0);                             // the fourth has none yet
  merged.time(4, kCalled - 1'000'001, kCalled);  // nor later
  merged.release(0);
  REQUIRE(merged.out.size() == 5);
  const std::vector<uint64_t> expected{0, kCalled - 1'000'000, 0, 0, 700};
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(merged.out[i].start_ns == expected[i]);
    CHECK(merged.out[i].called_ns == (told ? kCalled : 0));
  }
  CHECK(merged.late.empty());
  CHECK(merged.merger.timeless_in_windows() == 3);
  CHECK(merged.merger.unusable() == 0);
}

TEST_CASE("merger: launches in windows without a time are told where most are, and few others") {
  const uint32_t in_windows = GENERATE(1U, 2U, 3U), others = GENERATE(0U, 1U, 2U);
  Merged merged;
  constexpr uint32_t kInWindow = LaunchRecord::kWindowed | LaunchRecord::kNotBefore;
  for (uint32_t i = 1; i <= 8; ++i) merged.launch(i, 1, i <= 4 ? kInWindow : 0U);
  for (uint32_t i = in_windows + 1; i <= 4; ++i) merged.time(i, 700, 800);
  for (uint32_t i = others + 5; i <= 8; ++i) merged.time(i, 700, 800);
  merged.release(0);
  const bool told = in_windows == 3 && others < 2;
  CHECK(merged.merger.timeless_in_windows() == (told ? 3U : 0U));
  merged.time(1, 700, 800);  // late, and so not without
  CHECK(merged.merger.timeless_in_windows() == 0);
}

TEST_CASE("merger: a time is of the last launch with its id, whether or not the one before waits") {
  const bool waits = GENERATE(false, true);
  Merged merged;
  merged.launch(5, 1);
  if (!waits) merged.release(0);
  merged.launch(5, 2);
  merged.time(5, 700, 800);
  merged.time(5, 700, 800);  // again
  merged.release(100);
  REQUIRE(merged.out.size() == 2);
  CHECK(merged.out[0].signature == SignatureId{1});
  CHECK(merged.out[0].start_ns == 0);
  CHECK(merged.out[1].signature == SignatureId{2});
  CHECK(merged.out[1].start_ns == 700);
  CHECK(merged.late.empty());
  CHECK(merged.merger.duplicates() == 1);
}

TEST_CASE("merger: a time that comes late is added to its launch's row") {
  Merged merged;
  merged.launch(5, 1);
  merged.release(0);
  merged.time(5, 700, 800);
  merged.release(100);
  REQUIRE(merged.late.size() == 1);
  CHECK(merged.late[0].signature == SignatureId{1});
  CHECK(merged.late[0].gpu_time_ns == 100);
}
