#include <collector/ranges/range_path_table.h>

#include <map>
#include <string>
#include <thread>

#include "catch.h"

using namespace flopinj;

namespace {

constexpr auto kThread = RangeKind::kThread;

// The table's definitions, readable.
struct Definitions {
  explicit Definitions(const RangePathTable& table) {
    for (const PathDefinition& p : table.paths_after({})) paths[p.id] = p;
    for (const StringDefinition& s : table.strings_after({})) strings[s.id] = s.value;
  }
  std::string name(PathId path) const {
    const StringId id = paths.at(path).name;
    return id ? strings.at(id) : "";
  }
  std::map<PathId, PathDefinition> paths;
  std::map<StringId, std::string> strings;
};

}  // namespace

TEST_CASE("paths: the same range at the same place is the same path") {
  RangePathTable table;
  const StringId domain = table.intern_string("my domain");
  const PathId a = table.child({}, {}, "a", kThread);
  CHECK(a == table.child({}, {}, "a", kThread));
  CHECK(a != table.child({}, domain, "a", kThread));
  CHECK(a != table.child({}, {}, "a", RangeKind::kProcess));
  CHECK(a != table.child({}, {}, "b", kThread));
  const PathId ab = table.child(a, {}, "b", kThread);
  CHECK(ab != table.child({}, {}, "b", kThread));
  const PathId empty = table.child(a, {}, "", kThread);
  CHECK(empty == table.child(a, {}, "", kThread));

  const Definitions d(table);
  CHECK(d.name(ab) == "b");
  CHECK(d.paths.at(ab).parent == a);
  CHECK(d.paths.at(a).parent == PathId{});
  CHECK(d.name(empty).empty());
  CHECK(d.paths.size() == 6);
  CHECK(d.paths.begin()->first == PathId{1});
  CHECK(table.paths_after(PathId{4}).size() == 2);
  CHECK(table.names_generalised() == 0);
  CHECK(table.ranges_overflowed() == 0);
}

TEST_CASE("strings: one id each; cut at the limit; zero for nothing") {
  RangePathTable table;
  const StringId a = table.intern_string("a");
  CHECK(a == StringId{1});
  CHECK(a == table.intern_string("a"));
  CHECK(table.intern_string("b") == StringId{2});
  CHECK(table.intern_string("") == StringId{});
  const StringId cut = table.intern_string(std::string(kMaxStringBytes + 5, 'x'));
  CHECK(Definitions(table).strings.at(cut).size() == kMaxStringBytes);
  CHECK(cut == table.intern_string(std::string(kMaxStringBytes + 9, 'x')));
  CHECK(table.strings_after(StringId{2}).size() == 1);
}

TEST_CASE("strings: the table is bounded in bytes") {
  RangePathTable table;
  StringId last;
  uint32_t stored = 0;
  for (uint32_t i = 0; i < 2 * kMaxAllStringBytes / kMaxStringBytes; ++i) {
    std::string text = std::to_string(i);
    text.resize(kMaxStringBytes, '.');
    last = table.intern_string(text);
    stored += last ? 1 : 0;
  }
  CHECK_FALSE(last);
  CHECK(stored == kMaxAllStringBytes / kMaxStringBytes);
  // A range whose name finds no room is an overflow range.
  const PathId path = table.child({}, {}, "new", kThread);
  CHECK(Definitions(table).paths.at(path).kind == RangeKind::kOverflow);
  CHECK(table.ranges_overflowed() == 1);
}

TEST_CASE("paths: a name beyond the limit is cut, and counted") {
  RangePathTable table;
  const std::string longest(kMaxNameBytes, 'x');
  const PathId path = table.child({}, {}, longest, kThread);
  CHECK(table.names_cut() == 0);
  CHECK(table.child({}, {}, longest + "y", kThread) == path);
  CHECK(table.child({}, {}, longest + "yz", kThread) == path);
  CHECK(table.names_cut() == 2);
  CHECK(Definitions(table).name(path) == longest);
  // Not as the name that was asked for: who keeps names would ask no more, and nothing be counted.
  CHECK(table.find_or_add_child({}, {}, longest, kThread).name != nullptr);
  CHECK(table.find_or_add_child({}, {}, longest + "y", kThread).name == nullptr);
}

TEST_CASE("paths: all range names together are bounded, and leave room for those of kernels") {
  RangePathTable table;
  constexpr uint64_t kRoom = kMaxAllRangeNameBytes / kMaxNameBytes;
  PathId parent;
  uint64_t added = 0, over = 0;
  for (uint32_t i = 0; i < 2 * kRoom; ++i) {
    if (i % (kMaxChildren / 2) == 0)
      parent = table.child({}, {}, "part " + std::to_string(i), kThread);
    std::string name = std::to_string(i);
    name.resize(kMaxNameBytes, '.');
    const uint64_t before = table.ranges_overflowed();
    table.child(parent, {}, name, kThread);
    ++(table.ranges_overflowed() == before ? added : over);
  }
  uint64_t bytes = 0;
  for (const StringDefinition& s : table.strings_after({})) bytes += s.value.size();
  CHECK(bytes <= kMaxAllRangeNameBytes);
  CHECK(bytes > kMaxAllRangeNameBytes - kMaxNameBytes);
  CHECK(added + over == 2 * kRoom);
  CHECK(added == kRoom - 1);  // the short names take the room of a long one
  CHECK(table.names_cut() == 0);
  // A name that is there already takes no room, in whatever place.
  const PathId again = table.child(PathId{1}, {}, "part 0", kThread);
  CHECK(Definitions(table).name(again) == "part 0");
  CHECK(table.intern_string(std::string(kMaxStringBytes, 'k')));
}

TEST_CASE("paths: past 256 children of one range, names are generalised") {
  RangePathTable table;
  const PathId train = table.child({}, {}, "train", kThread);
  const PathId first = table.child(train, {}, "step 0", kThread);
  for (uint32_t i = 1; i < kMaxChildren; ++i)
    table.child(train, {}, "step " + std::to_string(i), kThread);
  CHECK(table.names_generalised() == 0);
  const PathId pattern = table.child(train, {}, "step 256", kThread);
  CHECK(Definitions(table).name(pattern) == "step #");
  CHECK(pattern == table.child(train, {}, "step 100000", kThread));
  CHECK(table.names_generalised() == 2);
  CHECK(first == table.child(train, {}, "step 0", kThread));  // known ones stay
  const PathId plain = table.child(train, {}, "evaluate", kThread);
  CHECK(Definitions(table).name(plain) == "evaluate");
  CHECK(table.names_generalised() == 2);
  // Elsewhere, also below the pattern, names are kept.
  const PathId below = table.child(pattern, {}, "layer 3", kThread);
  CHECK(Definitions(table).name(below) == "layer 3");
  const size_t before = table.paths_after({}).size();
  for (uint32_t i = 0; i < 10'000; ++i)
    table.child(train, {}, "step " + std::to_string(i), kThread);
  CHECK(table.paths_after({}).size() == before);
}

TEST_CASE("paths: names that no pattern holds together end in the parent's overflow child") {
  RangePathTable table;
  const PathId parent = table.child({}, {}, "requests", kThread);
  PathId last;
  for (uint32_t i = 0; i < 10'000; ++i) {
    std::string name;  // letters only
    for (uint32_t n = i + 26; n > 0; n /= 26) name += static_cast<char>('a' + n % 26);
    last = table.child(parent, {}, name, kThread);
  }
  const Definitions d(table);
  CHECK(d.paths.at(last).kind == RangeKind::kOverflow);
  CHECK(d.paths.at(last).parent == parent);
  CHECK(d.paths.size() == 1 + 2 * kMaxChildren + 1);
  CHECK(table.ranges_overflowed() == 10'000 - 2 * kMaxChildren);
  // The rest of the program is as before.
  const PathId train = table.child({}, {}, "train 1", kThread);
  CHECK(Definitions(table).name(train) == "train 1");
}

TEST_CASE("paths: a full table has one overflow child per chain") {
  RangePathTable table;
  std::vector<PathId> parents;
  for (uint32_t i = 0; i < kMaxPaths; ++i) {
    // 256 children each, breadth first.
    const PathId parent = i < kMaxChildren ? PathId{} : parents[i / kMaxChildren - 1];
    const PathId path = table.child(parent, {}, "r" + std::to_string(i), kThread);
    if (path.value != i + 1) FAIL("path " << path.value << " for range " << i);
    parents.push_back(path);
  }
  CHECK(table.ranges_overflowed() == 0);
  const PathId leaf = parents.back();
  const PathId over = table.child(leaf, {}, "more", kThread);
  CHECK(over.value == kMaxPaths + 1);
  CHECK(over == table.child(leaf, {}, "other", kThread));
  CHECK(over == table.child(over, {}, "below", kThread));
  CHECK(table.child(parents[7], {}, "r2048", kThread) == parents[2'048]);
  const auto added = table.paths_after(PathId{kMaxPaths});
  REQUIRE(added.size() == 1);
  CHECK(added[0].kind == RangeKind::kOverflow);
  CHECK(added[0].parent == leaf);
  CHECK(table.ranges_overflowed() == 3);
}

TEST_CASE("paths: threads that push the same ranges get the same paths") {
  RangePathTable table;
  constexpr uint32_t kThreads = 4;
  std::vector<std::vector<PathId>> seen(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<PathId>& mine : seen)
    threads.emplace_back([&table, &mine] {
      for (uint32_t i = 0; i < 2'000; ++i) {
        const PathId outer =
            table.child({}, {}, "step " + std::to_string(i % 300), RangeKind::kProcess);
        mine.push_back(table.child(outer, {}, "layer " + std::to_string(i % 7), kThread));
        if (i % 100 == 0) table.paths_after({});
      }
    });
  for (std::thread& t : threads) t.join();
  // Which steps came late and were generalised depends on the order; below those that were not, all
  // agree, and the bound holds.
  const Definitions d(table);
  uint32_t roots = 0;
  for (const auto& [id, p] : d.paths) {
    roots += !p.parent;
    if (p.parent) CHECK(p.parent < id);
  }
  CHECK(roots == kMaxChildren + 1);
  for (uint32_t t = 1; t < kThreads; ++t)
    for (size_t i = 0; i < seen[t].size(); ++i)
      if (d.paths.at(seen[t][i]).name != d.paths.at(seen[0][i]).name ||
          d.paths.at(seen[t][i]).parent != d.paths.at(seen[0][i]).parent)
        FAIL("threads disagree at " << i);
}
