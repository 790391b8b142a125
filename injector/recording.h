// One recording of the process, from its start to its end; a process may have several, one after
// another, each with a trace and tables of its own. What is learned of handles, kernels and ranges
// ends with it: how they change while nothing is recorded is not seen.
//
// The session (session.h) makes it, publishes its edge, and frees it when no thread is inside.
#pragma once
#include <collector/trace/closing_line.h>
#include <injector/activity/activity.h>
#include <injector/process/edge.h>
#include <injector/process/energy_meter.h>
#include <injector/process/metrics_file.h>
#include <injector/tracer.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace flopinj {

class Recording {
 public:
  enum class Begin : uint8_t { kWithProgram, kLater, kFromInside, kInCaptureRange };
  // Range tables only: nothing is opened, no thread is made. `program_ended` is asked once a second
  // on the writer's thread (CollectorHooks).
  Recording(const Settings&, Begin, std::function<bool()> program_ended);

  Edge& edge() { return edge_; }

  // It begins in three steps. Each is false where it fails, with one line in `error`.
  // CUPTI is found and subscribed to.
  bool connect(std::string& error);
  // Opens the trace and starts the writer.
  bool open(std::string& error);
  // CUPTI's callbacks, once the edge is published.
  bool enable(std::string& error);
  // One of them has failed, or has thrown: ends what they had begun. False: as of close().
  bool give_up() noexcept;

  // Measures nothing more, and waits, 5 s at most, for what the end of measuring could spoil or
  // have to wait for: streams under capture, and work that waits where counters are held.
  void await_quiet();
  // Launches are no longer ours: windows are closed, their counters and the last energy read, our
  // other threads ended.
  void stop_taking() noexcept;
  // After stop_taking(), as the program ends or goes on: the writer asks for the last times, writes
  // what is left and the End packet; then CUPTI is let go. False: the writer or the planner did not
  // end, and may be inside CUPTI, which is then not called any more; the recording must not be
  // freed. `programs_thread`: the caller is a thread of the program's (Tracer::end_and_finalize).
  bool close() noexcept;
  bool detach(bool programs_thread) noexcept;
  // The program ends, and something keeps the thread that begins or ends the recording: CUPTI, most
  // likely, which is not called any more. The trace says so, unless the writer is kept too.
  void leave() noexcept;
  void abandon_after_fork() noexcept { collector_->abandon_after_fork(); }

  const std::string& output() const { return output_; }
  uint64_t began_monotonic_ns() const { return began_ns_; }

 private:
  CollectorHooks hooks(std::function<bool()> program_ended);
  ProcessInfo describe();
  void check_nvtx_variable();
  void say_what_is_missing();
  void open_metrics_file();
  void write_metrics();

  Edge edge_;
  EnergyMeter energy_{[this] { return edge_.now_ns(); }};
  MetricsFile metrics_;  // the writer's, once it has started
  ProcessInfo process_;  // from connect() on
  std::unique_ptr<Collector> collector_;
  std::optional<Activity> activity_;
  std::optional<Tracer> tracer_;
  std::atomic<bool> left_{false};
  bool metrics_failed_ = false;
  std::function<void(const RecordingSummary&)> closing_;  // set before the writer starts
  std::string output_;
  uint64_t began_ns_ = 0;
};

}  // namespace flopinj
