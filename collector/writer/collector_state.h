// What the collector's callers and its writer thread share. Private to the collector.
#pragma once
#include <collector/identity/graph_table.h>
#include <collector/identity/signature_table.h>
#include <collector/ranges/process_ranges.h>
#include <collector/ranges/range_numbers.h>
#include <collector/ranges/range_path_table.h>
#include <collector/ranges/steps.h>
#include <collector/schedule/scheduler.h>
#include <collector/writer/collector_config.h>
#include <collector/writer/inbox.h>
#include <collector/writer/loss_counts.h>
#include <collector/writer/thread_registry.h>
#include <collector/writer/writer_control.h>

#include <atomic>
#include <utility>

namespace flopinj {

struct CollectorState {
  CollectorState(const CollectorConfig& c, CollectorHooks h) : config(c), hooks(std::move(h)) {}

  const CollectorConfig config;
  const CollectorHooks hooks;

  RangePathTable paths;
  const RangeFilter range_filter{config.ranges, paths};
  Steps steps{config.step_range, [this] { return now(); }};
  RangeNumbers range_numbers;
  ProcessRanges process_ranges{paths, config.ranges.empty() ? nullptr : &range_filter, &steps};
  const KernelNames kernel_names{config.kernel_name, config.kernel_name_base};
  SignatureTable signatures{
      NeverMeasured(config.never_measure),
      [this](const std::string& mangled) { return kernel_names.contain(mangled); }};
  MeasurementScheduler scheduler{config.scheduler, signatures};
  GraphTable graphs;
  ThreadRegistry threads;

  TimeQueue times;
  CopyQueue copies;
  SampleQueue samples;
  DiagnosticQueue diagnostics;
  DescriptionQueue descriptions;
  LossCounts losses;
  std::atomic<uint64_t> startup_ns{0};
  std::atomic<uint64_t> trace_bytes{0};          // flushed
  std::atomic<uint64_t> interrupting_ranges{0};  // calls of NVTX in a signal handler, left out

  std::atomic<bool> accepting{true};  // false once closing: launches are not ours to count any more
  WriterControl control;

  uint64_t now() const;          // by the trace's clock
  uint64_t program_now() const;  // the scheduler's clock
  uint64_t real_now() const;

  // Shared by the Collector and the writer thread, which may outlive it when it is stuck. Counted
  // here and not in a shared_ptr, because a forked child has to forget its share without touching
  // anything else.
  void release() {
    if (owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  std::atomic<int> owners{1};
};

}  // namespace flopinj
