// The collector: everything between the edge's callbacks and the sink. One per process, owned by
// the injector's session.
//
// Life: construct (no threads, nothing opened), start() once, then record; close() once.
// A launch goes
//   edge -> thread_state() -> signature() -> [window] -> record() -> ring -> writer thread ->
//   LaunchMerger -> LaunchColumns or tally -> TraceWriter -> Sink
// docs/architecture.md has it in full.
//
// Errors: nothing here throws across its interface. What cannot be done is counted in the ledger or
// reported by diagnostic(); after the sink failed the collector keeps draining and drops.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/copy_time.h>
#include <collector/identity/graph_table.h>
#include <collector/identity/launch.h>
#include <collector/identity/launch_record.h>
#include <collector/identity/recording.h>
#include <collector/identity/signature_table.h>
#include <collector/ranges/process_ranges.h>
#include <collector/ranges/range_numbers.h>
#include <collector/ranges/range_path_table.h>
#include <collector/schedule/metric_plan.h>
#include <collector/schedule/scheduler.h>
#include <collector/trace/sample_batch.h>
#include <collector/trace/sink/sink.h>
#include <collector/writer/collector_config.h>
#include <collector/writer/thread_state.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

struct CollectorState;

class Collector {
 public:
  Collector(const CollectorConfig&, CollectorHooks);
  ~Collector();  // close(kExit) if that was not done

  // Takes the sink and starts the writer thread, which writes the header at once. False when the
  // thread cannot be started.
  bool start(std::unique_ptr<Sink>, const ProcessInfo&);
  // The header is in the sink, or has failed to come there. False: not after `at_most`, as where
  // nobody reads what the sink writes.
  bool await_header(std::chrono::milliseconds at_most);
  // Drains and writes everything, the End packet last, and stops the writer thread. Returns after
  // at most close_timeout_ms (and a moment), done or not: a writer that is stuck in its sink is
  // left behind and calls no hook any more: then the result is false. Launches recorded after
  // close() began are ignored. Idempotent.
  bool close(EndReason);
  // In a forked child: forget everything without touching locks, threads or the sink's buffers;
  // only the sink's descriptor is closed, so that its reader does not wait for the child. The
  // object is dead after: every call does nothing and returns null, except paths(),
  // process_ranges(), range_numbers() and scheduler(), which must not be used.
  void abandon_after_fork() noexcept;

  // --- Any thread, cold: locks, may allocate
  ThreadState* add_thread(
      uint32_t os_tid);              // null past kMaxThreads; freed after retire_thread and a drain
  void retire_thread(ThreadState*);  // on the thread itself, its last call
  // A device's id is its CUDA ordinal + 1, so that streams can name it before it is described.
  // Written once per id.
  void add_device(DeviceId, const DeviceInfo&);
  // The same id for the same stream; 0 past a bound.
  StreamId add_stream(DeviceId, uint32_t context, uint32_t stream, bool green_context = false);
  const Signature* signature(SignatureId) const noexcept;   // null: none has this id
  const KernelFunction* add_function(const FunctionInfo&);  // null past a bound
  // One version of an executable graph; identical ones share an id. 0 past a bound: its launches
  // are then dropped.
  GraphId add_graph(std::vector<GraphNode>);
  // Groups that are unavailable are described in the trace, and have id 0. So are all where the
  // scheduler has no room for them; a diagnostic says so.
  std::vector<GroupId> add_plan(DeviceId, const std::string& chip,
                                const std::vector<MetricGroupPlan>&);
  uint64_t launches_made() const;  // so far, by all threads
  RecordingProgress progress() const;
  // Each code is written once, then counted.
  void diagnostic(Severity, std::string_view code, std::string_view message, uint64_t times = 1);
  // A launch beside which work may have run that is in no count (see FORMAT.md for the reasons).
  void count_unseen(std::string_view reason, uint64_t by = 1);
  // Launches that the program made and that are not given to record(): they count as made and as
  // dropped.
  void count_dropped(std::string_view reason, DeviceId, uint64_t by);
  // A call of NVTX that a signal handler made inside one of ours: nothing is done for it.
  // Async-signal-safe.
  void count_interrupting_range() noexcept;
  // On the program's threads: until it recorded, or what one has waited since.
  void add_startup_ns(uint64_t);

  RangePathTable& paths();
  ProcessRanges& process_ranges();
  RangeNumbers& range_numbers();
  MeasurementScheduler& scheduler();

  // --- The launch path: the calling thread's own state; no lock, no allocation, no system call on
  // a hit

  // Null only where there is no memory or no room for a new one.
  const Signature* signature(ThreadState&, const KernelFunction&, const LaunchShape&,
                             const ParameterValues&);
  // Of the same launch in another cluster; null likewise.
  const Signature* with_cluster(const Signature&, const std::array<uint32_t, 3>& cluster);
  // A launch that succeeded. `launches` is 1, or the number of kernel nodes of a graph launch
  // without those in conditional bodies. What finds no room in the ring is dropped and counted.
  void record(ThreadState&, DeviceId, const LaunchRecord&, uint32_t launches = 1);

  // --- CUPTI's threads
  void times(std::span<const KernelTime>);  // copies; bounded queue, what finds no room is counted
  void copies(std::span<const CopyTime>);   // likewise
  void samples(SampleBatch);                // a window's counters; likewise

  // For tests: everything recorded so far is written when it returns (at most
  // close_timeout_ms later), timed or not.
  void flush();

 private:
  const Signature* interned(const KernelFunction&, const LaunchShape&, uint64_t fingerprint);

  CollectorState* state_;  // shared with the writer thread, see collector_state.h
  pthread_t writer_{};
  Sink* sink_ = nullptr;  // the writer's, for abandon_after_fork()
  Mutex life_;            // start() and close()
  std::atomic<bool> started_{false};
  bool closed_ FLOPINJ_GUARDED_BY(life_) = false;
  std::atomic<bool> dead_{false};  // in a forked child
};

}  // namespace flopinj
