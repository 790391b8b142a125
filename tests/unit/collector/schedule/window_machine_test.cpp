// Every state of a device's windows that two launching threads, the planner's thread and CUPTI can
// bring about, in any order: two contexts, one capture, one call that leaves waiting work, each
// command answered in each way that there is, each wait ended by its deadline or by a change.
//
// All of it at once is 5.8 million states, and takes most of a minute (test case "[.whole]", which
// runs only by its name). Each run visits it in four parts, where a part lacks what is in another.
#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "catch.h"
#include "unit/collector/schedule/window_world.h"

using namespace flopinj;
using M = WindowMachine;
using Event = M::Event;
using Command = M::Command;
using Fact = M::Fact;

namespace {

using World = test::WindowWorld<2, 2>;
using Bounds = test::WindowBounds;

// What tells one state from another.
struct Key {
  size_t size = 0;
  std::array<uint8_t, 64> bytes{};
  friend auto operator<=>(const Key&, const Key&) = default;
};
struct HashOfKey {
  size_t operator()(const Key& key) const {
    return std::hash<std::string_view>()(
        {reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()});
  }
};

Key key_of(const World& w, size_t first, size_t second) {
  Key key;
  const auto add = [&](auto value) { key.bytes.at(key.size++) = static_cast<uint8_t>(value); };
  const auto named = [&](uintptr_t owner) {
    return owner == first + 1 ? 1U : owner == second + 1 ? 2U : static_cast<unsigned>(owner);
  };
  for (const M::Context& c : w.machine.contexts)
    add(c.phase), add(named(c.owner)), add(c.spoiled | c.stale << 1 | c.over << 2);
  add(w.machine.lease), add(w.machine.holder), add(w.machine.wanted_by);
  add(w.machine.paused | w.machine.owed << 1 | w.machine.gives_here << 2 |
      w.machine.not_outside << 3 | w.machine.not_given_outside << 4);
  for (const size_t i : {first, second, World::kPlanner}) {
    const test::Thread& t = w.threads[i];
    add(t.at), add(t.call), add(t.context), add(t.event), add(t.command);
    add(t.facts), add(t.facts >> 8);
    add(t.announced | t.looked << 1 | t.decided << 2 | t.late << 3), add(t.steps);
  }
  for (const test::Cupti& c : w.cupti)
    add(c.enabled | c.started << 1 | c.foreign << 2 | c.trial << 3 | c.loaded << 4);
  add(w.capture | w.captured << 1 | w.wait << 2 | w.waiting << 3 | w.ended << 4 | w.finished << 5);
  return key;
}

// The two launching threads are alike: one of two states that differ in their names is enough.
Key key_of(const World& w) { return std::min(key_of(w, 0, 1), key_of(w, 1, 0)); }

std::string explored(std::span<const M::Row> table, Bounds bounds, size_t& states) {
  std::deque<World> queue;
  std::unordered_set<Key, HashOfKey> seen;
  const auto visit = [&](World&& world) {
    if (seen.insert(key_of(world)).second) queue.push_back(std::move(world));
  };
  test::WindowMoves<2, 2, decltype(visit)> moves(bounds, visit);
  visit(World(table));
  while (!queue.empty() && moves.wrong.empty()) {
    const World world = std::move(queue.front());
    queue.pop_front();
    moves.all(world);
  }
  states += seen.size();
  return moves.wrong;
}

constexpr Bounds kParts[] = {{2, true, false, false, false},
                             {2, false, true, false, false},
                             {1, true, true, true, false},
                             {1, true, false, true, true}};

// What is found in a table with one row changed.
template <class Change>
std::string found_in(Change change) {
  std::vector<M::Row> table(M::rows().begin(), M::rows().end());
  size_t changed = 0, states = 0;
  for (M::Row& row : table) changed += change(row) ? 1U : 0U;
  REQUIRE(changed > 0);
  std::string wrong;
  for (const Bounds& part : kParts)
    if (wrong.empty()) wrong = explored(table, part, states);
  return wrong;
}

}  // namespace

TEST_CASE("no order of calls and answers leads to a state of windows that must not be") {
  size_t states = 0;
  for (const Bounds& part : kParts) CHECK(explored(M::rows(), part, states) == "");
  std::printf("%zu states of windows\n", states);
  CHECK(states > 500'000);
  CHECK(states < 5'000'000);
}

TEST_CASE("nor does any where all of it comes at once", "[.whole]") {
  size_t states = 0;
  CHECK(explored(M::rows(), {2, true, true, true, true}, states) == "");
  std::printf("%zu states of windows\n", states);
}

TEST_CASE("a fault in the table of windows is found") {
  SECTION("a window is opened without a look at launches that are being made") {
    CHECK(found_in([](M::Row& row) {
            const bool here = row.command == Command::kScan && row.event == Event::kOpens;
            if (here) row.command = Command::kLook;
            return here;
          }) == "a window is read that other launches were in");
  }
  SECTION("a capture goes on beside a window") {
    CHECK(found_in([](M::Row& row) {
            const bool here = row.event == Event::kComes && row.command == Command::kStop;
            if (here)
              row = {row.event,        row.in,          row.need,
                     row.unless,       M::Phase::kIdle, M::LeaseNext::kSame,
                     M::Effect::kStay, Command::kPass};
            return here;
          }) == "a window over a capture");
  }
  SECTION("counters are taken that another context has") {
    CHECK(found_in([](M::Row& row) {
            const bool here = row.event == Event::kOpens && row.need.has(Fact::kLeaseFree);
            if (here) row.need.set(Fact::kLeaseFree, false);
            return here;
          }) != "");
  }
  SECTION("who has waited for long does not spoil the window") {
    CHECK(found_in([](M::Row& row) {
            const bool here = row.event == Event::kDeadline && row.effects.has(M::Effect::kSpoil);
            if (here) row.effects = M::Effect::kStay;
            return here;
          }) == "a window is read that other launches were in");
  }
  SECTION("nor does the end that has waited for long, and lets launches go") {
    CHECK(found_in([](M::Row& row) {
            const bool here = row.event == Event::kGivesUp;
            if (here) row.effects.set(M::Effect::kSpoil, false);
            return here;
          }) == "a window is read that other launches were in");
  }
  SECTION("a launch waits where the end has waited for long") {
    CHECK(found_in([](M::Row& row) {
            const bool here = row.event == Event::kEnter && row.need.has(Fact::kOver);
            if (here) row.command = Command::kHold;
            return here;
          }) == "a launch waits beyond the end");
  }
  SECTION("a launch that has left its window keeps it") {
    CHECK(found_in([](M::Row& row) {
            const bool here = row.event == Event::kLeft;
            if (here) row.effects.set(M::Effect::kDisown, false);
            return here;
          }) == "a thread waits for nobody");
  }
}
