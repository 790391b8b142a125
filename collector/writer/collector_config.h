// What the collector gets from its owner: how to record, and what the owner does for it.
#pragma once
#include <collector/identity/recording.h>
#include <collector/options/kernel_names.h>
#include <collector/ranges/range_filter.h>
#include <collector/schedule/scheduler.h>
#include <collector/trace/closing_line.h>
#include <collector/writer/thread_state.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace flopinj {

struct CollectorConfig {
  Level level = Level::kLaunches;
  bool expect_times = true;  // false: launches are written without waiting for activity records
  uint32_t drain_period_ms = 10;
  uint32_t flush_period_ms = 250;     // a launch is in the file at most 3 flushes after it was made
  uint32_t close_timeout_ms = 5'000;  // close() gives up on a sink that does not take the rest
  uint32_t ring_records = kRingRecords;  // per launching thread; rounded up to a power of two
  SchedulerConfig scheduler;
  // Which launches are recorded (kernel_names.h, range_filter.h).
  std::string kernel_name;
  KernelNameBase kernel_name_base = KernelNameBase::kFunction;
  std::vector<RangeExpression> ranges;
  std::string step_range;                  // see Steps
  std::vector<std::string> never_measure;  // patterns beside the built-in ones (never_measured.h)
};

// What the collector needs done by the edge; any of them may be empty. Called on the writer thread,
// except where it says otherwise, and not at all once close() has returned.
struct CollectorHooks {
  std::function<void()> thread_started;  // name the thread; its signals are blocked already
  std::function<void()> thread_ended;    // the thread's last call
  // True where the program's threads have all ended and its process lives on for ours. The writer
  // then writes what is left and ends. Asked once a second.
  std::function<bool()> program_ended;
  // Ask CUPTI for finished activity buffers; calls times() before it returns.
  std::function<void()> flush_times;
  std::function<uint64_t()> now_ns;          // the trace's clock; any thread
  std::function<uint64_t()> clock_error_ns;  // most difference to the clock of kernels' times
  // What the program takes its time on, for what measuring may cost; empty: real_ns.
  std::function<uint64_t()> program_ns;
  std::function<uint64_t()> real_ns;        // what paces the writer; empty: the trace's clock
  std::function<uint64_t()> thread_cpu_ns;  // CPU time of the calling thread
  // Current name; empty when the thread is gone. Also called by retire_thread(), on the thread that
  // is ending.
  std::function<std::string(uint32_t os_tid)> thread_name;
  // Of each device, until now. Asked once a second while there are launches, and at the end.
  std::function<std::vector<DeviceEnergy>()> energy;
  std::function<uint64_t()> activity_lost;  // CUPTI's count of dropped records; cumulative
  // One line for the user's stderr, at most once per cause.
  std::function<void(std::string_view)> log_error;
  std::function<void(std::string_view)> log_info;       // how coverage grows
  std::function<void(const RecordingSummary&)> closed;  // at exit: the trace is whole
  std::function<void()> cut;  // writing has failed, which log_error has said
};

}  // namespace flopinj
