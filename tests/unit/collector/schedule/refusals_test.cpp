// When what CUPTI has refused is tried again.
#include <collector/schedule/refusals.h>

#include "catch.h"

using namespace flopinj;

TEST_CASE("refusals are tried again after 1, 10 and 60 s, then never") {
  Refusals refusals;
  const DeviceId gpu{1};
  constexpr uint64_t kSecond = 1'000'000'000;
  uint64_t now = 5 * kSecond;
  bool waiting = false;
  for (const uint64_t seconds : {1, 10, 60}) {
    const auto answer = refusals.refused(gpu, 2, Refusals::Kind::kUnexplained, now);
    CHECK(answer.pause_ns == seconds * kSecond);
    CHECK(refusals.take_due(now + seconds * kSecond - 1, waiting).empty());
    CHECK(waiting);
    now += seconds * kSecond;
    CHECK(refusals.take_due(now, waiting) == std::vector{std::pair{gpu, 2U}});
    CHECK_FALSE(waiting);
    CHECK(refusals.take_due(now, waiting).empty());
  }
  const auto last = refusals.refused(gpu, 2, Refusals::Kind::kUnexplained, now);
  CHECK((last.attempt == 4 && last.pause_ns == 0));
  CHECK(refusals.refused(gpu, 1, Refusals::Kind::kUnexplained, now).pause_ns == kSecond);
}

TEST_CASE("what others hold, or a shortage of memory, is asked for again every 60 s for ever") {
  Refusals refusals;
  const DeviceId gpu{1};
  std::vector<uint64_t> pauses;
  for (int i = 0; i < 6; ++i)
    pauses.push_back(refusals.refused(gpu, 0, Refusals::Kind::kPassing, 1).pause_ns /
                     1'000'000'000);
  CHECK(pauses == std::vector<uint64_t>{1, 10, 60, 60, 60, 60});
}

TEST_CASE("a group that was measured in between starts anew") {
  Refusals refusals;
  const DeviceId gpu{1};
  for (int i = 0; i < 9; ++i) {
    CHECK(refusals.refused(gpu, 0, Refusals::Kind::kUnexplained, 1).attempt == 1);
    refusals.accepted(gpu, 0);
  }
}
