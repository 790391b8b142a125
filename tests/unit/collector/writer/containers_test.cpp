// The writer's containers against those of the C++ library, under drawn operations.
#include <collector/writer/flat_table.h>
#include <collector/writer/ring_queue.h>

#include <deque>
#include <random>
#include <unordered_map>

#include "catch.h"

using namespace flopinj;

TEST_CASE("a flat table holds what an unordered_map holds") {
  std::mt19937 chance(7);
  // Few keys, so that one comes again; many, so that the table grows; correlation 0 is a key, too.
  for (const uint32_t keys : {3U, 40U, 3'000U, 40'000U}) {
    FlatTable<uint64_t> table;
    std::unordered_map<CorrelationKey, uint64_t, CorrelationHash> expected;
    for (uint64_t step = 0; step < 60'000; ++step) {
      // It grows for a while, and shrinks for a while.
      const bool growing = step % 20'000 < 12'000;
      const CorrelationKey key{static_cast<uint32_t>(chance()) % keys, chance() % 2};
      if (chance() % 10 < (growing ? 7U : 2U)) {
        const auto [entry, is_new] = table.insert(key, step);
        const auto [at, inserted] = expected.try_emplace(key, step);
        REQUIRE(is_new == inserted);
        REQUIRE(entry->value == at->second);
        REQUIRE(entry->key() == key);
      } else {
        auto* const entry = table.find(key);
        const auto at = expected.find(key);
        REQUIRE((entry != nullptr) == (at != expected.end()));
        if (entry == nullptr) continue;
        REQUIRE(entry->value == at->second);
        table.erase(entry);
        expected.erase(at);
      }
      REQUIRE(table.size() == expected.size());
    }
    for (const auto& [key, value] : expected) {
      auto* const entry = table.find(key);
      REQUIRE(entry != nullptr);
      REQUIRE(entry->value == value);
      table.erase(entry);
    }
    CHECK(table.empty());
  }
}

TEST_CASE("a ring queue holds what a deque holds, and its elements keep their numbers") {
  std::mt19937 chance(11);
  RingQueue<uint64_t> queue;
  std::deque<uint64_t> expected;
  uint64_t begun = 0, made = 0;
  for (uint64_t step = 0; step < 200'000; ++step) {
    const bool growing = step % 50'000 < 30'000;
    if (chance() % 10 < (growing ? 7U : 3U)) {
      const auto [element, number] = queue.push_back();
      REQUIRE(*element == 0);  // of an element that was there before, nothing is left
      REQUIRE(number == made++);
      *element = step;
      expected.push_back(step);
    } else if (!expected.empty()) {
      REQUIRE(queue.front() == expected.front());
      queue.pop_front();
      expected.pop_front();
      ++begun;
    }
    REQUIRE(queue.size() == expected.size());
    if (expected.empty()) continue;
    const uint64_t any = chance() % expected.size();
    REQUIRE(queue[begun + any] == expected[any]);
  }
}
