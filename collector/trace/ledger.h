// What became of every launch, and what we cost. Snapshots for the trace; cumulative.
#pragma once
#include <collector/identity/ids.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace flopinj {

struct LedgerSnapshot {
  struct PerDevice {
    DeviceId device;
    uint64_t launches = 0, recorded = 0, dropped = 0;
    bool operator==(const PerDevice&) const = default;
  };
  std::vector<PerDevice> devices;
  std::vector<std::pair<std::string, uint64_t>> dropped, duplicates, unseen;  // by reason
  uint64_t windows_opened = 0, windows_discarded = 0;
  uint64_t activity_records = 0, activity_unmatched = 0, activity_lost = 0;
  uint64_t names_cut = 0, names_generalised = 0, ranges_overflowed = 0;
  uint64_t passed_over = 0;  // launches that the user's choice leaves out
  uint64_t covered_launches = 0, covered_gpu_time_ns = 0, timed_gpu_time_ns = 0;
  std::string measuring_stopped;  // why; empty while it goes on
  bool operator==(const LedgerSnapshot&) const = default;
};

struct OverheadSnapshot {
  uint64_t launch_callbacks = 0, launch_callback_ns = 0;
  uint64_t window_ns = 0, window_count = 0;
  uint64_t startup_ns = 0, helper_cpu_ns = 0, bytes_written = 0;
  uint64_t wall_ns = 0, real_wall_ns = 0;  // by the trace's clock, and in real time
};

}  // namespace flopinj
