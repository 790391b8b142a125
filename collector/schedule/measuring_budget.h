// What measuring may cost, what it has cost, and what the next window will. Pure arithmetic; locked
// by its owner.
//
// The cost model
//   A window costs the program wall time in three ways:
//     overhead   opening and closing it, decoding and evaluating. Measured whole.
//     waiting    inside a window the context is synchronised after every launch, so the call
//                returns when its kernel has ended: the time of the calls, ENTER to EXIT, less what
//                they would have taken undisturbed.
//     slow-down  an instrumented kernel runs up to 100 times longer. Where the call waits for it
//                this is part of the waiting; the GPU's own view is kept beside it.
//   What the calls would have taken undisturbed cannot be known, only bounded from below, twice:
//     host   a launch call outside of windows takes so long on average (a sample of the program's
//            calls is timed, also where a full queue makes them wait for the GPU);
//     GPU    the kernels take so long outside of windows (where their times are known), of which
//            the host's own time between the calls has hidden a part; the rest the program would
//            have waited for somewhere, in a window or not.
//   The larger counts. Times that are not known yet count as 0, so early costs are too high rather
//   than too low. Launch calls of several threads wait for one another in a window: its calls never
//   overlap, so their sum is wall time.
//
//   spent = overhead + max(calls - max(launches * mean call outside, GPU time beyond host's own),
//                          GPU time of instrumented kernels beyond their time outside)
//
// How much an instrumented kernel is slowed down differs by kernel. Before its first window it is
// taken for the worst that others have shown, and for 100 times (what CUPTI's users report) before
// three have: a kernel of seconds is not met unprepared.
//
// What opening an instrumented window costs is not foreseen from others: CUPTI may patch the
// kernels of all loaded modules. So it is tried out on a thread of ours, without launches: that is
// the first estimate, and costs the program what its launches wait for it.
//
// What is left out: the callbacks of launches, which no schedule can make cheaper (the trace says
// their cost apart), CPU time of our own threads, and effects that last beyond a window (code that
// CUPTI has patched stays cached; clocks that other work pattern changes).
//
// The rule, with b the budget's share of wall time
//   to measure known signatures again    spent + reserved + predicted <= b * wall
//   signatures without complete counts   spent + reserved + predicted <= b * (wall + startup)
// A program gets at the start what the budget earns in `startup` (200 s: 2 s at 1 %), so that a
// short one is measured at all; a longer one pays it back before known kernels are measured again.
#pragma once
#include <collector/base/assert.h>

#include <array>
#include <cstdint>

namespace flopinj {

// One window, or what there is of it. Nanoseconds of wall time on the program's threads.
struct WindowCost {
  uint64_t overhead_ns = 0;  // opening and closing
  uint64_t calls_ns = 0;     // launch calls inside, ENTER to EXIT
  uint64_t open_ns = 0;      // from opened to closing: the calls and the program's own time
  uint32_t launches = 0;
};

class MeasuringBudget {
 public:
  static constexpr double kUnlimited = 0;

  // `share` of wall time, 0.01 for 1 %; kUnlimited: everything is affordable.
  MeasuringBudget(double share, uint64_t startup_ns) : share_(share), startup_ns_(startup_ns) {}

  void begin(uint64_t now_ns) { began_ns_ = now_ns; }
  // Launch calls that were timed outside of windows, so far.
  void calls_outside(uint64_t calls, uint64_t ns);
  // `gpu_ns`: the kernels' time outside of windows, as far as it is known.
  void window(bool instrumented, const WindowCost&, uint64_t gpu_ns);
  // A trial of opening and closing one.
  void tried(bool instrumented, uint64_t overhead_ns);
  void overhead(uint64_t ns) { overhead_ns_ += ns; }  // that came to no window
  // GPU time of kernels in instrumented windows beyond their time outside.
  void slowed_down(uint64_t ns) { slow_down_ns_ += ns; }
  void reserve(uint64_t ns) { reserved_ns_ += ns; }
  void release(uint64_t ns) {
    FLOPINJ_ASSERT(ns <= reserved_ns_);
    reserved_ns_ -= ns < reserved_ns_ ? ns : reserved_ns_;
  }

  uint64_t spent_ns() const;
  // An instrumented kernel took so many times its usual time.
  void slow_down_seen(double times);
  // Of a window with one launch whose call, where it is known, took `call_ns` in such a window. Of
  // an instrumented one whose call is not known: the kernel's usual time, times the worst slow-down
  // seen. What no window of its kind has shown yet is taken from the other kind, and is 0 before
  // the first.
  uint64_t predicted_ns(bool instrumented, uint64_t call_ns, uint64_t usual_ns) const;
  bool unlimited() const { return share_ == kUnlimited; }
  // What may still be spent now. `incomplete`: for signatures without complete counts.
  uint64_t left_ns(bool incomplete, uint64_t now_ns) const;
  bool affords(bool incomplete, uint64_t ns, uint64_t now_ns) const {
    if (share_ == kUnlimited) return true;
    const uint64_t left = left_ns(incomplete, now_ns);
    return left > 0 && ns <= left;
  }
  // What a window has cost so far, beyond opening and closing.
  uint64_t waiting_ns(const WindowCost&) const;

 private:
  struct Kind {  // moving averages over windows
    double overhead_ns = 0, call_ns = 0;
    bool known = false, call_known = false;
  };
  double share_;
  uint64_t startup_ns_, began_ns_ = 0;
  uint64_t outside_calls_ = 0, outside_ns_ = 0;
  uint64_t overhead_ns_ = 0, calls_ns_ = 0, launches_ = 0, hidden_ns_ = 0;
  uint64_t slow_down_ns_ = 0, reserved_ns_ = 0;
  double worst_slow_down_ = 1;
  uint32_t slow_downs_seen_ = 0;
  std::array<Kind, 2> kinds_;  // hardware counters, instrumented
};

}  // namespace flopinj
