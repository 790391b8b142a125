// When devices were busy, and when they idled.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/wide.h"
#include "tables/totals.h"

namespace flopinj::reduce {

// When devices were busy and when they idled, and FLOP over time.
struct TimeReport {
  struct Gap {
    uint64_t begin_ns = 0;  // after the device's first kernel began
    uint64_t length_ns = 0;
    std::string before, after;  // kernels, demangled, raw bytes
  };
  // FLOP of the launches of one phase, bin by bin.
  struct Series {
    std::string phase;
    uint64_t begin_ns = 0;  // on the trace's clock; a multiple of bin_ns
    uint64_t bin_ns = 0;    // a power of two
    std::vector<u128> flop;
    bool at_least = false;  // launches of the phase are missing from it
  };
  // One device of one process. Times that nobody recorded are absent: a trace of level tally says
  // how long kernels ran, not when.
  struct Device {
    uint32_t trace = 0;  // index of Report::traces
    uint32_t id = 0;     // in that trace; 0 where it is not known
    std::string name;
    uint64_t placed = 0;              // launches with a start and an end
    uint64_t unplaced = 0;            // launches without: in none of these times
    std::optional<u128> kernel_ns;    // sum of the placed kernels' times
    std::optional<uint64_t> busy_ns;  // their union: at least one of them ran
    std::optional<uint64_t> idle_ns;  // between the first and the last of them, with none running
    std::optional<uint64_t> wall_ns;  // from the start of the process's recording to its end
    // Of the wall time: before the first of them begins and after the last of them ends.
    std::optional<uint64_t> before_ns, after_ns;
    uint64_t begin_ns = 0;           // of the first of them, on the trace's clock
    uint64_t late = 0, late_ns = 0;  // parts of kernels that may be missing from busy_ns
    std::array<BusyTime::Decade, BusyTime::kDecades> idle{};
    std::vector<Gap> largest;  // longest first
    std::vector<Series> flop;  // of phases that have any
  };
  std::vector<Device> devices;  // those with launches

  // Sums over the devices; absent where one of them has none. The wall time of a process counts
  // once for each of its devices.
  //
  // `kernel_ns` and `busy_ns` are as recorded: launches that were slowed while counters were read
  // are in them as long as they took. Report::total.time, "GPU time", has the mean of their
  // kernel's other launches for them.
  std::optional<u128> kernel_ns, busy_ns, idle_ns, before_ns, after_ns, wall_ns;
  std::optional<u128> own_ns;  // what the profiler took of the programs' threads
  std::optional<u128>
      own_wall_ns;       // wall time of those programs, once for each: its share is of this
  bool complete = true;  // no launch is unplaced, and none was late
};

}  // namespace flopinj::reduce
