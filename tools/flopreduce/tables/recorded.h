// What one process's recorder says of itself and its recording.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "flop_trace.pb.h"
#include "support/wide.h"
#include "tables/energy_readings.h"

namespace flopinj::reduce {

// Coverage as it grew while recording: how much of the work had complete counts, by the recorder's
// own ledgers (Ledger.covered_launches and its neighbours in the format).
struct CoveragePoint {
  uint64_t launches = 0;  // recorded until then
  uint64_t covered_launches = 0;
  uint64_t timed_gpu_time_ns = 0, covered_gpu_time_ns = 0;
};

inline CoveragePoint coverage_at(const trace::Ledger& ledger) {
  CoveragePoint at;
  for (const auto& device : ledger.device()) add_saturating(at.launches, device.recorded());
  at.covered_launches = ledger.covered_launches();
  at.timed_gpu_time_ns = ledger.timed_gpu_time_ns();
  at.covered_gpu_time_ns = ledger.covered_gpu_time_ns();
  return at;
}

// The first ledger at which recorded launches had reached each power of two: at most 64, however
// long the recording. Only of these are the same ones kept.
class CoverageGrowth {
 public:
  // In the order they were written. True for one that is kept.
  bool add(const trace::Ledger& ledger) {
    const CoveragePoint at = coverage_at(ledger);
    const uint64_t before = points_.empty() ? 0 : points_.back().launches;
    if (std::bit_width(at.launches) <= std::bit_width(before)) return false;
    points_.push_back(at);
    return true;
  }
  const std::vector<CoveragePoint>& points() const { return points_; }

 private:
  std::vector<CoveragePoint> points_;
};

inline const std::string& last_word(const trace::Diagnostic& said) {
  return said.last_message().empty() ? said.message() : said.last_message();
}

struct Recorded {
  bool has_header = false, has_end = false, has_ledger = false, has_overhead = false;
  trace::Header header;
  trace::End end;
  trace::Ledger ledger;
  trace::SelfOverhead overhead;
  trace::Energy energy;
  EnergyReadings energy_readings;  // where single steps are asked for
  trace::CopySums copy_sums;
  CoverageGrowth coverage_growth;  // nothing at level tally, where ledgers replace each other
  std::vector<trace::Diagnostic> diagnostics;
  uint64_t diagnostics_left_out = 0;

  std::optional<uint32_t> rank() const {
    if (!has_header || header.rank() < 0) return std::nullopt;
    return static_cast<uint32_t>(header.rank());
  }
  // The recorder wrote all that it had to: the last ledger agrees with the rows.
  bool complete() const { return has_end && end.reason() != trace::End::FAILURE; }
  // By the host's clock, CLOCK_REALTIME.
  std::optional<uint64_t> start_ns() const {
    if (!has_header || header.clock_realtime_ns() == 0) return std::nullopt;
    return header.clock_realtime_ns();
  }
  // Where its first steps are skipped: from when on it counts, on its clock.
  uint64_t counts_from_ns = 0;

  // When the time that counts begins, on the trace's clock; 0 where nothing says it.
  uint64_t begin_ns() const { return std::max(header.clock_trace_ns(), counts_from_ns); }
  // From then to the end of the recording; nothing where it does not say. All wall times of a
  // report are this one.
  std::optional<uint64_t> wall_ns() const {
    const std::optional<uint64_t> all = recorded_ns();
    if (!all || counts_from_ns == 0) return all;
    const uint64_t before = begin_ns() - header.clock_trace_ns();
    return before < *all ? std::optional(*all - before) : std::nullopt;
  }
  // From the start of the recording to its end, whatever is skipped.
  std::optional<uint64_t> recorded_ns() const {
    if (has_header && has_end && header.clock_trace_ns() != 0 &&
        end.time_ns() > header.clock_trace_ns())
      return end.time_ns() - header.clock_trace_ns();
    if (has_overhead && overhead.wall_ns() != 0) return overhead.wall_ns();
    return std::nullopt;
  }
  // Of it, what the profiler took of the program's threads: both in real time.
  std::optional<uint64_t> real_wall_ns() const {
    if (!header.simulated_clock()) return recorded_ns();
    if (has_overhead && overhead.real_wall_ns() != 0) return overhead.real_wall_ns();
    return std::nullopt;
  }
  // Not known where another program made the recording: our recorder always writes bytes.
  std::optional<u128> own_ns() const {
    const bool ours = overhead.launch_callbacks() > 0 || overhead.launch_callback_ns() > 0 ||
                      overhead.startup_ns() > 0 || overhead.bytes_written() > 0;
    if (!has_overhead || !ours) return std::nullopt;
    return u128{overhead.launch_callback_ns()} + overhead.window_ns() + overhead.startup_ns();
  }
};

}  // namespace flopinj::reduce
