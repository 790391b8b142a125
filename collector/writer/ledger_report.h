// What the trace says about losses and costs: the ledger, our own cost, diagnostics. Used by the
// writer thread.
#pragma once
#include <collector/trace/launch_output.h>
#include <collector/trace/ledger.h>
#include <collector/trace/trace_writer.h>
#include <collector/writer/collector_state.h>
#include <collector/writer/launch_merger.h>

#include <array>
#include <chrono>
#include <cstdint>

namespace flopinj {

class LedgerReport {
 public:
  // Where the recording is. `last`: nothing is in flight any more.
  struct Progress {
    TraceWriter& writer;
    LaunchOutput& output;
    const LaunchMerger& merger;
    uint64_t copies_lost = 0;
    bool last = false;
  };
  // Launch calls outside of windows, as of the last time that our cost was written.
  struct TimedCalls {
    uint64_t calls = 0, ns = 0;
  };

  explicit LedgerReport(CollectorState& state) : state_(state) {}

  void write(const Progress&, bool everything);
  // Losses that are in no ledger become diagnostics.
  void report_losses(const LaunchMerger&);
  void write_diagnostics(TraceWriter&, bool last);
  const TimedCalls& timed_calls() const { return timed_calls_; }
  const LedgerSnapshot& written() const { return last_; }

 private:
  using Clock = std::chrono::steady_clock;
  LedgerSnapshot ledger(const Progress&) const;
  OverheadSnapshot overhead(const Progress&);
  void log_coverage(const LedgerSnapshot&, bool last);

  CollectorState& state_;
  TimedCalls timed_calls_;
  size_t coverage_logged_ = 0;  // steps of coverage that were logged
  std::array<uint64_t, 8> losses_reported_{};
  RevisedMessage ledger_message_{RevisedMessage::kLedger};
  RevisedMessage overhead_message_{RevisedMessage::kOverhead};
  LedgerSnapshot last_;
  bool launches_written_ = false;  // since the last ledger
  Clock::time_point next_ = Clock::now();
};

}  // namespace flopinj
