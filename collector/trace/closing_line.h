// The line that a user reads when a recording has ended: its size, and the next command.
#pragma once
#include <collector/identity/recording.h>
#include <collector/trace/ledger.h>

#include <cstdint>
#include <string>

namespace flopinj {

struct RecordingSummary {
  uint64_t bytes = 0;  // of the trace
  LedgerSnapshot ledger;
};

struct TraceNames {
  std::string name;    // as it was opened
  std::string others;  // shell pattern for it and the job's other ranks; empty: there is none
};

uint64_t launches_in(const RecordingSummary&);

// "recorded 700 launches, counters read for all kernels (26.5 kB). Next: flopinj report demo.pb"
std::string closing_line(const RecordingSummary&, const ProcessInfo&, const TraceNames&);

}  // namespace flopinj
