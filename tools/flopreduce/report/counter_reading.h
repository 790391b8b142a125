// What became of a process's request to read counters.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "flop_trace.pb.h"

namespace flopinj::reduce {

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

// `samples`: the trace has samples of counters.
CounterReport counter_reading(const trace::Header& header, bool samples,
                              const std::vector<trace::Diagnostic>& diagnostics);

}  // namespace flopinj::reduce
