#include "support/few_list.h"

#include <random>
#include <vector>

#include "catch.h"

using flopinj::reduce::FewList;

TEST_CASE("a list of few elements is the list that it stands for, however many there are") {
  std::mt19937 random(1);
  FewList<uint32_t, 2> few;
  std::vector<uint32_t> all;
  for (int step = 0; step < 10'000; ++step) {
    const uint32_t value = random() % 8;
    switch (random() % 8) {
      case 0:
        few.erase_if([&](uint32_t x) { return x == value; });
        std::erase(all, value);
        break;
      case 1:
        if (!all.empty()) few.pop_front(), all.erase(all.begin());
        break;
      case 2:
        if (all.size() > 12) few.clear(), all.clear();
        break;
      default:
        few.push_back(value);
        all.push_back(value);
    }
    REQUIRE(std::vector<uint32_t>(few.begin(), few.end()) == all);
    REQUIRE(few.empty() == all.empty());
    if (all.empty()) continue;
    REQUIRE(few.front() == all.front());
    REQUIRE(few.back() == all.back());
    FewList<uint32_t, 2> same;
    for (const uint32_t x : all) same.push_back(x);
    REQUIRE(same == few);
    std::swap(same, few);
    REQUIRE(std::vector<uint32_t>(few.begin(), few.end()) == all);
  }
}
