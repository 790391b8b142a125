#include <collector/schedule/window_machine.h>

#include <algorithm>

namespace flopinj {
namespace {

using M = WindowMachine;
using E = M::Event;
using Phases = BitsOf<M::Phase>;
using enum M::Phase;
using enum M::Fact;
using enum M::Effect;
using F = M::Fact;
using L = M::LeaseNext;
using X = M::Effect;
using C = M::Command;

constexpr Phases kAny{kIdle, kChoosing, kSwitching, kTrying, kOpening, kOpen, kFull, kClosing};

// The first row that fits an event counts. Where its effect is kStay, its next phase does not.
// clang-format off
constexpr M::Row kRows[] = {
    // A launch comes.
    {E::kEnter, kAny, {kOver, kAnywhere}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    {E::kEnter, kIdle, {kFirst, kGivesHere}, {}, kSwitching, L::kGive, {kOwn}, C::kLook},
    {E::kEnter, kIdle, {}, {}, kChoosing, L::kSame, {kOwn}, C::kDecide},
    {E::kEnter, kOpen, {kFree}, {}, kOpen, L::kSame, {kOwn}, C::kDecide},
    {E::kEnter, kFull, {kFree}, {}, kClosing, L::kSame, {kOwn}, C::kStop},
    {E::kEnter, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kHold},
    // It decides.
    {E::kPasses, kChoosing, {kMine}, {}, kIdle, L::kSame, {kDisown}, C::kPass},
    {E::kFits, kOpen, {kMine}, {}, kOpen, L::kSame, {}, C::kAdmit},
    {E::kEndsWindow, kOpen, {kMine}, {}, kClosing, L::kSame, {}, C::kStop},
    {E::kOpens, kChoosing, {kMine, kHeld}, {}, kOpening, L::kSame, {kFresh, kOweNot}, C::kScan},
    {E::kOpens, kChoosing, {kMine, kLeaseFree}, {}, kOpening, L::kTake, {kFresh}, C::kScan},
    {E::kTries, kChoosing, {kMine, kHeld}, {}, kIdle, L::kSame, {kDisown}, C::kAskTrial},
    {E::kTries, kChoosing, {kMine, kLeaseFree}, {}, kSwitching, L::kTake, {}, C::kLook},
    {E::kOpens, kChoosing, {kMine}, {}, kIdle, L::kSame, {kDisown, kWant}, C::kPass},
    {E::kTries, kChoosing, {kMine}, {}, kIdle, L::kSame, {kDisown, kWant}, C::kPass},
    // It leaves its window.
    {E::kLeft, kOpen, {kMine, kUntold}, {}, kOpen, L::kSame, {kDisown, kSpoil}, C::kPass},
    {E::kLeft, kOpen, {kMine, kLast}, {}, kFull, L::kSame, {kDisown}, C::kPass},
    {E::kLeft, kOpen, {kMine}, {}, kOpen, L::kSame, {kDisown}, C::kPass},
    // Other calls of the program's.
    {E::kComes, {kOpen, kFull}, {kFree}, {}, kClosing, L::kSame, {kOwn}, C::kStop},
    {E::kComes, {kSwitching, kTrying, kOpening, kOpen, kClosing}, {}, {kMine}, kIdle,
      L::kSame, {kStay}, C::kHold},
    {E::kComes, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    {E::kWaits, kFull, {kFree}, {}, kClosing, L::kSame, {kOwn}, C::kStop},
    {E::kWaits, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    {E::kWaited, kIdle, {kHeld, kOwed}, {}, kSwitching, L::kGive, {kOwn}, C::kLook},
    {E::kWaited, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    // The planner's thread.
    {E::kVisit, kFull, {kFree}, {kNotOutside}, kClosing, L::kSame, {kOwn}, C::kStop},
    {E::kVisit, kOpen, {kFree, kOld}, {kNotOutside}, kClosing, L::kSame, {kOwn}, C::kStop},
    {E::kVisit, kIdle, {kHeld, kDue, kNotGivenOutside}, {}, kIdle, L::kSame, {kGiveHere}, C::kPass},
    {E::kVisit, kIdle, {kHeld, kDue}, {}, kSwitching, L::kGive, {kOwn}, C::kLook},
    {E::kVisit, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    {E::kTrial, kIdle, {kHeld}, {}, kTrying, L::kSame, {kFresh, kOwn}, C::kScan},
    {E::kTrial, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    {E::kInquiry, kIdle, {}, {}, kSwitching, L::kSame, {kOwn}, C::kLook},
    {E::kInquiry, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    // A module is loaded.
    {E::kLoads, {kOpening, kOpen}, {}, {}, kIdle, L::kSame, {kStay, kStale}, C::kPass},
    // The end of the context, or of measuring.
    {E::kEnds, {kOpen, kFull}, {kFree}, {}, kClosing, L::kSame, {kOwn}, C::kStop},
    {E::kEnds, kIdle, {kHeld, kDue}, {}, kSwitching, L::kGive, {kOwn}, C::kDisable},
    {E::kEnds, kIdle, {kHeld}, {}, kSwitching, L::kGive, {kOwn}, C::kLook},
    {E::kEnds, kIdle, {}, {}, kIdle, L::kSame, {}, C::kPass},
    {E::kEnds, kAny, {kMine}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    {E::kEnds, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kHold},
    {E::kGivesUp, kAny, {}, {}, kIdle, L::kSame, {kStay, kSpoil, kEndAll}, C::kPass},
    // One has waited for long.
    {E::kDeadline, {kOpening, kOpen, kFull, kClosing}, {}, {}, kIdle,
      L::kSame, {kStay, kSpoil}, C::kPass},
    {E::kDeadline, kAny, {}, {}, kIdle, L::kSame, {kStay}, C::kPass},
    // What came of a command.
    {E::kLooked, {kOpening, kSwitching}, {kMine, kTaking}, {}, kIdle,
      L::kSame, {kStay}, C::kEnable},
    {E::kLooked, {kOpening, kTrying}, {kMine, kHeld}, {}, kIdle, L::kSame, {kStay}, C::kStart},
    {E::kLooked, kSwitching, {kMine, kGiving}, {}, kSwitching, L::kSame, {}, C::kDisable},
    {E::kLooked, kSwitching, {kMine}, {}, kSwitching, L::kSame, {}, C::kInquire},
    {E::kBusy, {kOpening, kSwitching}, {kMine, kTaking}, {}, kIdle, L::kFree, {kDisown}, C::kPass},
    {E::kBusy, kSwitching, {kMine, kGiving}, {}, kIdle, L::kHold, {kDisown, kOwe}, C::kPass},
    {E::kBusy, {kOpening, kSwitching, kTrying}, {kMine}, {}, kIdle, L::kSame, {kDisown}, C::kPass},
    {E::kEnabled, kOpening, {kMine, kTaking}, {}, kOpening, L::kHold, {}, C::kStart},
    {E::kEnabled, kSwitching, {kMine, kTaking}, {}, kIdle, L::kHold, {kDisown}, C::kAskTrial},
    {E::kNotEnabled, {kOpening, kSwitching}, {kMine, kTaking}, {}, kIdle,
      L::kFree, {kDisown}, C::kPass},
    {E::kStarted, kOpening, {kMine}, {}, kOpen, L::kSame, {}, C::kAdmit},
    {E::kStarted, kTrying, {kMine}, {}, kClosing, L::kSame, {}, C::kStop},
    {E::kNotStarted, {kOpening, kTrying}, {kMine}, {}, kSwitching, L::kGive, {}, C::kDisable},
    {E::kStopped, kClosing, {kMine}, {}, kIdle, L::kSame, {kDisown}, C::kPass},
    {E::kNotStopped, kClosing, {kMine}, {}, kFull, L::kSame, {kDisown, kNeverOutside}, C::kPass},
    {E::kLost, kClosing, {kMine}, {}, kSwitching, L::kGive, {}, C::kDisable},
    {E::kDisabled, kSwitching, {kMine, kPauses}, {}, kIdle, L::kFree, {kDisown, kPause}, C::kPass},
    {E::kDisabled, kSwitching, {kMine}, {}, kIdle, L::kFree, {kDisown}, C::kPass},
    {E::kNotDisabled, kSwitching, {kMine, kOutside}, {}, kIdle,
      L::kHold, {kDisown, kGiveHere, kNeverGiveOutside}, C::kPass},
    {E::kNotDisabled, kSwitching, {kMine}, {}, kIdle, L::kHold, {kDisown}, C::kPass},
    {E::kInquired, kSwitching, {kMine}, {}, kIdle, L::kSame, {kDisown}, C::kPass},
    // A window may be open then, and its launches are not known.
    {E::kFails, {kOpening, kTrying}, {kMine, kHeld}, {}, kSwitching, L::kGive, {}, C::kDisable},
    {E::kFails, kClosing, {kMine}, {}, kSwitching, L::kGive, {}, C::kDisable},
    {E::kFails, kOpen, {kMine}, {}, kOpen, L::kSame, {kDisown, kSpoil}, C::kPass},
    {E::kFails, {kOpening, kSwitching}, {kMine, kTaking}, {}, kIdle, L::kFree, {kDisown}, C::kPass},
    {E::kFails, kSwitching, {kMine, kGiving}, {}, kIdle, L::kHold, {kDisown}, C::kPass},
    {E::kFails, {kSwitching, kChoosing}, {kMine}, {}, kIdle, L::kSame, {kDisown}, C::kPass},
};
// clang-format on

}  // namespace

std::span<const WindowMachine::Row> WindowMachine::rows() { return kRows; }

M::Facts WindowMachine::with_state(const Context& context, size_t index, Facts facts,
                                   uintptr_t who) const {
  const bool holds = holder == index;
  facts.set(F::kFree, context.owner == 0);
  facts.set(F::kMine, context.owner == who);
  facts.set(F::kOver, context.over);
  facts.set(F::kLeaseFree,
            lease == Lease::kFree && !paused && (wanted_by == kNone || wanted_by == index));
  facts.set(F::kTaking, holds && lease == Lease::kTaking);
  facts.set(F::kHeld, holds && lease == Lease::kHeld);
  facts.set(F::kGiving, holds && lease == Lease::kGiving);
  facts.set(F::kOwed, holds && (owed || gives_here));
  facts.set(F::kGivesHere, holds && gives_here);
  facts.set(F::kNotOutside, not_outside);
  facts.set(F::kNotGivenOutside, not_given_outside);
  return facts;
}

M::Command WindowMachine::step(size_t index, E event, Facts given, uintptr_t who) {
  Context& context = contexts[index];
  const Facts facts = with_state(context, index, given, who);
  const auto row = std::ranges::find_if(table_, [&](const Row& r) {
    return r.event == event && r.in.has(context.phase) && facts.holds(r.need) &&
           !facts.any(r.unless);
  });
  if (row == table_.end()) return Command::kPass;
  if (!row->effects.has(X::kStay)) context.phase = row->next;
  if (row->effects.has(X::kOwn)) context.owner = who;
  if (row->effects.has(X::kDisown)) context.owner = 0;
  if (row->effects.has(X::kSpoil)) context.spoiled = true;
  if (row->effects.has(X::kStale)) context.stale = true;
  if (row->effects.has(X::kEndAll)) context.over = true;
  if (row->effects.has(X::kFresh)) context.spoiled = context.stale = false;
  switch (row->lease) {
    case L::kSame:
      break;
    case L::kTake:
      lease = Lease::kTaking;
      holder = index;
      if (wanted_by == index) wanted_by = kNone;
      break;
    case L::kHold:
      lease = Lease::kHeld;
      break;
    case L::kGive:
      lease = Lease::kGiving;
      break;
    case L::kFree:
      lease = Lease::kFree;
      holder = kNone;
      owed = gives_here = false;
      break;
  }
  if (row->effects.has(X::kWant) && wanted_by == kNone) wanted_by = index;
  if (row->effects.has(X::kPause)) paused = true;
  if (row->effects.has(X::kOwe)) owed = true;
  if (row->effects.has(X::kGiveHere)) gives_here = true;
  if (row->effects.has(X::kOweNot)) owed = gives_here = false;
  if (row->effects.has(X::kNeverOutside)) not_outside = true;
  if (row->effects.has(X::kNeverGiveOutside)) not_given_outside = true;
  return row->command;
}

void WindowMachine::forget(size_t index) {
  contexts[index] = {};
  if (wanted_by == index) wanted_by = kNone;
  if (holder != index) return;
  holder = kNone;
  lease = Lease::kFree;
  owed = gives_here = false;
}

M::Gate WindowMachine::gate(size_t index) const {
  switch (contexts[index].phase) {
    case kIdle:
      return holder == index && gives_here ? Gate::kOnce : Gate::kOpen;
    case kChoosing:
      return Gate::kOpen;
    case kSwitching:
      return Gate::kCalls;
    case kTrying:
      return Gate::kUnpatched;
    default:
      return contexts[index].over ? Gate::kUnpatched : Gate::kShut;
  }
}

bool WindowMachine::may_open(size_t index) const {
  const Phase phase = contexts[index].phase;
  if (phase != kIdle && phase != kChoosing) return false;
  if (holder == index) return !(owed && wanted_by_another());
  if (lease == Lease::kFree) return !paused && (wanted_by == kNone || wanted_by == index);
  return wanted_by == kNone;
}

}  // namespace flopinj
