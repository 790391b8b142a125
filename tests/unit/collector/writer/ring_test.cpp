#include <collector/writer/ring.h>

#include <deque>
#include <random>
#include <thread>
#include <vector>

#include "catch.h"

using flopinj::Ring;

TEST_CASE("ring: without memory every push is a counted drop") {
  Ring<int> ring;
  CHECK(ring.wants_memory());
  CHECK_FALSE(ring.push(1));
  CHECK(ring.dropped() == 1);
  CHECK(ring.pushed() == 0);
  CHECK(ring.drain([](int) { FAIL("nothing was pushed"); }) == 0);
}

TEST_CASE("ring: gives back in order, and drops the newest when full") {
  Ring<int> ring;
  REQUIRE(ring.allocate(6));  // rounded up to 8
  for (int i = 0; i < 8; ++i) CHECK(ring.push(i));
  CHECK_FALSE(ring.push(8));
  CHECK(ring.dropped() == 1);
  std::vector<int> seen;
  CHECK(ring.drain([&](int v) { seen.push_back(v); }) == 8);
  CHECK(seen == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(ring.push(9));
  CHECK(ring.pushed() == 9);
}

TEST_CASE("ring: its first records need no memory") {
  Ring<int, 4> ring;
  std::vector<int> seen;
  const auto drain = [&] { ring.drain([&](int v) { seen.push_back(v); }); };
  for (int i = 0; i < 2; ++i) CHECK(ring.push(i));
  drain();
  CHECK_FALSE(ring.wants_memory());
  CHECK(ring.push(2));
  CHECK(ring.wants_memory());
  CHECK(ring.push(3));
  CHECK_FALSE(ring.push(-1));  // no memory was asked for
  CHECK(ring.dropped() == 1);
  REQUIRE(ring.allocate(8));
  CHECK_FALSE(ring.wants_memory());
  for (int i = 4; i < 8; ++i) CHECK(ring.push(i));
  drain();
  for (int i = 8; i < 16; ++i) CHECK(ring.push(i));
  CHECK_FALSE(ring.push(-1));
  drain();
  REQUIRE(seen.size() == 16);
  for (int i = 0; i < 16; ++i) CHECK(seen[static_cast<size_t>(i)] == i);
}

TEST_CASE("ring: behaves as a bounded queue") {
  Ring<uint32_t> ring;
  REQUIRE(ring.allocate(16));
  std::deque<uint32_t> model;
  std::mt19937 random(5);
  uint64_t dropped = 0;
  for (uint32_t i = 0; i < 100'000; ++i) {
    if (random() % 20 != 0) {
      const bool room = model.size() < 16;
      if (room)
        model.push_back(i);
      else
        ++dropped;
      if (ring.push(i) != room) FAIL("push " << i);
    } else {
      ring.drain([&](uint32_t v) {
        if (model.empty() || model.front() != v) FAIL("wrong element at " << i);
        model.pop_front();
      });
      if (!model.empty()) FAIL("elements were left");
    }
  }
  CHECK(ring.dropped() == dropped);
}

TEMPLATE_TEST_CASE_SIG("ring: one thread pushes, one drains; nothing is lost unseen", "",
                       ((uint64_t kFirst), kFirst), 0, 64) {
  struct Record {
    uint64_t a, b, c, d;
  };
  Ring<Record, kFirst> ring;
  constexpr uint64_t kRecords = 200'000;
  uint64_t taken = 0, last = 0, torn = 0;
  std::atomic<bool> done{false};
  std::thread producer([&] {
    ring.allocate(64);
    for (uint64_t i = 1; i <= kRecords; ++i) ring.push({i, ~i, i * 3, i ^ 0x55});
    done = true;
  });
  for (bool last_round = false; !last_round;) {
    last_round = done;
    ring.drain([&](const Record& r) {
      ++taken;
      torn += r.b != ~r.a || r.c != r.a * 3 || r.d != (r.a ^ 0x55) || r.a <= last;
      last = r.a;
    });
  }
  producer.join();
  CHECK(torn == 0);
  CHECK(taken == ring.pushed());
  CHECK(taken + ring.dropped() == kRecords);
}
