// Where the peak went: from 100 %, all devices at peak for all the time, down to the model's FLOP.
// The lines add up: HFU is what the last four hold, MFU what the last one does. Where no launch has
// a FLOP count it is where the time went, down to the kernels.
//
// Capacity is the wall time of processes, once for each of their devices. Lines are device time;
// those of work are what its FLOP take at peak, each precision's own.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/figure.h"
#include "support/packed_rows.h"
#include "tables/lost_time.h"

namespace flopinj::reduce {

using LostNs = std::array<uint64_t, kLostLines>;

// A set of lines.
class LostLines {
 public:
  constexpr LostLines() = default;
  constexpr LostLines(std::initializer_list<LostLine> lines) {
    for (const LostLine line : lines) bits_ |= 1U << place_of(line);
  }
  static constexpr LostLines range(size_t first, size_t end) {
    LostLines lines;
    for (size_t line = first; line < end; ++line) lines.bits_ |= 1U << line;
    return lines;
  }
  constexpr bool has(size_t line) const { return (bits_ >> line & 1U) != 0; }
  constexpr LostLines operator|(LostLines o) const { return LostLines(bits_ | o.bits_); }
  constexpr LostLines operator&(LostLines o) const { return LostLines(bits_ & o.bits_); }
  constexpr LostLines without(LostLines o) const { return LostLines(bits_ & ~o.bits_); }
  constexpr bool empty() const { return bits_ == 0; }
  uint64_t ns_of(const LostNs& ns) const;

 private:
  constexpr explicit LostLines(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

// How lines are to be read. Lines add up, so of time that is in one and may be of another the one
// has at most so much and the other at least so much, and a sum that holds both is right. Lines,
// groups of them and what they leave have their marks from here.
class LostMarks {
 public:
  // Of the time in `from`, `most_ns` or less may be of `to`.
  void may_be(LostLines from, LostLines to, uint64_t most_ns = UINT64_MAX);
  // Likewise, but it is of `from` as well, by what these say they are.
  void may_be_too(LostLines from, LostLines to);
  // `lines` are estimates: what they have too much or too little is in `others`.
  void about(LostLines lines, LostLines others);
  void add(const LostMarks& o);
  // Of the sum of lines, where these are `ns`. Less than the fourth digit is no matter.
  Mark of(LostLines lines, const LostNs& ns) const;
  // From where to where their sum is, estimates left aside.
  std::pair<uint64_t, uint64_t> range_ns(LostLines lines, const LostNs& ns) const;
  Figure sum(LostLines lines, const LostNs& ns) const {
    return {u128{lines.ns_of(ns)}, of(lines, ns)};
  }

 private:
  struct Doubt {
    LostLines lines;
    Mark mark;
    LostLines others;
    uint64_t most_ns;
  };
  void add(const Doubt& doubt);
  std::vector<Doubt> doubts_;
};

struct LostReport {
  // Of one device, one phase and one layer.
  struct Part {
    size_t trace = 0;          // Report::traces
    uint32_t device = 0;       // in that trace, as in TimeReport::Device
    std::string phase, layer;  // empty: none
    LostNs ns{};

    template <typename Self>
    static auto packed(Self& of) {
      return std::tie(of.trace, of.device, of.phase, of.layer, of.ns);
    }
  };
  // Of one device, from the end of the kernels before a step's first one to that of its last.
  struct Step {
    size_t trace = 0;
    uint32_t device = 0;
    uint32_t first = 0, steps = 0;  // 0: before all steps; several where a recording has many
    LostNs ns{};

    template <typename Self>
    static auto packed(Self& of) {
      return std::tie(of.trace, of.device, of.first, of.steps, of.ns);
    }
  };
  // Of one process.
  struct Process {
    uint64_t capacity_ns = 0;
    LostNs ns{};
  };
  std::string missing = "not asked for";  // why there is no ledger; empty where there is one
  // Why the ledger is of time alone: no launch has a FLOP count. Empty where some launch has one.
  std::string no_work;
  bool of_busy_time = false;  // capacity is busy time: there is no wall time to compare it with
  uint64_t capacity_ns = 0;
  LostNs ns{};
  LostMarks marks;
  std::map<std::string, LostMarks> marks_by_phase;
  PackedRows<Part> parts;               // each line's sum is that of `ns`, to the nanosecond
  PackedRows<Step> steps;               // likewise
  std::map<size_t, Process> processes;  // likewise; by Report::traces
  uint64_t skipped_steps = 0;           // of each process: in no line, as is all outside of steps
  // Of the time in which the host was late: where it was meanwhile, by range ("" outside of all),
  // the longest first. What is in none was spent in pieces that are too short to be recorded.
  struct HostTime {
    std::string range;
    uint64_t ns = 0;
  };
  std::vector<HostTime> host;
  uint64_t device_steps = 0;  // steps that ended, once for each of their process's devices
  uint64_t hidden_ns = 0;     // communication beside other kernels
  uint64_t saved_ns = 0;      // of the model's FLOP: what operators did without
  Mark saved_marks{};
  uint64_t fp32_ns = 0;  // at peak, of products in fp32
  Mark fp32_marks{};
  bool formula = false;        // the model's FLOP are known: without them the last line is HFU
  bool given_formula = false;  // by one number for the whole run
  bool known() const { return missing.empty(); }
  // Without FLOP the lines end at the kernels: nothing is known of what these did.
  bool of_time() const { return !no_work.empty(); }
  bool tells(LostLine line) const {
    return !of_time() || line <= LostLine::kUncounted || line == LostLine::kProfiler;
  }

  uint64_t at(LostLine line) const { return ns[place_of(line)]; }
  Figure sum(LostLines lines) const { return marks.sum(lines, ns); }
  // Of a part in that phase.
  Figure sum(LostLines lines, const std::string& phase, const LostNs& of) const;
  double share(uint64_t of) const {
    return static_cast<double>(of) / static_cast<double>(capacity_ns);
  }
};

// What the time of one device went to, by the kernels that ran.
struct LostDevice {
  struct Part {
    std::string phase, layer;
    LostTime time;
  };
  struct Step {
    uint32_t first = 0, steps = 0;
    LostTime time;
  };
  size_t trace = 0;
  uint32_t device = 0;
  // From the start of its process's recording to the end; nothing where its times and that one are
  // of two clocks. `span_fs`: from its first kernel to its last.
  std::optional<u128> wall_fs;
  u128 span_fs = 0;
  u128 edge_copies_fs = 0;  // copies ran, before and after that
  u128 unplaced_fs = 0;     // of the lines: ran while the device seemed to be idle
  u128 windows_fs = 0;  // at most so much of the idle time beside slowed launches is the profiler's
  std::array<u128, kWorkClasses> excess_fs{};  // of the lines: beyond the device's time
  std::vector<Part> parts;                     // what they hold is the same
  std::vector<Step> steps;
};
// Makes the device's lines add up to its time: idle time to the edges, to the profiler and to
// launches of which nothing says when they ran; and work that was done beside other work out of
// the lines with most room. Why it cannot be; empty where it can.
std::string settle(LostDevice& device);
// Adds up devices that are settled: lines, parts and steps in whole nanoseconds.
class LostSums {
 public:
  // In any order; `number` is the device's place among them.
  void add(uint32_t number, const LostDevice& device);
  bool has(uint32_t number) const { return devices_.contains(number); }
  u128 all_fs() const;
  // Ends the sums.
  void add_up(LostReport& report);

 private:
  // As LostReport's, in femtoseconds.
  struct Part {
    std::string phase, layer;
    LostFs fs{};
    template <typename Self>
    static auto packed(Self& of) {
      return std::tie(of.phase, of.layer, of.fs);
    }
  };
  struct Step {
    uint32_t first = 0, steps = 0;
    LostFs fs{};
    template <typename Self>
    static auto packed(Self& of) {
      return std::tie(of.first, of.steps, of.fs);
    }
  };
  struct Device {
    size_t trace = 0;
    uint32_t device = 0;
    PackedRows<Part>::Place parts_at;
    PackedRows<Step>::Place steps_at;
    size_t parts = 0, steps = 0;
  };
  std::map<uint32_t, Device> devices_;
  PackedRows<Part> parts_;
  PackedRows<Step> steps_;
  LostFs of_parts_{}, of_steps_{};
};

// A line, or several that are one for people.
struct LostRow {
  const char* key;     // for programs, for good: "idle_between_steps"
  const char* parent;  // null: of none
  const char* words;   // for people
  LostLine first, last;
  const char* meaning;  // without an end mark

  constexpr LostLines lines() const {
    return LostLines::range(place_of(first), place_of(last) + 1);
  }
  constexpr LostLines rest() const { return LostLines::range(place_of(last) + 1, kLostLines); }
};
// All of them: groups before their lines. Those without a parent add up to the capacity.
extern const std::array<LostRow, 23> kLostRows;
inline uint64_t ns_of(const LostNs& ns, const LostRow& row) { return row.lines().ns_of(ns); }
// Those that people may mean by a name: a key or words, in any case, "lost:" in front or not. Lines
// of two groups may have the same words.
std::vector<const LostRow*> lost_rows_named(std::string_view name);
// The shares of the processes with least and most of it; nothing of a single one.
std::optional<std::pair<double, double>> shares_by_process(const LostReport& lost,
                                                           const LostRow& row);
// Of each phase, all devices and layers together.
std::map<std::string, LostNs> ns_by_phase(const LostReport& lost);
// For people. Without a formula all work that is not done again is in one line, and without FLOP
// the time of all kernels but those of communication.
inline const char* words_of(const LostRow& row, const LostReport& lost) {
  if (lost.of_time() && row.last == LostLine::kUncounted) return "kernels";
  return row.last == LostLine::kOtherFlop && !lost.formula ? "FLOP, no formula known" : row.words;
}

}  // namespace flopinj::reduce
