// What becomes of a device's counters, and of the measurement windows of its contexts: a table.
//
// An event and the state of the context that it concerns choose a row (window_machine.cpp). The row
// says the next state and one command, which the caller carries out and answers by another event,
// until the command is one of kPass, kAdmit, kAskTrial. All that decides is here, and nothing here
// calls anything; so a test visits every state that there is (window_machine_test.cpp).
//
// A context has an owner while a launch is inside of its window, or while a thread carries out
// commands for it: no other thread touches the window or the profiler meanwhile. A thread that
// comes is made to wait (kHold) and asks again when the state has changed, or says that it has
// waited for long (kDeadline): then it goes on, and the window is spoiled.
//
// Threads: the caller locks.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace flopinj {

template <class Enum>
struct BitsOf {
  uint32_t bits = 0;
  constexpr BitsOf() = default;
  constexpr BitsOf(Enum one) : bits(1U << static_cast<uint32_t>(one)) {}
  constexpr BitsOf(std::initializer_list<Enum> some) {
    for (const Enum one : some) bits |= 1U << static_cast<uint32_t>(one);
  }
  constexpr bool has(Enum one) const { return (bits >> static_cast<uint32_t>(one) & 1U) != 0; }
  constexpr bool holds(BitsOf others) const { return (bits & others.bits) == others.bits; }
  constexpr bool any(BitsOf others) const { return (bits & others.bits) != 0; }
  constexpr BitsOf operator|(BitsOf other) const {
    BitsOf both;
    both.bits = bits | other.bits;
    return both;
  }
  constexpr void set(Enum one, bool on) {
    bits =
        on ? bits | 1U << static_cast<uint32_t>(one) : bits & ~(1U << static_cast<uint32_t>(one));
  }
  constexpr bool operator==(const BitsOf&) const = default;
};

class WindowMachine {
 public:
  enum class Phase : uint8_t {
    kIdle,
    kChoosing,   // its owner finds out whether a window is wanted
    kSwitching,  // its owner gives the counters back, takes them, or asks CUPTI about them
    kTrying,     // the planner's thread opens a window without launches
    kOpening,
    kOpen,
    kFull,  // open, with all its launches
    kClosing
  };
  // Of the device's counters, and the context that has them.
  enum class Lease : uint8_t { kFree, kTaking, kHeld, kGiving };

  enum class Event : uint8_t {
    kEnter,  // a launch that wants a window, or must come
    // Answers to kDecide
    kPasses,
    kFits,        // the open window
    kEndsWindow,  // it must not be in the open window
    kOpens,
    kTries,  // as kOpens, and a trial comes first
    // A launch has left the window. kLast: the window has all its launches; kUntold: the launch has
    // no row, though it may have run.
    kLeft,
    kComes,    // before a capture, work that waits or a launch on a green context; and at the end
    kWaits,    // ENTER of a call that waits for the GPU
    kWaited,   // its EXIT
    kVisit,    // by the planner's thread; kOld, kDue: of the window, and of the counters
    kTrial,    // the same: a trial was asked for
    kInquiry,  // the same: which counters the device has
    kLoads,    // a module was loaded on the context
    kEnds,     // the context, or measuring; kDue: it does not matter which work is in flight
    kGivesUp,  // the end of measuring: it has waited for long
    kDeadline,
    // What came of a command; of kStop, too: it was refused to a thread of ours, and the window is
    // open still; or it is not known, and the profiler has to be disabled.
    kLooked,
    kBusy,
    kEnabled,
    kNotEnabled,
    kStarted,
    kNotStarted,
    kStopped,
    kNotStopped,
    kLost,
    kDisabled,  // kPauses
    kNotDisabled,
    kInquired,
    kFails  // whatever it was: there is no memory
  };
  enum class Fact : uint8_t {
    kFirst,     // of kEnter: not after another command
    kAnywhere,  // of kEnter: no window is a harm to the launch, nor it to others
    kLast,
    kUntold,
    kOld,
    kDue,
    kOutside,  // by a thread of ours
    kPauses,
    // Of the state; the caller need not give them.
    kFree,       // nobody owns the context
    kMine,       // who asks owns it
    kOver,       // the end has given up waiting for its owner
    kLeaseFree,  // the counters may be taken by this context now
    kTaking,     // it is about to take them; has them; is about to give them back
    kHeld,
    kGiving,
    kOwed,        // the counters are to be given back, and were not, since something was in flight
    kGivesHere,   // a launching thread is to give them back
    kNotOutside,  // CUPTI has refused to stop a window on a thread of ours
    kNotGivenOutside  // nor to disable the profiler there
  };
  using Facts = BitsOf<Fact>;

  enum class Command : uint8_t {
    kPass,   // nothing, and the launch is in no window
    kAdmit,  // the launch is in the window
    kHold,
    kDecide,  // is a window wanted, or is the launch to be in the one that is open?
    kLook,    // is anything under capture, or waiting work in flight? kDone: no
    kScan,    // the same, and is a launch being made on the context? kDone: no
    kEnable,
    kStart,
    kStop,
    kDisable,
    kInquire,
    kAskTrial
  };
  enum class Effect : uint8_t {
    kStay,  // in the phase that it is in
    kOwn,
    kDisown,
    kFresh,  // a window is about to be opened
    kSpoil,
    kStale,   // kernels may be unknown to CUPTI that the window's launches run
    kEndAll,  // launches wait no more, but for those that may not be in its window
    kWant,    // the counters, which another context has
    kPause,   // they are not taken again before resume()
    kOwe,
    kGiveHere,
    kOweNot,  // nor give them here
    kNeverOutside,
    kNeverGiveOutside
  };
  using Effects = BitsOf<Effect>;
  enum class LeaseNext : uint8_t { kSame, kTake, kHold, kGive, kFree };

  struct Row {
    Event event;
    BitsOf<Phase> in;
    Facts need, unless;
    Phase next;
    LeaseNext lease;
    Effects effects;
    Command command;
  };

  // Who is to come before a call goes on, by what it is.
  enum class Gate : uint8_t {
    kOpen,
    kCalls,      // captures, and calls that put waiting work into a stream
    kUnpatched,  // and launches that must not be instrumented
    kOnce,       // and each launch, once
    kShut        // and all launches
  };

  static constexpr size_t kNone = ~size_t{0};
  struct Context {
    Phase phase = Phase::kIdle;
    uintptr_t owner = 0;
    bool spoiled = false, stale = false;  // the window
    bool over = false;
    bool operator==(const Context&) const = default;
  };

  static std::span<const Row> rows();
  explicit WindowMachine(std::span<const Row> table = rows()) : table_(table) {}

  size_t add() { return contexts.emplace_back(), contexts.size() - 1; }
  // `who` is nobody else's for as long as it owns a context; not 0.
  Command step(size_t context, Event, Facts, uintptr_t who);
  void resume() { paused = false; }  // the pause is over
  // The context is gone, and another one may have its place.
  void forget(size_t context);
  Gate gate(size_t context) const;
  // A launch that wants a window may get one, if it comes.
  bool may_open(size_t context) const;
  // Its counters are to be given back where nothing is in flight.
  bool owes(size_t context) const { return holder == context && (owed || gives_here); }
  bool wanted_by_another() const { return wanted_by != kNone && wanted_by != holder; }

  std::vector<Context> contexts;
  Lease lease = Lease::kFree;
  size_t holder = kNone, wanted_by = kNone;
  bool paused = false, owed = false, gives_here = false, not_outside = false,
       not_given_outside = false;

 private:
  Facts with_state(const Context&, size_t index, Facts, uintptr_t who) const;

  std::span<const Row> table_;
};

}  // namespace flopinj
