#include <collector/writer/ledger_report.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace flopinj {

// Mid-run, launches - recorded - dropped are in flight: in a ring, or waiting for their time or for
// the next tally. In the last ledger nothing is in flight any more; a launch whose record never
// came (its thread was between counting and pushing when the recording ended) is dropped.
LedgerSnapshot LedgerReport::ledger(const Progress& at) const {
  LedgerSnapshot ledger;
  const std::vector<uint64_t>& recorded = at.output.recorded();
  const LossCounts::Snapshot losses = state_.losses.snapshot();
  const ThreadTotals totals = state_.threads.totals();
  auto reasons = losses.dropped_reasons;
  for (size_t d = 0; d < kDeviceSlots; ++d) {
    LedgerSnapshot::PerDevice device;
    device.device = DeviceId{static_cast<uint32_t>(d)};
    device.launches = totals.made[d] + losses.made[d];
    device.recorded = d < recorded.size() ? recorded[d] : 0;
    device.dropped = totals.ring_full[d] + losses.dropped[d];
    if (totals.ring_full[d] != 0) reasons["ring_full"] += totals.ring_full[d];
    const uint64_t settled = device.recorded + device.dropped;
    if (at.last && device.launches > settled) {
      reasons["unfinished_at_end"] += device.launches - settled;
      device.dropped = device.launches - device.recorded;
    }
    if (device.launches != 0) ledger.devices.push_back(device);
  }
  ledger.dropped.assign(reasons.begin(), reasons.end());
  if (at.merger.duplicates() != 0)
    ledger.duplicates.emplace_back("activity_record", at.merger.duplicates());
  if (totals.nested_calls != 0) ledger.duplicates.emplace_back("nested_call", totals.nested_calls);
  ledger.unseen.assign(losses.unseen_reasons.begin(), losses.unseen_reasons.end());
  ledger.windows_opened = state_.scheduler.windows_opened();
  ledger.windows_discarded = state_.scheduler.windows_discarded();
  ledger.activity_records = at.merger.activity_records();
  ledger.activity_unmatched = at.merger.activity_unmatched();
  ledger.activity_lost = state_.times.overflowed() + state_.copies.overflowed() + at.copies_lost;
  state_.control.with_edge([&] {
    if (state_.hooks.activity_lost) ledger.activity_lost += state_.hooks.activity_lost();
  });
  ledger.passed_over = totals.passed_over;
  ledger.names_cut = state_.paths.names_cut();
  ledger.names_generalised = state_.paths.names_generalised();
  ledger.ranges_overflowed = state_.paths.ranges_overflowed();
  const Coverage coverage = state_.scheduler.coverage();
  ledger.covered_launches = coverage.covered_launches;
  ledger.covered_gpu_time_ns = coverage.covered_gpu_ns;
  ledger.timed_gpu_time_ns = coverage.gpu_ns;
  ledger.measuring_stopped = state_.scheduler.stop_reason();
  return ledger;
}

OverheadSnapshot LedgerReport::overhead(const Progress& at) {
  OverheadSnapshot cost;
  const ThreadTotals totals = state_.threads.totals();
  cost.launch_callbacks = totals.callbacks;
  cost.launch_callback_ns = totals.callback_ns;
  timed_calls_ = {totals.timed_calls, totals.timed_call_ns};
  cost.window_ns = state_.scheduler.spent_ns();
  cost.window_count = state_.scheduler.windows_opened();
  cost.startup_ns = state_.startup_ns.load(std::memory_order_relaxed);
  state_.control.with_edge([&] {
    if (state_.hooks.thread_cpu_ns) cost.helper_cpu_ns = state_.hooks.thread_cpu_ns();
  });
  cost.bytes_written = at.writer.bytes();
  cost.wall_ns = state_.now() - at.output.began_ns();
  cost.real_wall_ns = state_.real_now() - at.output.began_real_ns();
  return cost;
}

// With everything that brings launches, and else once a second where something changed: an idle
// program adds nothing.
void LedgerReport::write(const Progress& at, bool everything) {
  const auto now = Clock::now();
  launches_written_ |= at.output.take_written();
  if (!everything && !launches_written_ && now < next_) return;
  next_ = now + std::chrono::seconds(1);
  LedgerSnapshot snapshot = ledger(at);
  if (!everything && !launches_written_ && snapshot == last_) return;
  launches_written_ = false;
  log_coverage(snapshot, at.last && everything);
  if (state_.config.level == Level::kTally) {
    at.writer.ledger(ledger_message_, snapshot);
    at.writer.self_overhead(overhead_message_, overhead(at));
  } else {
    at.writer.ledger(snapshot);
    at.writer.self_overhead(overhead(at));
  }
  last_ = std::move(snapshot);
}

// Each time coverage has grown by a step, and at the end.
void LedgerReport::log_coverage(const LedgerSnapshot& ledger, bool last) {
  static constexpr double kSteps[] = {0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1};
  const Coverage coverage = state_.scheduler.coverage();
  if (coverage.covered_launches == 0 || !state_.hooks.log_info) return;
  size_t steps = 0;
  while (steps < std::size(kSteps) && coverage.share() >= kSteps[steps]) ++steps;
  if (steps <= coverage_logged_ && !last) return;
  coverage_logged_ = steps;
  char text[400];
  std::snprintf(text, sizeof text,
                "counts are complete for %.1f %% of %s%s; windows %llu, of which %llu discarded, "
                "cost %.3f s%s%s",
                coverage.share() * 100, coverage.gpu_ns != 0 ? "GPU time" : "launches",
                coverage.unmeasurable_launches != 0 ? " that can be measured" : "",
                static_cast<unsigned long long>(ledger.windows_opened),
                static_cast<unsigned long long>(ledger.windows_discarded),
                static_cast<double>(state_.scheduler.spent_ns()) / 1e9,
                ledger.measuring_stopped.empty() ? "" : "; measuring has stopped: ",
                ledger.measuring_stopped.c_str());
  state_.control.with_edge([&] { state_.hooks.log_info(text); });
}

// What was lost besides launches, which the ledger has: said when it first occurs, its number at
// the end.
void LedgerReport::report_losses(const LaunchMerger& merger) {
  struct Loss {
    std::string_view code, message;
    uint64_t count;
  };
  const ThreadTotals totals = state_.threads.totals();
  const Loss losses[] = {
      {"table.signatures",
       "the table of kernels or of their shapes and parameters is full: launches of further ones "
       "are counted, and their work is not",
       state_.signatures.overflowed()},
      {"nvtx.unmatched_end", "an NVTX range was closed that was not open",
       state_.process_ranges.unknown_ends() + totals.unmatched_pops},
      {"nvtx.too_deep",
       "an NVTX range was opened deeper than ranges are recorded: launches in it are of the "
       "deepest "
       "recorded one",
       totals.too_deep},
      {"nvtx.in_signal_handler",
       "a signal handler called NVTX while the profiler was at work on its thread: the call was "
       "left out",
       state_.interrupting_ranges.load(std::memory_order_relaxed)},
      {"steps.lost",
       "training steps ended faster than they are written: some are in no count of steps",
       state_.steps.lost()},
      {"ranges.numbers_lost",
       "the program gave numbers to more ranges than are kept, or their sum is too large: some are "
       "in no sum",
       state_.range_numbers.lost()},
      {"activity.no_time", "CUPTI has a record of a kernel without its time", merger.unusable()},
      {"activity.in_windows",
       "kernels in measurement windows have no GPU time, or one from before their launch, and "
       "others have theirs: CUPTI's records do not go together with its counters here. FLOP are "
       "counted; the time of these launches is not known",
       merger.timeless_in_windows()},
  };
  static_assert(std::size(losses) == std::tuple_size_v<decltype(losses_reported_)>);
  for (size_t i = 0; i < std::size(losses); ++i) {
    const uint64_t before = std::exchange(losses_reported_[i], losses[i].count);
    if (losses[i].count > before)
      state_.diagnostics.push(Severity::kInfo, losses[i].code, losses[i].message, state_.now(),
                              losses[i].count - before);
  }
}

void LedgerReport::write_diagnostics(TraceWriter& writer, bool last) {
  for (const Diagnostic& said : state_.diagnostics.take(state_.now(), last))
    writer.diagnostic(said);
}

}  // namespace flopinj
