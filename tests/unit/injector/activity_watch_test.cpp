#include <injector/activity/activity_watch.h>

#include <vector>

#include "catch.h"

using namespace flopinj;
using Advice = ActivityWatch::Advice;

namespace {
constexpr uint64_t kSecond = 1'000'000'000;
}

TEST_CASE("records that come, however late, and a program that rests are no silence") {
  ActivityWatch watch;
  uint64_t now = kSecond, launches = 0, records = 0;
  for (int i = 0; i < 100; ++i) {
    now += 4 * kSecond;
    launches += 10;
    records += 1;
    CHECK(watch.look(launches, records, now) == Advice::kNothing);
    CHECK(watch.unanswered() == 0);
  }
  for (int i = 0; i < 100; ++i) {  // nothing is launched
    now += 4 * kSecond;
    CHECK(watch.look(launches, records, now) == Advice::kNothing);
  }
}

TEST_CASE(
    "a silence is said once, after 5 s, and records are asked for after 10 s, 20 s more, 40 s "
    "more") {
  ActivityWatch watch;
  uint64_t now = 100 * kSecond, launches = 10;
  CHECK(watch.look(launches, 10, now) == Advice::kNothing);
  int said = 0;
  std::vector<uint64_t> asked;
  for (uint64_t second = 1; second <= 950; ++second) {
    now += kSecond;
    const Advice advice = watch.look(++launches, 10, now);
    if (advice == Advice::kSayIt) {
      ++said;
      CHECK(second == 6);  // the first of these launches was seen after a second
    }
    if (advice == Advice::kAskAgain) asked.push_back(second);
  }
  CHECK(said == 1);
  CHECK(asked == std::vector<uint64_t>{11, 31, 71, 151, 311, 611, 911});
  CHECK(watch.unanswered() == 950);
  CHECK(watch.look(launches, 11, now) == Advice::kNothing);  // one record
  CHECK(watch.unanswered() == 0);
  CHECK(watch.look(launches + 1, 11, now + kSecond) == Advice::kNothing);
  CHECK(watch.look(launches + 1, 11, now + 6 * kSecond) == Advice::kSayIt);  // another silence
  CHECK(watch.look(launches + 1, 11, now + 11 * kSecond) == Advice::kAskAgain);
}

TEST_CASE("a profiler that comes and goes takes 10 s of times each time it comes") {
  ActivityWatch watch;
  uint64_t launches = 0, records = 0, lost = 0;
  bool ours = true;
  for (uint64_t second = 1; second <= 1000; ++second) {
    if (second % 100 == 50) ours = false;
    if (ours)
      ++records;
    else
      ++lost;
    ours = watch.look(++launches, records, second * kSecond) == Advice::kAskAgain || ours;
  }
  CHECK(lost == 10 * 11);  // the first look that finds nothing, and 10 s
}

TEST_CASE("a silence from the first launch on is said, too") {
  ActivityWatch watch;
  CHECK(watch.look(10, 0, kSecond) == Advice::kNothing);
  CHECK(watch.look(20, 0, 7 * kSecond) == Advice::kSayIt);
}
