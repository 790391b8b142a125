// The window policy and the refusals, against the behaviours of CUPTI that are thinkable.
#include <collector/schedule/refusals.h>
#include <collector/schedule/window_policy.h>

#include "catch.h"

using namespace flopinj;
using Verdict = WindowPolicy::Verdict;

namespace {

constexpr uint32_t kFull = 512;

// Closes windows as the policy says against a CUPTI whose ranges are readable at some sites only.
// Returns how many windows gave nothing before the first one that did; -1: none ever did.
int windows_lost(CloseSite readable_from, WindowPolicy& policy) {
  std::string news;
  for (int lost = 0; lost < 10; ++lost) {
    const uint32_t rows = policy.most_rows();
    const bool whole = policy.site() >= readable_from;
    if (whole) {
      policy.agreed(CloseCause::kFinished);
      return lost;
    }
    if (policy.disagreed(CloseCause::kFinished, rows, rows - 1, news) == Verdict::kGiveUp)
      return -1;
  }
  return -1;
}

}  // namespace

TEST_CASE("the first window is a trial of three launches, later ones are full") {
  WindowPolicy policy({}, kFull);
  CHECK(policy.site() == CloseSite::kExit);
  CHECK(policy.most_rows() == 3);
  policy.agreed(CloseCause::kFinished);
  CHECK(policy.most_rows() == kFull);
  CHECK(policy.site() == CloseSite::kExit);
}

TEST_CASE("a range that is missing at one site is looked for at the next") {
  for (const auto& [from, lost] :
       {std::pair{CloseSite::kExit, 0}, {CloseSite::kNextEnter, 1}, {CloseSite::kOpener, 2}}) {
    WindowPolicy policy({}, kFull);
    CHECK(windows_lost(from, policy) == lost);
    CHECK(policy.site() == from);
    CHECK(policy.most_rows() == kFull);
  }
}

TEST_CASE("a refusal to close leads to the next site too, and the last one gives up") {
  WindowPolicy policy({}, kFull);
  std::string news;
  CHECK(policy.refused(CloseCause::kFinished, news) == Verdict::kAgain);
  CHECK(news.find("at ENTER of the launch behind them") != std::string::npos);
  CHECK(policy.site() == CloseSite::kNextEnter);
  CHECK(policy.refused(CloseCause::kFinished, news) == Verdict::kAgain);
  CHECK(policy.site() == CloseSite::kOpener);
  CHECK_FALSE(policy.closes_from_outside());
  CHECK(policy.refused(CloseCause::kFinished, news) == Verdict::kGiveUp);
}

TEST_CASE("a site that the user chose is the only one") {
  WindowPolicy policy(parse_close_site("enter"), kFull);
  CHECK(policy.site() == CloseSite::kNextEnter);
  std::string news;
  CHECK(policy.refused(CloseCause::kFinished, news) == Verdict::kGiveUp);
  CHECK(news.empty());
  CHECK(parse_close_site("own") == CloseSite::kOpener);
  CHECK(parse_close_site("exit") == CloseSite::kExit);
  CHECK_FALSE(parse_close_site("somewhere"));
}

TEST_CASE("once a site is proven a refusal is CUPTI's, and does not change it") {
  WindowPolicy policy({}, kFull);
  policy.agreed(CloseCause::kFinished);
  std::string news;
  CHECK(policy.refused(CloseCause::kFinished, news) == Verdict::kBlame);
  CHECK(policy.site() == CloseSite::kExit);
  CHECK(news.empty());
}

TEST_CASE("a window that was closed elsewhere proves nothing of the site") {
  for (const CloseCause cause : {CloseCause::kEarly, CloseCause::kOutside}) {
    WindowPolicy policy({}, kFull);
    policy.agreed(cause);
    CHECK(policy.most_rows() == WindowPolicy::kTrialRows);
    std::string news;
    CHECK(policy.disagreed(CloseCause::kFinished, 3, 2, news) == Verdict::kAgain);
    CHECK(policy.site() == CloseSite::kNextEnter);
  }
}

TEST_CASE("ranges that no launch made: windows of one launch for 8, for 64, for good") {
  WindowPolicy policy({}, kFull);
  policy.agreed(CloseCause::kFinished);
  std::string news;
  for (const uint32_t singles : {8U, 64U}) {
    REQUIRE(policy.most_rows() == kFull);
    CHECK(policy.disagreed(CloseCause::kFinished, 12, 13, news) == Verdict::kAgain);
    for (uint32_t i = 0; i < singles; ++i) {
      REQUIRE(policy.most_rows() == 1);
      policy.agreed(CloseCause::kFinished);
    }
  }
  REQUIRE(policy.most_rows() == kFull);
  CHECK(policy.disagreed(CloseCause::kFinished, 12, 13, news) == Verdict::kAgain);
  for (int i = 0; i < 10'000; ++i) policy.agreed(CloseCause::kFinished);
  CHECK(policy.most_rows() == 1);
}

TEST_CASE("ranges too many in the very first window do not change the site") {
  WindowPolicy policy({}, kFull);
  std::string news;
  CHECK(policy.disagreed(CloseCause::kFinished, 3, 5, news) == Verdict::kAgain);
  CHECK(policy.site() == CloseSite::kExit);
  CHECK(policy.most_rows() == 1);
}

TEST_CASE("a window of one launch that disagrees is held against its kernel") {
  WindowPolicy policy({}, kFull);
  policy.agreed(CloseCause::kFinished);
  std::string news;
  CHECK(policy.disagreed(CloseCause::kFinished, 1, 2, news) == Verdict::kBlame);
  CHECK(policy.most_rows() == kFull);
}

TEST_CASE("a thread from outside that is refused leaves the window to the program's threads") {
  WindowPolicy policy({}, kFull);
  CHECK(policy.closes_from_outside());
  std::string news;
  CHECK(policy.refused(CloseCause::kOutside, news) == Verdict::kLeftOpen);
  CHECK_FALSE(news.empty());
  CHECK_FALSE(policy.closes_from_outside());
  CHECK(policy.site() == CloseSite::kExit);
  news.clear();
  CHECK(policy.refused(CloseCause::kOutside, news) == Verdict::kLeftOpen);
  CHECK(news.empty());
}

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
