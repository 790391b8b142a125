#include "support/packed_rows.h"

#include <random>
#include <vector>

#include "catch.h"

using flopinj::reduce::kU128Max;
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
