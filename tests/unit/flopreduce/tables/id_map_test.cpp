#include "tables/id_map.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "catch.h"

using namespace flopinj::reduce;

TEST_CASE("ids: each has its index, with gaps between them, and what cannot be is refused") {
  IdMap ids;
  CHECK(ids.size() == 0);
  CHECK(ids.get(0) == kNoIndex);
  CHECK(ids.get(1) == kNoIndex);
  CHECK(!ids.set(0, 1));
  CHECK(!ids.set(IdMap::kMaxGap + 1, 1));
  std::map<uint32_t, uint32_t> expected;
  std::mt19937_64 random(1);
  for (uint32_t i = 0; i < 2000; ++i) {
    const uint32_t highest = expected.empty() ? 0 : expected.rbegin()->first;
    const uint32_t id = 1 + static_cast<uint32_t>(random() % (highest + IdMap::kMaxGap));
    REQUIRE(ids.set(id, i) == (id <= IdMap::kMaxId));
    if (id <= IdMap::kMaxId) expected[id] = i;
    REQUIRE(ids.size() == expected.rbegin()->first);
  }
  for (uint32_t id = 0; id <= ids.size() + 70; ++id) {
    const auto found = expected.find(id);
    REQUIRE(ids.get(id) == (found != expected.end() ? found->second : kNoIndex));
  }
  while (ids.size() < IdMap::kMaxId)
    REQUIRE(ids.set(std::min(IdMap::kMaxId, ids.size() + IdMap::kMaxGap), 5));
  CHECK(ids.get(IdMap::kMaxId) == 5);
  CHECK(!ids.set(IdMap::kMaxId + 1, 5));
  CHECK(ids.get(UINT32_MAX) == kNoIndex);
  IdMap moved = std::move(ids);
  CHECK(moved.get(IdMap::kMaxId) == 5);
}
