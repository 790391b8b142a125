// Every state of a device's windows that two launching threads, the planner's thread and CUPTI can
// bring about, in any order: two contexts, one capture, one call that leaves waiting work, each
// command answered in each way that there is, each wait ended by its deadline or by a change.
//
// All of it at once is 5.8 million states, and takes most of a minute (test case "[.whole]", which
// runs only by its name). Each run visits it in three parts, where a part lacks what is in another.
#include <collector/schedule/window_machine.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "catch.h"

using namespace flopinj;
using M = WindowMachine;
using Event = M::Event;
using Command = M::Command;
using Fact = M::Fact;

namespace {

constexpr size_t kContexts = 2, kThreads = 3, kPlanner = 2;

// What a thread is about to do.
enum class At : uint8_t { kRest, kLook, kOutside, kStep, kHolds, kCommand, kInside, kMade };
enum class Call : uint8_t { kNone, kLaunch, kCapture, kWait, kOther, kDestroy };

struct Bounds {
  size_t contexts;
  bool capture, wait;  // there is one
  bool refuses;  // CUPTI refuses a thread of ours to stop a window, or to disable the profiler
};

struct Thread {
  At at = At::kRest;
  Call call = Call::kNone;
  uint8_t context = 0;
  Event event = Event::kEnter;
  uint32_t facts = 0;
  Command command = Command::kPass;
  bool announced = false, looked = false, decided = false, late = false;
  uint8_t steps = 0;
};

struct Cupti {
  bool enabled = false, started = false;
  bool foreign = false;  // a launch was made in the window that is no row of it
  bool trial = false;    // its counters are not read
};

struct World {
  M machine;
  Thread threads[kThreads];
  Cupti cupti[kContexts];
  bool capture = false, captured = false;  // begins, or goes on; goes on
  bool wait = false, waiting = false;      // the same, of work on context 0
  bool ended = false, finished = false;

  explicit World(std::span<const M::Row> table) : machine(table) {
    for (size_t i = 0; i < kContexts; ++i) machine.add();
  }
  // The two launching threads are alike: one of two states that differ in their names is enough.
  std::string key() const { return std::min(key(0, 1), key(1, 0)); }
  std::string key(size_t first, size_t second) const {
    std::string key;
    const auto add = [&](auto value) { key += static_cast<char>(value); };
    const auto named = [&](uintptr_t owner) {
      return owner == first + 1 ? 1U : owner == second + 1 ? 2U : static_cast<unsigned>(owner);
    };
    for (const M::Context& c : machine.contexts) add(c.phase), add(named(c.owner)), add(c.spoiled);
    add(machine.lease), add(machine.holder), add(machine.wanted_by);
    add(machine.paused | machine.owed << 1 | machine.gives_here << 2 | machine.not_outside << 3 |
        machine.not_given_outside << 4);
    for (const size_t i : {first, second, kPlanner}) {
      const Thread& t = threads[i];
      add(t.at), add(t.call), add(t.context), add(t.event), add(t.command);
      add(t.facts), add(t.facts >> 8);
      add(t.announced | t.looked << 1 | t.decided << 2 | t.late << 3), add(t.steps);
    }
    for (const Cupti& c : cupti) add(c.enabled | c.started << 1 | c.foreign << 2 | c.trial << 3);
    add(capture | captured << 1 | wait << 2 | waiting << 3 | ended << 4 | finished << 5);
    return key;
  }
};

class Explorer {
 public:
  Explorer(std::span<const M::Row> table, Bounds bounds) : bounds_(bounds) { visit(World(table)); }

  // Until there is no state left, or one that must not be.
  void run() {
    while (!queue_.empty() && wrong.empty()) {
      const World world = std::move(queue_.front());
      queue_.pop_front();
      const size_t before = edges_;
      for (size_t t = 0; t < kThreads && wrong.empty(); ++t) moves(world, t);
      if (wrong.empty() && edges_ == before && !world.finished) wrong = "nothing goes on";
    }
  }
  size_t states() const { return seen_.size(); }

  std::string wrong;  // what was found

 private:
  void visit(World&& world) {
    ++edges_;
    if (wrong.empty() && seen_.insert(world.key()).second) queue_.push_back(std::move(world));
  }
  void fails(const char* how) {
    if (wrong.empty()) wrong = how;
  }
  static uintptr_t name(size_t thread) { return thread + 1; }

  template <class Change>
  void then(const World& world, Change change) {
    World next = world;
    change(next);
    visit(std::move(next));
  }

  void moves(const World& w, size_t t) {
    const Thread& thread = w.threads[t];
    switch (thread.at) {
      case At::kRest:
        return begins(w, t);
      case At::kLook:
        return then(w, [&](World& n) { look(n, t); });
      case At::kOutside:
        return then(w, [&](World& n) { n.threads[t] = {}; });
      case At::kStep:
        return step(w, t);
      case At::kHolds:
        step(w, t);
        if (w.machine.contexts[thread.context].owner == 0) return;  // it is about to be told
        return then(w, [&](World& n) {
          n.machine.step(thread.context, Event::kDeadline, {}, name(t));
          n.threads[t].late = true;
          passed(n, t);
        });
      case At::kCommand:
        return carry_out(w, t);
      case At::kInside:
        for (const M::Facts facts : {M::Facts(), M::Facts(Fact::kLast), M::Facts(Fact::kUntold)})
          then(w, [&](World& n) {
            if (facts.has(Fact::kUntold)) n.cupti[thread.context].foreign = true;
            n.machine.step(thread.context, Event::kLeft, facts, name(t));
            n.threads[t] = {};
          });
        return;
      case At::kMade:
        return then(w, [&](World& n) {
          if (thread.call == Call::kCapture) n.capture = n.captured = false;
          if (thread.call == Call::kWait) n.wait = n.waiting = false;
          n.threads[t] = {};
        });
    }
  }

  void begins(const World& w, size_t t) {
    if (w.finished) return;
    const auto starts = [&](Call call, size_t context, At at, Event event, M::Facts facts = {}) {
      then(w, [&](World& n) {
        Thread& thread = n.threads[t];
        thread.call = call;
        thread.context = static_cast<uint8_t>(context);
        thread.at = at;
        thread.event = event;
        thread.facts = facts.bits;
        thread.announced = call == Call::kLaunch && at == At::kLook;
        n.capture |= call == Call::kCapture;
        n.wait |= call == Call::kWait;
        n.ended |= event == Event::kEnds && t == kPlanner;
        if (at == At::kStep) take_step(n, t);
      });
    };
    for (size_t c = 0; c < bounds_.contexts; ++c) {
      if (t == kPlanner) {
        for (const bool old : {false, true})
          for (const bool due : {false, true}) {
            M::Facts facts = Fact::kOutside;
            facts.set(Fact::kOld, old);
            facts.set(Fact::kDue, due);
            facts.set(Fact::kPauses, due);
            starts(Call::kOther, c, At::kStep, Event::kVisit, facts);
          }
        starts(Call::kOther, c, At::kStep, Event::kTrial, Fact::kOutside);
        starts(Call::kOther, c, At::kStep, Event::kInquiry, Fact::kOutside);
        continue;
      }
      starts(Call::kLaunch, c, At::kLook, Event::kEnter);
      if (w.machine.may_open(c) && !w.ended)
        starts(Call::kLaunch, c, At::kStep, Event::kEnter, Fact::kFirst);
      starts(Call::kOther, c, At::kStep, Event::kWaits);
      starts(Call::kOther, c, At::kStep, Event::kWaited, Fact::kPauses);
      starts(Call::kDestroy, c, At::kStep, Event::kEnds, Fact::kDue);
    }
    if (t == kPlanner) {
      then(w, [](World& n) { n.machine.resume(); });
      return starts(Call::kOther, 0, At::kStep, Event::kEnds, Fact::kOutside);
    }
    if (!w.capture && bounds_.capture) starts(Call::kCapture, 0, At::kLook, Event::kComes);
    if (!w.wait && bounds_.wait) starts(Call::kWait, 0, At::kLook, Event::kComes);
  }

  // At the gate of a context.
  void look(World& n, size_t t) {
    Thread& thread = n.threads[t];
    const M::Gate gate = n.machine.gate(thread.context);
    if (thread.call == Call::kLaunch) {
      const M::Gate least = thread.looked ? M::Gate::kShut : M::Gate::kOnce;
      if (gate < least) return outside(n, thread);
      thread.announced = false;
      thread.facts = thread.looked ? 0 : M::Facts(Fact::kFirst).bits;
      thread.at = At::kStep;
    } else if (gate >= M::Gate::kCalls && gate != M::Gate::kOnce) {
      thread.at = At::kStep;
    } else {
      passed(n, t);
    }
  }

  void outside(World& n, Thread& thread) {
    thread.at = At::kOutside;
    thread.announced = true;
    thread.decided = thread.looked = false;
    thread.event = Event::kEnter;
    thread.facts = 0;
    Cupti& cupti = n.cupti[thread.context];
    if (cupti.started && !cupti.trial) cupti.foreign = true;
  }

  // The thread's call goes on.
  void passed(World& n, size_t t) {
    Thread& thread = n.threads[t];
    thread.steps = 0;
    switch (thread.call) {
      case Call::kLaunch:
        if (thread.late) return outside(n, thread);
        thread.at = thread.decided ? At::kLook : At::kStep;
        thread.announced = thread.decided;
        thread.looked |= thread.decided;
        thread.facts = 0;
        thread.event = Event::kEnter;
        thread.decided = false;
        return;
      case Call::kCapture:
        if (thread.context + 1U < kContexts) {
          ++thread.context;
          thread.at = At::kLook;
          thread.event = Event::kComes;
          return;
        }
        n.captured = true;
        thread.at = At::kMade;
        for (const Cupti& c : n.cupti)
          if (c.started && !thread.late) fails("a window over a capture");
        return;
      case Call::kWait:
        n.waiting = true;
        thread.at = At::kMade;
        if (n.cupti[0].started && !thread.late) fails("a window over waiting work");
        return;
      case Call::kDestroy:
        if (thread.event == Event::kEnds && n.machine.contexts[thread.context].phase != kIdle &&
            !thread.late) {
          thread.at = At::kStep;  // again
          return;
        }
        if (!thread.late) {
          n.machine.forget(thread.context);
          n.cupti[thread.context] = {};
        }
        break;
      case Call::kOther:
        if (thread.event == Event::kEnds && t == kPlanner) {
          const Cupti& c = n.cupti[thread.context];
          if (c.started && !thread.late && !n.machine.not_outside) fails("a window beyond the end");
          if (thread.context + 1U < kContexts) {
            ++thread.context;
            thread.at = At::kStep;
            return;
          }
          n.finished = true;
        }
        break;
      default:
        break;
    }
    n.threads[t] = {};
  }
  static constexpr M::Phase kIdle = M::Phase::kIdle;

  void step(const World& w, size_t t) {
    then(w, [&](World& n) { take_step(n, t); });
  }
  void take_step(World& n, size_t t) {
    Thread& thread = n.threads[t];
    M::Facts facts;
    facts.bits = thread.facts;
    told(n, t, n.machine.step(thread.context, thread.event, facts, name(t)));
  }

  // It will come to an end, or to the deadline of those who wait for it.
  static bool works_on(const World& n, uintptr_t owner, size_t context) {
    if (owner == 0) return false;
    const Thread& thread = n.threads[owner - 1];
    return thread.context == context && (thread.at == At::kInside || thread.at == At::kCommand);
  }

  void told(World& n, size_t t, Command command) {
    Thread& thread = n.threads[t];
    const uintptr_t owner = n.machine.contexts[thread.context].owner;
    if (++thread.steps > 9) fails("a call that does not end");
    thread.command = Command::kPass;
    switch (command) {
      case Command::kPass:
        return passed(n, t);
      case Command::kAskTrial:
        return passed(n, t);
      case Command::kHold:
        thread.at = At::kHolds;
        thread.steps = 0;
        if (!works_on(n, owner, thread.context)) fails("a thread waits for nobody");
        return;
      case Command::kAdmit:
        if (!n.cupti[thread.context].started) fails("a row without a window");
        thread.at = At::kInside;
        thread.steps = 0;
        break;
      default:
        thread.at = At::kCommand;
        thread.command = command;
        thread.decided |= command == Command::kDecide;
    }
    if (owner != name(t)) fails("two threads at one context");
    // Beyond the first step only these matter.
    const bool again = thread.event == Event::kEnds || thread.event == Event::kComes;
    if (!again) thread.event = Event::kEnter;
    M::Facts facts;
    facts.bits = thread.facts;
    if (facts.has(Fact::kFirst)) thread.facts = 0;
    if (facts.has(Fact::kOld)) {
      facts.set(Fact::kOld, false);
      thread.facts = facts.bits;
    }
    if (thread.at == At::kInside) thread.decided = thread.looked = thread.late = false;
  }

  void carry_out(const World& w, size_t t) {
    const Thread& thread = w.threads[t];
    const size_t c = thread.context;
    const Cupti& cupti = w.cupti[c];
    const bool outside = t == kPlanner;
    const auto answers = [&](Event event, const std::function<void(World&)>& change = {}) {
      then(w, [&](World& n) {
        if (change) change(n);
        M::Facts facts;
        facts.bits = thread.facts;
        told(n, t, n.machine.step(c, event, facts, name(t)));
      });
    };
    const bool quiet = !w.capture && !(w.wait && c == 0);
    const bool switches = thread.command == Command::kEnable || thread.command == Command::kStart ||
                          thread.command == Command::kDisable;
    if (switches && thread.event != Event::kEnds && (w.captured || (w.waiting && c == 0))) {
      bool late = false;  // who has made it
      for (const Thread& other : w.threads) late |= other.late;
      if (!late) fails("CUPTI is called beside a capture or waiting work");
    }
    switch (thread.command) {
      case Command::kDecide:
        if (w.machine.contexts[c].phase == M::Phase::kOpen) {
          answers(Event::kFits);
          answers(Event::kEndsWindow);
        } else {
          answers(Event::kPasses);
          if (w.ended) return;
          answers(Event::kOpens);
          answers(Event::kTries);
        }
        return answers(Event::kFails);
      case Command::kScan:
        answers(Event::kBusy);
        for (size_t other = 0; other < kThreads; ++other)
          if (other != t && w.threads[other].announced && w.threads[other].context == c) return;
        if (quiet) answers(Event::kLooked);
        return;
      case Command::kLook:
        return quiet ? answers(Event::kLooked) : answers(Event::kBusy);
      case Command::kEnable:
        for (const Cupti& other : w.cupti)
          if (other.enabled && &other != &cupti) fails("two contexts have a device's counters");
        answers(Event::kEnabled, [&](World& n) { n.cupti[c].enabled = true; });
        answers(Event::kNotEnabled);
        return answers(Event::kFails);
      case Command::kStart:
        if (!cupti.enabled) fails("a window without counters");
        if (cupti.started) fails("a window in a window");
        answers(Event::kStarted, [&](World& n) {
          n.cupti[c].started = true;
          n.cupti[c].trial = n.machine.contexts[c].phase == M::Phase::kTrying;
          n.cupti[c].foreign = false;
          for (const Thread& other : n.threads)
            if (other.at == At::kOutside && other.context == c)
              n.cupti[c].foreign = !n.cupti[c].trial;
        });
        answers(Event::kNotStarted);
        return answers(Event::kFails);
      case Command::kStop: {
        if (!cupti.started) fails("a window is closed that is not open");
        if (cupti.foreign && !w.machine.contexts[c].spoiled)
          fails("a window is read that other launches were in");
        answers(Event::kStopped, [&](World& n) { n.cupti[c] = {true, false, false, false}; });
        // CUPTI may go on with the window then, until the profiler is disabled.
        if (outside && bounds_.refuses && thread.event != Event::kEnds) answers(Event::kNotStopped);
        answers(Event::kLost);
        return answers(Event::kFails);
      }
      case Command::kDisable:
        if (w.machine.lease != M::Lease::kGiving || w.machine.holder != c)
          fails("counters are given back that are not held");
        answers(Event::kDisabled, [&](World& n) { n.cupti[c] = {}; });
        if (outside && !bounds_.refuses) return;
        return answers(Event::kNotDisabled,
                       [&](World& n) { n.cupti[c].started = n.cupti[c].foreign = false; });
      case Command::kInquire:
        return answers(Event::kInquired);
      default:
        return;
    }
  }

  const Bounds bounds_;
  std::deque<World> queue_;
  std::unordered_set<std::string> seen_;
  size_t edges_ = 0;
};

constexpr Bounds kParts[] = {
    {2, true, false, false}, {2, false, true, false}, {1, true, true, true}};

std::string explored(std::span<const M::Row> table, Bounds bounds, size_t& states) {
  Explorer explorer(table, bounds);
  explorer.run();
  states += explorer.states();
  return explorer.wrong;
}

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
  CHECK(explored(M::rows(), {2, true, true, true}, states) == "");
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
  SECTION("a launch that has left its window keeps it") {
    CHECK(found_in([](M::Row& row) {
            const bool here = row.event == Event::kLeft;
            if (here) row.effects.set(M::Effect::kDisown, false);
            return here;
          }) == "a thread waits for nobody");
  }
}
