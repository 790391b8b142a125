// What the environment asks of the simulated CUPTI. Read once, at the first CUPTI call of the
// process.
#pragma once
#include <cstdint>
#include <string>

namespace simgpu::cupti {

// Failures to inject: SIMGPU_FAULT is a comma list of names, some with "=N". The list is shared
// with the simulated driver, so names that are not ours are passed over in silence.
struct Faults {
  bool second_subscriber = false;  // another CUPTI client lives here: every subscription is refused
  bool no_privileges = false;      // cuptiRangeProfilerEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
  bool hardware_busy =
      false;  // cuptiRangeProfilerEnable: CUPTI_ERROR_HARDWARE_BUSY, as when DCGM holds counters
  bool unsupported_device = false;  // cuptiProfilerDeviceSupported says no (vGPU without profiling)
  bool enable_fails = false;        // cuptiRangeProfilerEnable: CUPTI_ERROR_UNKNOWN
  bool decode_fails = false;        // cuptiRangeProfilerDecodeData: CUPTI_ERROR_UNKNOWN
  bool no_modules = false;          // no module is told of
  bool graph_windows_fail = false;  // decode_fails, after a graph was launched while started
  uint64_t drop_ranges = 0;         // every Nth range is lost and reported by DecodeData; 0: none
  uint64_t repeat_activity = 0;     // every Nth kernel record comes twice; 0: none
  uint64_t drop_activity = 0;       // every Nth activity record is lost and counted; 0: none
  uint64_t slow_host = 0;           // making a host object takes N milliseconds
};

// What an automatic range is of a graph launch: nobody has established it on hardware.
enum class GraphRanges : uint8_t { kKernel, kLaunch };

struct Environment {
  uint32_t cupti_version;  // SIMGPU_CUPTI_VERSION: "24" or "12.6" style; default: the headers'
                           // CUPTI_API_VERSION
  Faults faults;
  std::string unknown_metrics =
      {};  // SIMGPU_UNKNOWN_METRICS: metrics whose names contain this are not
           // known; empty: none
  GraphRanges graph_ranges = GraphRanges::kKernel;  // SIMGPU_GRAPH_RANGES: "kernel" or "launch"
  std::string chip_name = {};  // SIMGPU_CHIP_NAME: what CUPTI calls the chip; empty: its own name
};

// Malformed values get one line on stderr and the default.
Environment read_environment();

// Parsers, apart for the tests. parse_version returns 0 for text it does not know.
uint32_t parse_version(const char* text);
Faults parse_faults(const char* text);

}  // namespace simgpu::cupti
