// The writer thread: drains the rings, joins launches with times, and writes.
//
// One flush is one group of packets, handed to the sink in one piece: devices and metric groups,
// definitions, launches or tallies, samples, diagnostics, ledger, our own cost. Within a group, as
// in the whole trace, a definition comes before its use: what uses ids is taken first, then the
// definitions, each kind before the kinds it refers to.
#pragma once
#include <collector/trace/tally.h>
#include <collector/trace/trace_writer.h>
#include <collector/writer/collector_state.h>
#include <collector/writer/launch_counts.h>
#include <collector/writer/launch_merger.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace flopinj {

class WriterLoop {
 public:
  WriterLoop(CollectorState&, std::unique_ptr<Sink>, const ProcessInfo&);
  void run() noexcept;  // until the collector closes

 private:
  using Clock = std::chrono::steady_clock;
  struct ThreadName {
    std::string text;
    bool defined = false;
  };

  // writer_loop.cpp
  void step(const WriterControl::Request&);
  void drain();
  void take(const ThreadState&, const RingRecord&);
  void take_graph(const LaunchMerger::Origin&, const LaunchRecord&, uint32_t counted);
  void tell_scheduler();
  void write_samples(std::vector<SampleBatch>&);
  void count_unseen(uint32_t flags);
  void flush(bool everything);
  void finish(EndReason);
  void fail(
      const std::string& why) noexcept;  // once; from then on everything is drained and dropped
  // writer_release.cpp
  void release(bool everything);
  void add_launch(const LaunchMerger::Origin&, const TimedLaunch&);
  void write_columns();
  void make_room_in_tally();
  void write_late_times(uint64_t since_ns);
  void write_blocks();
  void write_tally(bool everything);
  // writer_definitions.cpp
  void write_definitions();
  void name_threads();
  void define_thread(ThreadId, uint32_t os_tid, const std::string& name);
  // writer_ledger.cpp
  void write_ledger(bool everything);
  LedgerSnapshot ledger_snapshot(bool last);
  OverheadSnapshot overhead_snapshot();
  void report_losses();
  void write_diagnostics(bool last);
  void log_coverage(const LedgerSnapshot&, bool last);

  CollectorState& state_;
  const ProcessInfo process_;
  TraceWriter writer_;
  LaunchMerger merger_;
  LaunchCounts counts_;
  uint64_t timed_calls_ = 0,
           timed_call_ns_ = 0;  // launch calls outside of windows, at the last flush
  size_t coverage_logged_ = 0;  // steps of coverage that were told
  std::array<uint64_t, 3> losses_reported_{};
  const uint64_t began_ns_;
  bool failed_ = false, closing_ = false;
  Clock::time_point next_flush_;

  std::vector<ThreadState*> threads_;  // as listed by the last drain
  std::vector<KernelTime> times_;

  std::unordered_map<uint64_t, LaunchColumns> columns_;  // by thread and stream
  Tally tally_;
  uint64_t tally_written_ns_ = 0;
  // Level tally: one message per block of the tally.
  std::vector<RevisedMessage> tally_messages_;
  uint32_t next_key_ = 3;
  RevisedMessage ledger_message_{1}, overhead_message_{2};

  SignatureId last_signature_;
  FunctionId last_function_;
  PathId last_path_;
  StringId last_string_;
  std::unordered_map<uint32_t, ThreadName> names_;  // by thread id, of threads that launched
  std::vector<ThreadDefinition> new_threads_;
  Clock::time_point next_naming_;

  // Launches per device slot that left the merger, and those of them that are in packets.
  std::array<uint64_t, kDeviceSlots> released_{}, recorded_{};
  LedgerSnapshot last_ledger_;
  Clock::time_point next_ledger_;
  bool wrote_launches_ = false;  // since the last ledger
};

}  // namespace flopinj
