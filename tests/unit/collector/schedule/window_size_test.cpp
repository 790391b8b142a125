// How many launches windows hold, against CUPTIs that count other ranges.
#include <collector/schedule/window_size.h>

#include "catch.h"

using namespace flopinj;
using Verdict = WindowSize::Verdict;

namespace {

constexpr uint32_t kFull = 512;

}  // namespace

TEST_CASE("the first window is small; behind one that disagrees 8, 64, ... hold one launch") {
  WindowSize size(kFull);
  CHECK(size.most_rows() == WindowSize::kFirst);
  size.agreed();
  std::string news;
  for (const uint32_t singles : {8U, 64U, 512U}) {
    REQUIRE(size.most_rows() == kFull);
    CHECK(size.disagreed(12, news) == Verdict::kAgain);
    CHECK(news == "the next " + std::to_string(singles) + " windows hold one launch each");
    for (uint32_t i = 0; i < singles; ++i) {
      REQUIRE(size.most_rows() == 1);
      size.agreed();
    }
  }
  CHECK(size.most_rows() == kFull);
}

TEST_CASE("a window of one launch that disagrees is held against its kernel") {
  WindowSize size(kFull);
  std::string news;
  size.agreed();
  CHECK(size.disagreed(1, news) == Verdict::kBlame);
  CHECK(size.most_rows() == kFull);
  CHECK(news.empty());
}

TEST_CASE("three windows one after another that disagree end measuring, others do not") {
  WindowSize size(kFull);
  std::string news;
  for (int i = 0; i < 20; ++i) {
    CHECK(size.disagreed(1, news) == Verdict::kBlame);
    CHECK(size.disagreed(1, news) == Verdict::kBlame);
    size.agreed();
  }
  CHECK(size.disagreed(12, news) == Verdict::kAgain);
  CHECK(size.disagreed(1, news) == Verdict::kBlame);
  CHECK(size.disagreed(1, news) == Verdict::kEnd);
}
