#include <collector/schedule/counter_lease.h>

#include "catch.h"

using namespace flopinj;

namespace {
constexpr uint64_t kSecond = 1'000'000'000;
}

TEST_CASE("counters are given back after two seconds without a window") {
  CounterLease lease;
  CHECK(lease.may_be_taken(0));
  lease.taken(10 * kSecond);
  CHECK_FALSE(lease.idle(12 * kSecond - 1));
  CHECK(lease.idle(12 * kSecond));
  lease.used(15 * kSecond);
  CHECK_FALSE(lease.idle(17 * kSecond - 1));
  CHECK(lease.idle(17 * kSecond));
}

TEST_CASE("a program that wants a window now and then gets the counters less and less often") {
  CounterLease lease;
  uint64_t now = kSecond;
  // 1, 4, 16, 16, ... s without counters, after leases of a moment.
  for (const uint64_t pause : {1, 4, 16, 16}) {
    CHECK(lease.may_be_taken(now));
    lease.taken(now);
    now += 2 * kSecond;
    REQUIRE(lease.idle(now));
    lease.released(now);
    CHECK_FALSE(lease.may_be_taken(now + pause * kSecond - 1));
    now += pause * kSecond;
  }
  lease.taken(now);
  now += CounterLease::kLongNs;
  lease.used(now);  // a long lease
  lease.released(now);
  CHECK_FALSE(lease.may_be_taken(now + kSecond - 1));
  CHECK(lease.may_be_taken(now + kSecond));
}

TEST_CASE("what another client has taken meanwhile is asked for again, for ever") {
  CounterLease lease;
  uint64_t now = kSecond;
  lease.taken(now);
  lease.released(now);
  for (const uint64_t pause : {1, 10, 60, 60}) {
    CHECK(lease.refused(now) == pause * kSecond);
    CHECK_FALSE(lease.may_be_taken(now + pause * kSecond - 1));
    now += pause * kSecond;
    CHECK(lease.may_be_taken(now));
  }
  lease.taken(now);
  CHECK(lease.refused(now) == kSecond);
}
