#include <collector/trace/closing_line.h>

#include <cstdio>

#include "number_text.h"
#include "shell_word.h"

namespace flopinj {
namespace {

// Never "100 %" or "0 %" of what is not all or nothing.
std::string share_text(uint64_t part, uint64_t all) {
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(all);
  if (percent > 99.9 && part < all) return "over 99.9 %";
  if (percent < 0.1 && part > 0) return "under 0.1 %";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", percent);
  return text;
}

// Only what the recorder knows. Which FLOP counters that were read come to, and whether a metric
// covers all that a kernel does, flopreduce works out.
std::string coverage_text(const LedgerSnapshot& ledger, uint64_t launches,
                          const ProcessInfo& process) {
  if (!process.counters) return "no counters (mode " + process.mode + ")";
  if (!process.measures) return "counters are left to the ranks that measure";
  if (ledger.covered_launches == 0) return "counters read for no kernel";
  if (ledger.covered_launches >= launches) return "counters read for all kernels";
  const bool of_time =
      ledger.timed_gpu_time_ns != 0 && ledger.covered_gpu_time_ns < ledger.timed_gpu_time_ns;
  return "counters read for kernels of " +
         (of_time
              ? share_text(ledger.covered_gpu_time_ns, ledger.timed_gpu_time_ns) + " of GPU time"
              : share_text(ledger.covered_launches, launches) + " of launches");
}

}  // namespace

uint64_t launches_in(const RecordingSummary& summary) {
  uint64_t launches = 0;
  for (const auto& device : summary.ledger.devices) launches += device.launches;
  return launches;
}

std::string closing_line(const RecordingSummary& summary, const ProcessInfo& process,
                         const TraceNames& names) {
  const uint64_t launches = launches_in(summary);
  uint64_t dropped = 0;
  for (const auto& device : summary.ledger.devices) dropped += device.dropped;
  std::string line;
  if (process.rank >= 0 && process.world_size > 1)
    line =
        "rank " + std::to_string(process.rank) + " of " + std::to_string(process.world_size) + " ";
  line += "recorded ";
  if (launches == 0) {
    line += "no kernel launch";
  } else {
    line += number_text(launches) + (launches == 1 ? " launch, " : " launches, ");
    line += coverage_text(summary.ledger, launches, process);
    if (dropped != 0) line += ", " + number_text(dropped) + " lost";
  }
  line += " (" + size_text(summary.bytes) + "). ";
  if (names.name == "-") return line + "Read it with flopinj report";
  if (names.name.starts_with("unix:")) return line + "Its reader at " + names.name + " has it";
  return line + "Next: flopinj report " +
         shell_quoted(names.others.empty() ? names.name : names.others,
                      names.others.empty() ? "" : "*");
}

}  // namespace flopinj
