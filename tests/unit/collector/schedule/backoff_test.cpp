// When all that was refused or let go of is tried again.
#include <collector/schedule/backoff.h>

#include "catch.h"

using namespace flopinj;

TEST_CASE("refusals are tried again after 1, 10 and 60 s, then never") {
  Backoff backoff;
  const DeviceId gpu{1};
  constexpr uint64_t kSecond = 1'000'000'000;
  uint64_t now = 5 * kSecond;
  bool waiting = false;
  for (const uint64_t seconds : {1, 10, 60}) {
    const auto answer = backoff.pause(gpu, 2, Backoff::Kind::kUnexplained, now);
    CHECK(answer.pause_ns == seconds * kSecond);
    CHECK(backoff.take_due(now + seconds * kSecond - 1, waiting).empty());
    CHECK(waiting);
    now += seconds * kSecond;
    CHECK(backoff.take_due(now, waiting) == std::vector{std::pair{gpu, 2U}});
    CHECK_FALSE(waiting);
    CHECK(backoff.take_due(now, waiting).empty());
  }
  const auto last = backoff.pause(gpu, 2, Backoff::Kind::kUnexplained, now);
  CHECK((last.attempt == 4 && last.pause_ns == 0));
  CHECK(backoff.pause(gpu, 1, Backoff::Kind::kUnexplained, now).pause_ns == kSecond);
}

TEST_CASE("what others hold, or a shortage of memory, is asked for again every 60 s for ever") {
  Backoff backoff;
  const DeviceId gpu{1};
  std::vector<uint64_t> pauses;
  for (int i = 0; i < 6; ++i)
    pauses.push_back(backoff.pause(gpu, 0, Backoff::Kind::kPassing, 1).pause_ns / 1'000'000'000);
  CHECK(pauses == std::vector<uint64_t>{1, 10, 60, 60, 60, 60});
}

TEST_CASE("a group that was measured in between starts anew") {
  Backoff backoff;
  const DeviceId gpu{1};
  for (int i = 0; i < 9; ++i) {
    CHECK(backoff.pause(gpu, 0, Backoff::Kind::kUnexplained, 1).attempt == 1);
    backoff.accepted(gpu, 0);
  }
}

TEST_CASE("a program that wants a window now and then gets the counters less and less often") {
  Backoff backoff;
  const DeviceId gpu{1};
  uint64_t now = Backoff::kSecond;
  bool waiting = false;
  CHECK(backoff.over(gpu, Backoff::kCounters, now));
  for (const uint64_t seconds : {1, 4, 16, 16}) {
    backoff.pause(gpu, Backoff::kCounters, Backoff::Kind::kGivenBack, now);
    now += seconds * Backoff::kSecond;
    CHECK_FALSE(backoff.over(gpu, Backoff::kCounters, now - 1));
    CHECK(backoff.take_due(now - 1, waiting).empty());
    CHECK(waiting);
    CHECK(backoff.over(gpu, Backoff::kCounters, now));
    CHECK(backoff.take_due(now, waiting).empty());  // no group is due
    CHECK_FALSE(waiting);
  }
  backoff.accepted(gpu, Backoff::kCounters);
  CHECK(backoff.pause(gpu, Backoff::kCounters, Backoff::Kind::kGivenBack, now).pause_ns ==
        Backoff::kSecond);
}
