// A device's kernels in the order of time: stretches in which the same ones run, and the gaps in
// which none does, each with its cause. What they come to is another's matter.
#pragma once
#include <call_times.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "tables/lost_time.h"

namespace flopinj::reduce {

// A launch has begin_ns, length_ns, step, windowed (made while counters were read), called_before
// (LaunchBatch) and pause. `To`, which derives from this, has
//   bool alone(const Launch&)   it ran alone for all of its time; false: stretch() is to have it
//   void stretch(uint64_t to)   running() all go on from now() until then
//   void gap(uint64_t ns, LostLine, const Launch& next, bool beside)   none ran for so long
//   void enter_step(uint32_t)
//   bool counts() const   time has come to what counts
template <typename To, typename Launch>
class Timeline {
 public:
  static constexpr uint64_t kLongGapNs = 100'000;
  static constexpr size_t kMostPauses = 1U << 20, kMostCopies = 1U << 20;

  // For Launch::pause: of what its thread did before, it spent `length_ns` in a range, until
  // `since_ns` before the call. 0 where there are too many.
  uint32_t add_pause(const Launch& launch, uint32_t path, uint64_t since_ns, uint64_t length_ns) {
    const uint64_t before_ns = (launch.called_before - uint64_t{1}) * kCallUnitNs + since_ns;
    if (launch.begin_ns < before_ns || pauses_.size() >= kMostPauses) return 0;
    const uint64_t end_ns = launch.begin_ns - before_ns;
    pauses_.push_back({path, end_ns - std::min(end_ns, length_ns), end_ns});
    return static_cast<uint32_t>(pauses_.size());
  }
  // The clocks of calls and of kernels may differ by so much.
  void clock_error(uint64_t ns) {
    constexpr uint64_t kMost = 1ULL << 60;  // sums stay below 2^64
    clock_error_ns_ = std::max(clock_error_ns_, std::min(ns, kMost));
  }
  // The device copied memory. In the order of beginnings, among launches. In a gap this comes
  // before other causes: it is seen, with no error between clocks.
  void add_copy(uint64_t begin_ns, uint64_t end_ns) {
    if (begin_ns >= end_ns) return;
    if (!copies_.empty() && begin_ns <= copies_.back().end_ns) {
      copies_.back().end_ns = std::max(copies_.back().end_ns, end_ns);
      return;
    }
    if (copies_.size() == kMostCopies) return lose_copies();
    copies_.push_back({begin_ns, end_ns});
  }
  void lose_copies() { lost_copies_ = true; }
  bool lost_copies() const { return lost_copies_; }
  // For so long copies ran before the first launch and after the last one.
  uint64_t edge_copies_ns() const { return edge_copies_ns_; }

  bool any() const { return any_; }
  uint64_t begin_ns() const { return begin_ns_; }  // of the first launch
  uint64_t end_ns() const { return now_; }         // of the last one
  // Of kIdleHostLate, ns by the range that the thread was in meanwhile.
  const std::map<uint32_t, uint64_t>& host_ns() const { return host_ns_; }
  void add_host_ns(uint32_t path, uint64_t ns) { add_saturating(host_ns_[path], ns); }

 protected:
  struct Running {
    Launch launch;
    uint64_t end_ns = 0;
    uint64_t counted = 0;  // for `To`
  };
  std::vector<Running>& running() { return running_; }
  uint64_t now() const { return now_; }

  // In the order of their beginnings. False: it takes no time.
  bool next(const Launch& launch) {
    if (!any_) {
      edge_copies_ns_ += take_copies(0, launch.begin_ns, [](uint64_t, uint64_t) {});
      any_ = true;
      begin_ns_ = now_ = launch.begin_ns;
      last_step_ = launch.step;
    }
    run_until(launch.begin_ns);
    // Like all idle time, that before a step's first kernel is the next one's.
    if (launch.step > step_) self().enter_step(step_ = launch.step);
    if (launch.begin_ns > now_) {
      bool beside = false;
      const uint64_t ns = launch.begin_ns - now_;
      const LostLine line = line_of_gap(ns, launch, beside);
      const bool paused = line == LostLine::kIdleHostLate && launch.pause != 0 && self().counts();
      const uint64_t copied = take_copies(now_, launch.begin_ns, [&](uint64_t from, uint64_t to) {
        if (paused) add_pause_time(from, to, pauses_[launch.pause - 1]);
      });
      if (copied > 0) self().gap(copied, LostLine::kIdleCopies, launch, false);
      if (copied < ns) self().gap(ns - copied, line, launch, beside);
      now_ = launch.begin_ns;
    }
    while (!copies_.empty() && copies_.front().end_ns <= now_) copies_.pop_front();
    if (launch.length_ns == 0) return false;
    Running& one = running_.emplace_back();
    one.launch = launch;
    one.end_ns = launch.begin_ns + launch.length_ns;
    return true;
  }
  // What was before does not count.
  void begin_here() {
    any_ = !running_.empty();
    begin_ns_ = now_;
  }
  void span(uint64_t begin_ns, uint64_t end_ns, uint64_t edge_copies_ns) {
    any_ = true;
    begin_ns_ = begin_ns;
    now_ = end_ns;
    edge_copies_ns_ = edge_copies_ns;
  }
  // No launch will follow, and all have ended.
  void end_copies() {
    edge_copies_ns_ += take_copies(any_ ? now_ : 0, UINT64_MAX, [](uint64_t, uint64_t) {});
  }

  void run_until(uint64_t ns) {
    if (running_.size() == 1) {
      const Running& one = running_.front();
      if (now_ == one.launch.begin_ns && one.end_ns <= ns && self().alone(one.launch)) {
        now_ = one.end_ns;
        ended(one.launch);
        running_.clear();
        return;
      }
    }
    while (!running_.empty() && now_ < ns) {
      uint64_t to = ns;
      for (const Running& running : running_) to = std::min(to, running.end_ns);
      self().stretch(to);
      now_ = to;
      std::erase_if(running_, [&](const Running& running) {
        if (running.end_ns > now_) return false;
        ended(running.launch);
        return true;
      });
    }
  }

 private:
  struct Pause {
    uint32_t path = 0;
    uint64_t begin_ns = 0, end_ns = 0;
  };
  struct Copied {
    uint64_t begin_ns = 0, end_ns = 0;
  };
  To& self() { return static_cast<To&>(*this); }
  void ended(const Launch& launch) {
    last_step_ = launch.step;
    last_windowed_ = launch.windowed;
  }
  void add_pause_time(uint64_t from, uint64_t to, const Pause& pause) {
    from = std::max(from, pause.begin_ns);
    to = std::min(to, pause.end_ns);
    if (from < to) add_host_ns(pause.path, to - from);
  }
  // How long copies ran in [from, to), before which nothing is asked for any more. Calls
  // between(begin, end) for each stretch in which none did.
  template <typename Between>
  uint64_t take_copies(uint64_t from, uint64_t to, Between&& between) {
    uint64_t copied = 0;
    for (; !copies_.empty() && copies_.front().begin_ns < to; copies_.pop_front()) {
      const auto [first, last] = copies_.front();
      const uint64_t begin = std::max(first, from), end = std::min(last, to);
      if (begin < end) {
        between(from, begin);
        copied += end - begin;
        from = end;
      }
      if (last > to) break;
    }
    between(from, to);
    return copied;
  }

  // By its cause where that is proven: the next kernel was called for after the last one's end, or
  // before it, whatever the error of clocks and the rounding of times. A launch that is measured is
  // called for when the profiler lets it.
  LostLine line_of_gap(uint64_t ns, const Launch& next, bool& beside) const {
    const bool windowed = last_windowed_ || next.windowed;
    if (next.called_before != 0 && !windowed) {
      const uint64_t most = next.called_before * kCallUnitNs - 1;
      if (ns >= most + clock_error_ns_) return LostLine::kIdleHostLate;
      if (most + 1 - kCallUnitNs > ns + clock_error_ns_) return LostLine::kIdleQueued;
    }
    beside = windowed;
    return last_step_ != next.step ? LostLine::kIdleBetweenSteps
           : ns >= kLongGapNs      ? LostLine::kIdleLongGaps
                                   : LostLine::kIdleShortGaps;
  }

  bool any_ = false;
  uint64_t begin_ns_ = 0, now_ = 0;
  std::vector<Running> running_;
  uint32_t step_ = 0;
  uint32_t last_step_ = 0;  // of the kernel that ended last
  bool last_windowed_ = false;
  uint64_t clock_error_ns_ = 0;
  std::vector<Pause> pauses_;
  std::map<uint32_t, uint64_t> host_ns_;
  std::deque<Copied> copies_;  // that end after now_, in order, none of which overlap
  bool lost_copies_ = false;
  uint64_t edge_copies_ns_ = 0;
};

}  // namespace flopinj::reduce
