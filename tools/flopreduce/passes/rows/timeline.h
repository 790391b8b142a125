// A device's kernels in the order of time: stretches in which the same ones run, and the gaps in
// which none does, each with its cause. What they come to is another's matter, but for what is only
// counted: kernels that ran alone for all of their time, as most do, and the gaps before them.
#pragma once
#include <call_times.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "tables/lost_time.h"

namespace flopinj::reduce {

// When a launch ran, in 32 bytes: many are kept until they are in order.
struct LaunchInTime {
  static constexpr uint32_t kCopy = UINT32_MAX;  // as its row: no launch, memory was copied
  uint64_t begin_ns, length_ns;
  uint32_t row;  // launches of one row are worth the same
  uint32_t step;
  uint32_t called_before;  // when the program called for it: LaunchBatch.called_before
  uint32_t pause : 31;     // Timeline::add_pause()
  uint32_t windowed : 1;   // made while counters were read

  static LaunchInTime copy(uint64_t begin_ns, uint64_t length_ns) {
    return {begin_ns, length_ns, kCopy, 0, 0, 0, 0};
  }
  void set_pause(uint32_t number) { pause = number & ((1U << 31) - 1); }
};
static_assert(sizeof(LaunchInTime) == 32);

// What launches of one row come to where no other kernel matters. No two of these times overlap, so
// that sums are below 2^64.
struct RowTimes {
  static constexpr size_t kGapLines = 6;  // causes of gaps
  static constexpr size_t place_of_gap(LostLine line) {
    return place_of(line) - place_of(LostLine::kIdleCopies);
  }
  static constexpr LostLine line_of_gap(size_t place) {
    return static_cast<LostLine>(place + place_of(LostLine::kIdleCopies));
  }
  uint64_t launches = 0, ns = 0;             // of those that ran alone
  std::array<uint64_t, kGapLines> gap_ns{};  // before launches of the row
  std::array<uint64_t, 3> beside_ns{};       // as LostTime::beside_fs

  static constexpr size_t kKinds = 2 + kGapLines + 3;
  // Each of them, by a number.
  uint64_t& of_kind(size_t kind) {
    if (kind == 0) return launches;
    if (kind == 1) return ns;
    return kind < 2 + kGapLines ? gap_ns[kind - 2] : beside_ns[kind - 2 - kGapLines];
  }
};

// `To`, which derives from this, has
//   void launch(const Launch&)  the next one, which may be a copy, or run beside others
//   void stretch(uint64_t to)   running() all go on from now() until then
//   void enter_step(uint32_t)
//   bool counts() const   time has come to what counts
//   bool within(uint64_t ns) const   what begins then counts
//   bool is_plain(const Launch&) const   one that runs alone may only be counted
//   bool is_idle_beside(const Launch&)   beside others nothing is counted of it but the time,
//   void ran_beside(const Launch&, uint64_t alone_ns, uint64_t ns)   in which it ran beside others
//   Done   what it keeps of a kernel that runs; nothing where launches are read in parts
template <typename To>
class Timeline {
 public:
  using Launch = LaunchInTime;
  static constexpr uint64_t kLongGapNs = 100'000;
  static constexpr size_t kMostPauses = 1U << 20, kMostCopies = 1U << 20;

  // What runs at a launch's beginning where one part of the launches ends and another begins.
  struct Seam {
    size_t kernels = 0;
    uint64_t copies_end_ns = 0;
    bool operator==(const Seam&) const = default;
  };
  // Before all launches: this begins where `first` does, which is the first one. Those before it
  // may still run.
  Seam begin_at(const Launch& first, std::span<const Launch> before) {
    any_ = true;
    begin_ns_ = now_ = first.begin_ns;
    for (const Launch& launch : before) {
      const uint64_t end_ns = launch.begin_ns + launch.length_ns;
      if (end_ns <= now_) continue;
      if (launch.row == Launch::kCopy)
        add_copy(launch.begin_ns, end_ns);
      else
        running_.push_back({launch, end_ns, {}});
    }
    return seam();
  }
  // After all launches but `first`, with which another part begins: up to there, with the gap
  // before it.
  Seam go_to(const Launch& first) {
    Launch until = first;
    until.length_ns = 0;
    next(until);
    return seam();
  }
  // The part before this one has gone to where this one began.
  void begin_as(const Timeline& before) {
    begin_ns_ = before.begin_ns_;
    edge_copies_ns_ = before.edge_copies_ns_;
  }
  // The number of the last step that was entered.
  uint32_t step() const { return step_; }
  uint32_t copy_pause(const Timeline& from, uint32_t pause) {
    if (pause == 0 || pauses_.size() >= kMostPauses) return 0;
    pauses_.push_back(from.pauses_[pause - 1]);
    return static_cast<uint32_t>(pauses_.size());
  }

  // In the order of their beginnings, copies among them.
  void launches(std::span<const Launch> in_order) {
    const Launch* at = in_order.data();
    const Launch* const end = at + in_order.size();
    while (at != end) {
      at = alone(at, end);
      if (at != end) self().launch(*at++);
    }
  }
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
  uint64_t clock_error() const { return clock_error_ns_; }
  // Gaps would have the same causes if clocks differed by up to so much.
  uint64_t clock_error_allowed() const { return clock_error_allowed_ns_; }
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
    typename To::Done done{};
  };
  struct Row {
    uint64_t least_ns = 1;              // launches that took less are not only counted
    uint64_t shortest_ns = UINT64_MAX;  // of those that were
    bool touched = false;               // it is in touched_rows()
    bool beside = false;                // its launches hide nothing that runs beside them
    RowTimes times;
  };
  std::vector<Running>& running() { return running_; }
  uint64_t now() const { return now_; }
  const std::vector<Row>& rows() const { return rows_; }
  std::vector<Row>& rows() { return rows_; }
  Row& touch(uint32_t row) {
    if (rows_.size() <= row) [[unlikely]]
      rows_.resize(row + size_t{1});
    Row& of = rows_[row];
    if (!of.touched) [[unlikely]] {
      of.touched = true;
      touched_.push_back(row);
    }
    return of;
  }
  std::vector<uint32_t>& touched_rows() { return touched_; }

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
      const Gap its = gap_before(launch);
      const bool paused =
          its.line == LostLine::kIdleHostLate && launch.pause != 0 && self().counts();
      const uint64_t copied = take_copies(now_, launch.begin_ns, [&](uint64_t from, uint64_t to) {
        if (paused) add_pause_time(from, to, pauses_[launch.pause - 1]);
      });
      if (self().counts()) {
        Row& row = touch(launch.row);
        if (copied > 0) add_gap(row, {copied, LostLine::kIdleCopies, false});
        if (copied < its.ns) add_gap(row, {its.ns - copied, its.line, its.beside});
      }
      now_ = launch.begin_ns;
    }
    drop_copies();
    if (launch.length_ns == 0) return false;
    Running& one = running_.emplace_back();
    one.launch = launch;
    one.end_ns = launch.begin_ns + launch.length_ns;
    return true;
  }
  void step_was(uint32_t step) { step_ = step; }
  // What another part of the launches came to is this one's.
  void take_counted(const Timeline& other, std::span<const uint32_t> rows) {
    clock_error_allowed_ns_ = std::min(clock_error_allowed_ns_, other.clock_error_allowed_ns_);
    for (size_t row = 0; row < other.rows_.size(); ++row) {
      uint64_t& shortest_ns = rows_[rows[row]].shortest_ns;
      shortest_ns = std::min(shortest_ns, other.rows_[row].shortest_ns);
    }
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
      if (now_ == one.launch.begin_ns && one.end_ns <= ns && self().counts() &&
          is_counted(one.launch)) {
        count(touch(one.launch.row), one.launch);
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
  struct Gap {
    uint64_t ns;
    LostLine line;
    bool beside;  // launches that were made while counters were read
  };
  To& self() { return static_cast<To&>(*this); }
  const To& self() const { return static_cast<const To&>(*this); }
  Seam seam() const { return {running_.size(), copies_.empty() ? 0 : copies_.back().end_ns}; }
  void ended(const Launch& launch) {
    last_step_ = launch.step;
    last_windowed_ = launch.windowed;
  }
  bool is_counted(const Launch& launch) const {
    return launch.row < rows_.size() && launch.length_ns >= rows_[launch.row].least_ns &&
           self().is_plain(launch);
  }
  void count(Row& row, const Launch& launch) {
    ++row.times.launches;
    row.times.ns += launch.length_ns;
    row.shortest_ns = std::min(row.shortest_ns, launch.length_ns);
    now_ = launch.begin_ns + launch.length_ns;
    ended(launch);
  }
  void add_gap(Row& row, const Gap& gap) {
    row.times.gap_ns[RowTimes::place_of_gap(gap.line)] += gap.ns;
    if (gap.beside) row.times.beside_ns[place_beside(gap.line)] += gap.ns;
  }
  // Launches each of which begins after all before it have ended, and ends before the next one
  // begins: but for one kernel that does nothing that matters beside others, which may go on beside
  // all of them, and begin or end beside any. Returns the first that is not so.
  const Launch* alone(const Launch* at, const Launch* end) {
    if (!any_ || !self().counts() || !self().within(at->begin_ns)) return at;
    if (at->row == Launch::kCopy) return at;  // a copy ends no stretch
    run_until(at->begin_ns);
    drop_copies();
    if (running_.size() > 1 || !copies_.empty()) return at;
    if (!running_.empty() && !self().is_idle_beside(running_.front().launch)) return at;
    Beside beside;
    for (; at + 1 < end; ++at) {
      const uint64_t ends = at->begin_ns + at->length_ns;
      if (!is_counted(*at) || at->step > step_ || at->pause != 0 || at->begin_ns < now_ ||
          !self().within(ends))
        break;
      Row& row = rows_[at->row];
      if (!running_.empty() && row.beside) break;
      const bool next_beside = ends > at[1].begin_ns;
      if (next_beside && !begins_beside(at, end)) break;
      if (!row.touched) touch(at->row);
      if (!running_.empty() && running_.front().end_ns <= at->begin_ns) end_beside(beside);
      if (!running_.empty()) {
        beside.idle_ns += at->begin_ns - now_;
        beside.hidden_ns += std::min(ends, running_.front().end_ns) - at->begin_ns;
        if (running_.front().end_ns <= ends) {
          now_ = running_.front().end_ns;
          end_beside(beside);
        }
      } else if (at->begin_ns > now_) {
        add_gap(row, gap_before(*at));
      }
      count(row, *at);
      if (!next_beside) continue;
      ++at;
      running_.push_back({*at, at->begin_ns + at->length_ns, {}});
      beside.hidden_ns = std::min(ends, running_.front().end_ns) - at->begin_ns;
      if (running_.front().end_ns < ends) end_beside(beside);
    }
    give(beside);
    return at;
  }
  // Of the kernel that runs beside others: for so long it was alone, and hidden by one.
  struct Beside {
    uint64_t idle_ns = 0, hidden_ns = 0;
  };
  void give(Beside& beside) {
    if (beside.idle_ns > 0 || beside.hidden_ns > 0)
      self().ran_beside(running_.front().launch, beside.idle_ns, beside.hidden_ns);
    beside = {};
  }
  void end_beside(Beside& beside) {
    const Running& one = running_.front();
    if (one.end_ns > now_) {
      beside.idle_ns += one.end_ns - now_;
      now_ = one.end_ns;
      ended(one.launch);
    }
    give(beside);
    running_.clear();
  }
  // While a launch runs the next one begins, and no other, of a kernel that does nothing that
  // matters beside it.
  bool begins_beside(const Launch* at, const Launch* end) const {
    const uint64_t ends = at->begin_ns + at->length_ns;
    const Launch& next = at[1];
    return running_.empty() && !rows_[at->row].beside && at + 2 < end && at[2].begin_ns >= ends &&
           next.row < rows_.size() && rows_[next.row].beside && next.length_ns > 0 &&
           next.step <= step_ && next.begin_ns + next.length_ns != ends &&
           self().is_idle_beside(next);
  }
  void add_pause_time(uint64_t from, uint64_t to, const Pause& pause) {
    from = std::max(from, pause.begin_ns);
    to = std::min(to, pause.end_ns);
    if (from < to) add_host_ns(pause.path, to - from);
  }
  void drop_copies() {
    while (!copies_.empty() && copies_.front().end_ns <= now_) copies_.pop_front();
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
  Gap gap_before(const Launch& next) {
    const uint64_t ns = next.begin_ns - now_;
    const bool windowed = last_windowed_ || next.windowed;
    if (next.called_before != 0 && !windowed) {
      const uint64_t most = next.called_before * kCallUnitNs - 1;
      if (ns >= most + clock_error_ns_)
        return proven({ns, LostLine::kIdleHostLate, false}, ns - most);
      if (most + 1 - kCallUnitNs > ns + clock_error_ns_)
        return proven({ns, LostLine::kIdleQueued, false}, most - kCallUnitNs - ns);
    }
    return {ns,
            last_step_ != next.step ? LostLine::kIdleBetweenSteps
            : ns >= kLongGapNs      ? LostLine::kIdleLongGaps
                                    : LostLine::kIdleShortGaps,
            windowed};
  }

  Gap proven(const Gap& gap, uint64_t allowed_ns) {
    clock_error_allowed_ns_ = std::min(clock_error_allowed_ns_, allowed_ns);
    return gap;
  }

  bool any_ = false;
  uint64_t begin_ns_ = 0, now_ = 0;
  std::vector<Running> running_;
  std::vector<Row> rows_;
  std::vector<uint32_t> touched_;
  uint32_t step_ = 0;
  uint32_t last_step_ = 0;  // of the kernel that ended last
  bool last_windowed_ = false;
  uint64_t clock_error_ns_ = 0, clock_error_allowed_ns_ = UINT64_MAX;
  std::vector<Pause> pauses_;
  std::map<uint32_t, uint64_t> host_ns_;
  std::deque<Copied> copies_;  // that end after now_, in order, none of which overlap
  bool lost_copies_ = false;
  uint64_t edge_copies_ns_ = 0;
};

}  // namespace flopinj::reduce
