// What two or more launching threads, the planner's thread and CUPTI can do to a device's windows,
// in any order: captures, calls that leave waiting work, refusals, deadlines, no memory; and what
// must never be. One definition for the test that visits every state (window_machine_test.cpp) and
// for the fuzzer that goes further in larger worlds (tests/fuzz/fuzz_windows.cpp).
#pragma once
#include <collector/schedule/window_machine.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>

namespace flopinj::test {

// What a thread is about to do.
enum class At : uint8_t {
  kRest,
  kLook,
  kOutside,
  kStep,
  kHolds,
  kLate,    // it has waited for long, and says that it launches
  kSpoils,  // and then the window
  kCommand,
  kInside,
  kMade
};
enum class Call : uint8_t { kNone, kLaunch, kCloses, kCapture, kWait, kOther, kDestroy };

struct WindowBounds {
  size_t contexts;
  bool capture, wait;  // there is one
  bool refuses;  // CUPTI refuses a thread of ours to stop a window, or to disable the profiler
  bool loads;    // modules
};

struct Thread {
  At at = At::kRest;
  Call call = Call::kNone;
  uint8_t context = 0;
  WindowMachine::Event event = WindowMachine::Event::kEnter;
  uint32_t facts = 0;
  WindowMachine::Command command = WindowMachine::Command::kPass;
  bool announced = false, looked = false, decided = false, late = false;
  uint8_t steps = 0;
};

struct Cupti {
  bool enabled = false, started = false;
  bool foreign = false;  // a launch was made in the window that is no row of it
  bool trial = false;    // its counters are not read
  bool loaded = false;   // a module was, since the window was started
};

// The last thread is the planner's.
template <size_t kContexts, size_t kLaunching>
struct WindowWorld {
  static constexpr size_t kThreads = kLaunching + 1, kPlanner = kLaunching;

  WindowMachine machine;
  Thread threads[kThreads];
  Cupti cupti[kContexts];
  bool capture = false, captured = false;  // begins, or goes on; goes on
  bool wait = false, waiting = false;      // the same, of work on context 0
  bool ended = false, finished = false;

  explicit WindowWorld(std::span<const WindowMachine::Row> table) : machine(table) {
    for (size_t i = 0; i < kContexts; ++i) machine.add();
  }
};

// What may come next in a world: `visit` is called with each world that does. What must not be is
// told in `wrong`.
template <size_t kContexts, size_t kLaunching, class Visit>
class WindowMoves {
  using M = WindowMachine;
  using Event = M::Event;
  using Command = M::Command;
  using Fact = M::Fact;

 public:
  using World = WindowWorld<kContexts, kLaunching>;
  static constexpr size_t kThreads = World::kThreads, kPlanner = World::kPlanner;

  WindowMoves(WindowBounds bounds, Visit visit) : bounds_(bounds), visit_(std::move(visit)) {}

  // By one of the threads: the launching ones, and then the planner's. None: it waits for another.
  void by(const World& w, size_t thread) { moves(w, thread); }
  // By all threads.
  void all(const World& w) {
    const size_t before = moves_;
    for (size_t t = 0; t < kThreads && wrong.empty(); ++t) moves(w, t);
    if (wrong.empty() && moves_ == before && !w.finished) wrong = "nothing goes on";
  }

  std::string wrong;

 private:
  void fails(const char* how) {
    if (wrong.empty()) wrong = how;
  }
  static uintptr_t name(size_t thread) { return thread + 1; }

  template <class Change>
  void then(const World& world, Change change) {
    World next = world;
    change(next);
    ++moves_;
    if (wrong.empty()) visit_(std::move(next));
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
        if (thread.call == Call::kLaunch)
          return then(w, [&](World& n) {
            Thread& late = n.threads[t];
            late.late = late.looked = late.announced = true;
            late.at = At::kLook;
          });
        return then(w, [&](World& n) {
          const bool end = thread.event == Event::kEnds && t == kPlanner;
          n.machine.step(thread.context, end ? Event::kGivesUp : Event::kDeadline, {}, name(t));
          n.threads[t].late = true;
          passed(n, t);
        });
      case At::kLate:
        return then(w, [&](World& n) {
          n.threads[t].announced = true;
          n.threads[t].at = At::kSpoils;
        });
      case At::kSpoils:
        return then(w, [&](World& n) {
          n.machine.step(thread.context, Event::kDeadline, {}, name(t));
          outside(n, n.threads[t]);
        });
      case At::kCommand:
        return carry_out(w, t);
      case At::kInside:
        if (w.cupti[thread.context].loaded && !w.machine.contexts[thread.context].stale)
          fails("a module is loaded in a window that does not know of it");
        then(w, [&](World& n) {  // a window of one launch
          n.threads[t].call = Call::kCloses;
          told(n, t, n.machine.step(thread.context, Event::kEndsWindow, {}, name(t)));
        });
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
      if (bounds_.loads)
        then(w, [&](World& n) {
          n.machine.step(c, Event::kLoads, {}, 0);
          n.cupti[c].loaded = n.cupti[c].started;
        });
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
      thread.at = thread.late ? At::kLate : At::kStep;
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
        thread.decided |= n.machine.contexts[thread.context].over;
        thread.at = thread.decided ? At::kLook : At::kStep;
        thread.announced = thread.decided;
        thread.looked |= thread.decided;
        thread.facts = 0;
        thread.event = Event::kEnter;
        thread.decided = false;
        return;
      case Call::kCloses:
        n.machine.step(thread.context, Event::kLeft, Fact::kLast, name(t));
        break;
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
    facts.set(Fact::kAnywhere, thread.call == Call::kLaunch);
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
        if (thread.call == Call::kLaunch && n.machine.contexts[thread.context].over)
          fails("a launch waits beyond the end");
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
          n.cupti[c].foreign = n.cupti[c].loaded = false;
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
        answers(Event::kStopped, [&](World& n) {
          n.cupti[c] = {true, false, false, false, false};
        });
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

  const WindowBounds bounds_;
  Visit visit_;
  size_t moves_ = 0;
};

}  // namespace flopinj::test
