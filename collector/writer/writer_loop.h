// The writer thread: drains the rings, joins launches with times, and writes.
//
// One flush is one group of packets, handed to the sink in one piece: devices and metric groups,
// definitions, launches or tallies, samples, diagnostics, ledger, our own cost. Within a group, as
// in the whole trace, a definition comes before its use: what uses ids is taken first, then the
// definitions, each kind before the kinds it refers to.
#pragma once
#include <collector/base/host_clock.h>
#include <collector/trace/copy_output.h>
#include <collector/trace/launch_output.h>
#include <collector/trace/step_output.h>
#include <collector/trace/trace_writer.h>
#include <collector/writer/collector_state.h>
#include <collector/writer/definition_feed.h>
#include <collector/writer/launch_counts.h>
#include <collector/writer/launch_merger.h>
#include <collector/writer/ledger_report.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace flopinj {

class WriterLoop {
 public:
  WriterLoop(CollectorState&, std::unique_ptr<Sink>, const ProcessInfo&);
  void run() noexcept;  // until the collector closes

 private:
  using Clock = std::chrono::steady_clock;

  void step(const WriterControl::Request&);
  void drain();
  void take(ThreadState&, const RingRecord&);
  void take_graph(const LaunchMerger::Origin&, const LaunchRecord&, const Pause&, uint32_t counted);
  void count_unseen(uint32_t flags);
  // Launches that have their times, or have waited for them long enough, go on into the output.
  void release(bool everything);
  void write_samples(std::vector<SampleBatch>&);
  void write_energy(bool everything);
  void tell_scheduler();
  void flush(bool everything);
  void finish(EndReason);
  bool program_ended() noexcept;
  void fail_to_write();
  // Once; from then on everything is drained and dropped.
  void fail(const std::string& why) noexcept;

  CollectorState& state_;
  const ProcessInfo process_;
  TraceWriter writer_;
  HostClock host_clock_;
  LaunchMerger merger_;
  LaunchCounts counts_;
  LaunchOutput output_;
  StepOutput steps_;
  CopyOutput copies_;
  DefinitionFeed definitions_;
  LedgerReport ledger_;
  bool failed_ = false, closing_ = false;
  uint64_t written_ns_ = 0;  // when what the trace has was written last
  // By CollectorState::real_now().
  uint64_t next_flush_ns_;
  Clock::time_point next_look_, next_energy_;
  RevisedMessage energy_{RevisedMessage::kEnergy};
  uint64_t bytes_at_energy_ = 0;

  std::vector<ThreadState*> threads_;  // as listed by the last drain
  std::vector<KernelTime> times_;
  std::vector<CopyTime> copy_times_;
};

}  // namespace flopinj
