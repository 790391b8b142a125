// Which kernels ran at once, against the same counted nanosecond by nanosecond, and as a message.
#include "passes/rows/at_once.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "catch.h"
#include "support/effort.h"

using namespace flopinj::reduce;

namespace {

using Rows = std::vector<uint32_t>;  // in order
struct Expected {
  uint64_t ns = 0;
  std::map<uint32_t, double> launches;  // by row
};

std::map<Rows, Expected> by_nanosecond(const std::vector<LaunchInTime>& launches, uint64_t end) {
  std::map<Rows, Expected> sets;
  for (uint64_t ns = 0; ns < end; ++ns) {
    Rows rows;
    std::vector<const LaunchInTime*> running;
    for (const LaunchInTime& launch : launches)
      if (launch.begin_ns <= ns && ns < launch.begin_ns + launch.length_ns) {
        rows.push_back(launch.row);
        running.push_back(&launch);
      }
    if (rows.empty()) continue;
    std::ranges::sort(rows);
    Expected& set = sets[rows];
    ++set.ns;
    for (const LaunchInTime* launch : running)
      set.launches[launch->row] += 1 / static_cast<double>(launch->length_ns);
  }
  return sets;
}

}  // namespace

TEST_CASE("kernels at once: as counted by nanosecond, of launches and of their message") {
  std::mt19937_64 random(1);
  constexpr uint32_t kRows = 4;
  const int rounds = flopinj::test::effort(200, 40);
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    std::vector<LaunchInTime> launches;
    uint64_t begin = 1, end = 0;
    for (int i = 0; i < 12; ++i) {
      begin += random() % 8;
      const uint64_t length = 1 + random() % 12;
      launches.push_back({begin, length, static_cast<uint32_t>(random() % kRows), 0, 0, 0, 0});
      end = std::max(end, begin + length);
    }
    AtOnceLine line;
    line.launches(launches);
    Rows numbers(kRows);  // in the summary, in any order
    std::iota(numbers.begin(), numbers.end(), 0);
    std::ranges::shuffle(numbers, random);
    const auto sums = line.take(numbers, kRows);
    REQUIRE(sums);
    for (LaunchInTime& launch : launches) launch.row = numbers[launch.row];
    auto expected = by_nanosecond(launches, end);
    uint64_t busy_ns = 0, idle_ns = 0;
    for (const AtOnce::Set& set : sums->sets) {
      Rows rows;
      std::map<uint32_t, double> parts;
      for (size_t i = set.begin; i < set.end; ++i) {
        rows.push_back(sums->parts[i].row);
        parts[rows.back()] += std::ldexp(static_cast<double>(sums->parts[i].launches), -32);
      }
      CAPTURE(rows);
      REQUIRE(expected.contains(rows));
      CHECK(set.ns == expected[rows].ns);
      for (const auto& [row, part] : parts)
        CHECK(std::abs(part - expected[rows].launches[row]) < 1e-8);
      busy_ns += set.ns;
      expected.erase(rows);
    }
    CHECK(expected.empty());
    for (const AtOnce::Gap& gap : sums->gaps) idle_ns += gap.ns;
    CHECK(busy_ns + idle_ns == end - launches.front().begin_ns);
    CHECK(sums->ns() == busy_ns + idle_ns);
    CHECK(AtOnce::of(sums->message(1)) == sums);
  }
}

TEST_CASE("kernels at once: past the most sets each counts as if alone, and no time is lost") {
  std::vector<LaunchInTime> launches;
  constexpr uint32_t kRows = AtOnceLine::kMostSets + 10;
  for (uint32_t row = 1; row < kRows; ++row) {  // each beside row 0
    launches.push_back({uint64_t{row} * 100, 20, 0, 0, 0, 0, 0});
    launches.push_back({uint64_t{row} * 100 + 10, 10, row, 0, 0, 0, 0});
  }
  AtOnceLine line;
  line.launches(launches);
  Rows numbers(kRows);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto sums = line.take(numbers, kRows);
  REQUIRE(sums);
  CHECK(sums->spread_ns == (kRows - 1 - AtOnceLine::kMostSets) * 10);
  std::map<uint32_t, uint64_t> of_row;
  for (const AtOnce::Part& part : sums->parts) of_row[part.row] += part.launches;
  CHECK(of_row[0] == (kRows - 1) * AtOnce::kLaunch);
  for (uint32_t row = 1; row < kRows; ++row) CHECK(of_row[row] == AtOnce::kLaunch);
  CHECK(AtOnce::of(sums->message(1)) == sums);
}
