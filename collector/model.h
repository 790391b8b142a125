// What the edge tells the collector about the program and its GPU: plain values, no vendor types.
#pragma once
#include <collector/ids.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace flopinj {

enum class Level : uint8_t { kLaunches, kTally };

// How much is asked of the hardware. Degradation moves down this list, never up.
enum class Mode : uint8_t { kOff, kCount, kTiming, kMultiplex };

struct DeviceInfo {
  std::string name, chip;
  uint32_t compute_major = 0, compute_minor = 0, multiprocessors = 0;
  uint64_t memory_bytes = 0;
  uint32_t clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
  std::array<uint8_t, 16> uuid{};
};

struct ProcessInfo {
  uint32_t pid = 0;
  std::string hostname;
  std::vector<std::string> command_line;
  int32_t rank = -1;
  std::string rank_source;
  bool simulated = false;
  uint32_t cupti_version = 0, driver_version = 0;
  bool counters = false;
  uint64_t clock_trace_ns = 0, clock_realtime_ns = 0, clock_monotonic_ns = 0;
  uint64_t session_id = 0;
};

// Where one kernel parameter lies in the packed parameter buffer, bytes.
struct ParameterSlot {
  uint32_t offset = 0, size = 0;
};

struct FunctionInfo {
  std::string name;  // mangled
  std::vector<ParameterSlot> parameters;
  bool parameters_known = false;
  uint32_t registers_per_thread = 0, static_shared_bytes = 0;
};

struct LaunchShape {
  std::array<uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{0, 0, 0};
  uint32_t dynamic_shared_bytes = 0;
  bool operator==(const LaunchShape&) const = default;
};

// A launch's kernel parameters in one of CUDA's two forms; both null where there are none.
struct ParameterValues {
  const void* const* pointers = nullptr;  // kernelParams: one pointer per parameter
  const void* packed = nullptr;           // CU_LAUNCH_PARAM_BUFFER_POINTER
  size_t packed_bytes = 0;
};

// GPU time of one kernel, from the activity API.
struct KernelTime {
  uint32_t correlation = 0;
  uint64_t graph_node = 0;  // 0 outside graphs
  uint64_t start_ns = 0, end_ns = 0;
};

enum class Severity : uint8_t { kInfo, kWarning, kError };
enum class EndReason : uint8_t { kExit, kDetach, kFailure };

}  // namespace flopinj
