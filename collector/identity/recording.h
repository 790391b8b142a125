// A recording: what is asked of it, the process and devices it is of, and how it ends. Plain
// values, no vendor types.
#pragma once
#include <collector/identity/ids.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace flopinj {

enum class Level : uint8_t { kLaunches, kTally };

// How much is asked of the hardware. Degradation moves down this list, never up.
enum class Mode : uint8_t { kOff, kCount, kTiming, kMultiplex, kFull };
// Whether counters are read at all.
constexpr bool reads_counters(Mode mode) { return mode >= Mode::kMultiplex; }

struct DeviceInfo {
  std::string name, chip;
  uint32_t compute_major = 0, compute_minor = 0, multiprocessors = 0;
  uint64_t memory_bytes = 0;
  uint32_t clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
  std::array<uint8_t, 16> uuid{};
};

// A word by which a job is found again.
struct Label {
  std::string name, value;
  std::string source;  // the environment variable it came from
};

struct ProcessInfo {
  uint32_t pid = 0;
  std::string hostname;
  std::vector<std::string> command_line;
  int32_t rank = -1;
  std::string rank_source;
  uint32_t world_size = 0;  // ranks of the job; 0: no launcher says how many
  std::string job_id;       // as a scheduler or the user names it; empty: neither does
  std::string job_id_source;
  // How often it was started again before, by its scheduler and by torchrun.
  uint32_t requeues = 0, restarts = 0;
  uint64_t run_id = 0;        // of flopinj run that started it; 0: another way
  std::vector<Label> labels;  // each name once
  bool simulated = false;
  bool simulated_clock = false;  // time stamps are simgpu's: real time does not move them
  bool ptx_counts = false;       // instructions that are counted are PTX's
  uint32_t cupti_version = 0, driver_version = 0;
  bool counters = false;
  bool copies = false;  // of memory are recorded
  uint64_t clock_trace_ns = 0, clock_realtime_ns = 0, clock_monotonic_ns = 0;
  uint64_t session_id = 0;
  std::string mode;            // as the user names it
  bool measures = false;       // this process of the job reads counters
  double budget_percent = 0;   // of wall time; 0: without limit
  std::string imported_from;   // another profiler, which recorded it; empty: we did
  uint32_t clock_unit_ns = 0;  // nothing finer is known of its times; 0: they are whole ns
  // The options by which launches were chosen, as a user writes them; empty: all are recorded.
  std::string choice;
};

// The energy that a device took between two readings of its counter, on the trace's clock.
struct DeviceEnergy {
  DeviceId device;
  uint64_t begin_ns = 0, end_ns = 0;  // of the first reading and of the last one
  uint64_t millijoules = 0;           // in between
  uint64_t updates = 0;               // readings that differed from the one before
  std::string unavailable;            // not empty: why it is not known
};

enum class Severity : uint8_t { kInfo, kWarning, kError };

// All that was said by one code.
struct Diagnostic {
  Severity severity = Severity::kInfo;  // the worst
  std::string code, message;            // the first one
  uint64_t time_ns = 0, times = 1;
  std::string last_message;  // empty: as the first
  uint64_t last_time_ns = 0;
};
// As End.reason in the format.
enum class EndReason : uint8_t { kExit = 0, kDetach = 1, kFailure = 2 };

// How far a recording is. Launches are of all threads so far; the rest is as of the last flush.
struct RecordingProgress {
  uint64_t launches = 0, dropped = 0;
  uint64_t trace_bytes = 0;
  double covered = 0;         // share of GPU time (of launches, without times) with complete counts
  uint64_t callback_ns = 0;   // in launch callbacks, by a sample of them
  uint64_t measuring_ns = 0;  // spent on windows
  uint64_t startup_ns = 0;    // until it recorded, and what launches have waited for plans
};

}  // namespace flopinj
