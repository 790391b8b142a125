#include "support/packed_rows.h"

#include <array>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "catch.h"
#include "support/packed_lists.h"

using flopinj::reduce::kU128Max;
using flopinj::reduce::PackedLists;
using flopinj::reduce::PackedRows;
using flopinj::reduce::u128;

namespace {

struct PackedInner {
  std::optional<uint64_t> maybe;
  bool flag = false;

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.maybe, of.flag);
  }
  bool operator==(const PackedInner&) const = default;
};
struct PackedOuter {
  uint64_t number = 0;
  u128 large = 0;
  std::string text;
  std::array<uint32_t, 3> list{};
  PackedInner inner;

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.number, of.large, of.text, of.list, of.inner);
  }
  bool operator==(const PackedOuter&) const = default;
};

struct OfDevice {
  uint32_t device = 0;
  uint64_t sum = 0;

  template <typename Self>
  static auto packed(Self& of) {
    return std::tie(of.device, of.sum);
  }
};

std::vector<PackedOuter> random_rows(size_t count) {
  std::mt19937_64 random(1);
  const auto number = [&] { return random() >> random() % 64; };
  std::vector<PackedOuter> rows(count);
  for (PackedOuter& row : rows) {
    row.number = number();
    row.large = u128{number()} << random() % 65;
    row.text = std::string(random() % 3, 'x');
    for (uint32_t& one : row.list) one = static_cast<uint32_t>(number());
    if (random() % 2 == 0) row.inner.maybe = number();
    row.inner.flag = random() % 2 == 0;
  }
  if (count > 0) rows[count / 2].large = kU128Max, rows[count / 2].number = UINT64_MAX;
  return rows;
}

}  // namespace

TEST_CASE("packed rows are those that were added, from the first or from any other on") {
  for (const size_t count : {0, 1, 2, 20'000}) {
    const std::vector<PackedOuter> rows = random_rows(count);
    PackedRows<PackedOuter> packed;
    std::vector<PackedRows<PackedOuter>::Place> places;
    for (const PackedOuter& row : rows) {
      places.push_back(packed.next_place());
      packed.push_back(row);
    }
    packed.shrink_to_fit();
    CHECK(packed.size() == count);
    CHECK(packed.empty() == (count == 0));
    std::vector<PackedOuter> read;
    for (const PackedOuter& row : packed) read.push_back(row);
    CHECK(read == rows);
    for (size_t i = 0; i < count; i += 37) CHECK(*packed.from(places[i], 1) == rows[i]);
  }
}

// Against a map of all sums.
TEST_CASE("packed lists have each device's sum once, in order, whoever added what") {
  std::mt19937_64 random(3);
  std::array<PackedLists<uint32_t, OfDevice>, 3> lists;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> expected;
  for (uint32_t i = 0; i < 3000; ++i) {
    const auto key = static_cast<uint32_t>(random() % 7);
    // One of them in order, as ranks are read by one thread, and each device of it once.
    const bool in_order = key == 3;
    const uint32_t device = in_order ? i : static_cast<uint32_t>(random() % 200);
    const uint64_t sum = random() >> random() % 64 >> 12;
    lists[in_order ? 0 : random() % lists.size()].add(key, {device, sum});
    expected[{key, device}] += sum;
  }
  const auto add = [](OfDevice& row, const OfDevice& next) { row.sum += next.sum; };
  auto& all = lists[0];
  all.add(lists[1]);
  all.add(lists[2]);
  CHECK(lists[1].size() == 0);
  all.put_in_order(5, add);
  all.put_in_order(add);
  CHECK(all.size() == expected.size());
  auto next = expected.begin();
  all.for_each([&](uint32_t key, const OfDevice& row) {
    REQUIRE(next != expected.end());
    CHECK(next->first == std::pair(key, row.device));
    CHECK(next++->second == row.sum);
  });
  CHECK(next == expected.end());
  OfDevice row;
  auto of_key = all.rows(6);
  for (auto of = expected.lower_bound({6, 0}); of != expected.end(); ++of) {
    REQUIRE(of_key.next(row));
    CHECK(row.device == of->first.second);
  }
  CHECK_FALSE(of_key.next(row));
  CHECK_FALSE(all.rows(9).next(row));
  std::vector<uint32_t> keys;
  all.for_each_key([&](uint32_t key) { keys.push_back(key); });
  CHECK(keys == std::vector<uint32_t>{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("packed rows that are read no more are forgotten, and the others stay") {
  PackedRows<OfDevice> rows;
  std::vector<PackedRows<OfDevice>::Place> places;
  for (uint32_t i = 0; i < 100'000; ++i) {
    places.push_back(rows.next_place());
    rows.push_back({i, i});
  }
  REQUIRE(places.back().chunk > 2);
  rows.forget_before(places[70'000]);
  CHECK(rows.from(places[70'000], 1)->device == 70'000);
  CHECK(rows.from(places.back(), 1)->device == 99'999);
}
