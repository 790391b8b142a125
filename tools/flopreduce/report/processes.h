// The recorded processes, the runs that they are of, and a job's ranks side by side.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flop_trace.pb.h"
#include "report/figure.h"
#include "report/work.h"
#include "support/wide.h"
#include "tables/recorded.h"

namespace flopinj::reduce {

// What became of a process's request to read counters.
enum class CounterReading : uint8_t {
  kUnknown,     // the recorder does not say what was asked for (before minor version 2)
  kNotAsked,    // its mode reads no counters
  kOtherRanks,  // other ranks of the job were to read them
  kRead,        // the trace has samples
  kRefused,     // no permission
  kBusy,        // another profiler holds them
  kFailed,      // asked for and not read, for the reason in `problem`
  kNoneRead,    // asked for and not read, and the trace has no reason
};

struct CounterReport {
  CounterReading reading = CounterReading::kUnknown;
  std::string problem;  // the recorder's own words, with the remedy; raw bytes; may be empty
};

// Recordings that belong together (report/runs.h). A recording whose header is lost is of the first
// run: nothing is known of it.
struct RunReport {
  std::vector<size_t> traces;  // Report::traces
  // Of the first of them: what all say of their job, and how often it was started again.
  trace::Header header;
  std::optional<uint64_t> begin_ns;  // CLOCK_REALTIME; nothing where it is not known
  // Programs without rank and job that ran together, where they are several.
  std::vector<std::string> programs;
};

// One recorded process.
struct TraceReport : Recorded {
  struct Phase {
    std::string name;
    GpuTime time;
  };
  std::string name;  // "rank 0, host pid 100": of no other trace of the report; raw bytes
  size_t run = 0;    // Report::runs
  CounterReport counters;
  std::vector<std::string> files;  // also those that a summary was made of
  Work work;
  uint64_t devices = 0;                   // that it launched on
  Figure hfu;                             // over wall time x devices
  std::string damage;                     // "no_end 1, lost_packets 3"; empty where nothing is
  std::vector<Phase> phases;              // each of Report::phases
  std::optional<uint64_t> start_skew_ns;  // after the process that started first
  uint32_t clock_khz = 0;                 // highest of its devices' clocks; 0: unknown
};

// A device of one process beside the job's others: how long its kernels take. A launch is expected
// to take the median, over these devices, of the mean time of its signature in its range. Only
// launches count that were timed while no counters were read, of signatures that several devices
// have there; and none of communication, which waits for others.
struct RankSlowdown {
  size_t trace = 0;                // Report::traces
  std::optional<uint32_t> device;  // CUDA ordinal
  uint64_t timed_ns = 0;           // of these launches
  double usual_ns = 0;             // what they are expected to take; 0: there are none

  // Nothing where there is nothing to compare.
  std::optional<double> slowdown() const {
    return usual_ns > 0 ? std::optional(static_cast<double>(timed_ns) / usual_ns) : std::nullopt;
  }
};

struct RanksReport {
  std::optional<uint32_t> world_size;   // ranks of the job; nothing where no launcher said it
  std::vector<uint32_t> missing;        // of the job's, or else below the highest rank seen
  std::vector<uint32_t> repeated;       // that several recordings have
  std::vector<RankSlowdown> slowdowns;  // in the order of traces and their devices
};

}  // namespace flopinj::reduce
