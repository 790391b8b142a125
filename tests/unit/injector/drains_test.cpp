// How long a launch may wait for work that waits. By the rules in drains.h's head.
#include <injector/counters/access/drains.h>

#include "catch.h"

using flopinj::Drains;

namespace {

constexpr uint64_t kMs = 1'000'000;

// One end that was seen in a call of the program's, behind so many calls that made work.
Drains seen(uint64_t took_ns, int made = 40) {
  Drains drains;
  for (int i = 0; i < made; ++i) drains.made();
  drains.ended_in_call(1'000 * kMs, took_ns);
  return drains;
}

}  // namespace

TEST_CASE("no launch waits where no call of the program's has waited") {
  Drains drains;
  drains.made();
  CHECK(drains.may_wait_ns(1 * kMs) == 0);
  drains.ended(2 * kMs);  // found so by a question
  drains.made();
  CHECK(drains.may_wait_ns(3 * kMs) == 0);
}

TEST_CASE("the first wait is for a quarter of what the program's call took, and has slack") {
  Drains drains = seen(120 * kMs);
  drains.made();
  CHECK(drains.may_wait_ns(1'001 * kMs) == 2 * 30 * kMs + Drains::kLeastNs);
  drains = seen(60'000 * kMs);  // of a host that is a minute ahead
  drains.made();
  CHECK(drains.may_wait_ns(1'001 * kMs) == Drains::kMostWaitNs);
}

TEST_CASE("later waits are for what was seen, for each call that made work") {
  Drains drains = seen(120 * kMs);
  drains.made();
  drains.ended(1'010 * kMs);
  drains.waited(1'010 * kMs, 8 * kMs, false);
  drains.made();
  CHECK(drains.may_wait_ns(1'011 * kMs) == 2 * 8 * kMs + Drains::kLeastNs);
  drains.made();
  CHECK(drains.may_wait_ns(1'011 * kMs) == 2 * 16 * kMs + Drains::kLeastNs);
  for (int i = 0; i < 1'000; ++i) drains.made();  // never more than the host was ahead
  CHECK(drains.may_wait_ns(1'011 * kMs) == 2 * 120 * kMs + Drains::kLeastNs);
}

TEST_CASE("no launch waits long after the last end, nor for what takes long") {
  Drains drains = seen(120 * kMs);
  drains.made();
  CHECK(drains.may_wait_ns(1'000 * kMs + Drains::kStretchNs) != 0);
  CHECK(drains.may_wait_ns(1'001 * kMs + Drains::kStretchNs) == 0);
  drains = seen(10'000 * kMs);
  drains.made();
  drains.ended(1'010 * kMs);
  drains.waited(1'010 * kMs, 900 * kMs, false);
  drains.made();
  CHECK(drains.may_wait_ns(1'020 * kMs) != 0);
  drains.made();
  CHECK(drains.may_wait_ns(1'020 * kMs) == 0);  // 1.8 s
}

TEST_CASE("a wait in vain doubles what is expected, and the pause behind it") {
  Drains drains = seen(20 * kMs);
  uint64_t now = 1'001 * kMs, last_pause = 0, last_wait = 0;
  for (int i = 0; i < 4; ++i) {
    drains.made();
    const uint64_t wait = drains.may_wait_ns(now);
    REQUIRE(wait > last_wait);
    now += wait;
    drains.waited(now, wait, true);
    uint64_t pause = 0;
    for (; pause < 600'000 * kMs; pause += kMs) {  // the program's calls go on seeing ends
      drains.ended(now + pause);
      drains.made();
      if (drains.may_wait_ns(now + pause) != 0) break;
    }
    CHECK(pause >= 16 * wait);
    CHECK(pause >= 2 * last_pause);
    last_pause = pause;
    last_wait = wait;
    now += pause;
    drains.ended(now);
  }
}
