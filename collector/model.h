// What the edge tells the collector about the program and its GPU: plain values, no vendor types.
#pragma once
#include <collector/ids.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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
  std::string mode;           // as the user names it
  bool measures = false;      // this process of the job reads counters
  double budget_percent = 0;  // of wall time; 0: without limit
};

// Where one kernel parameter lies in the packed parameter buffer, bytes.
struct ParameterSlot {
  uint32_t offset = 0, size = 0;
  bool operator==(const ParameterSlot&) const = default;
};

// A kernel's parameters in order. Also kept as runs of parameters that are read alike, so that the
// launch path decides once per run how to read, not once per parameter.
class ParameterLayout {
 public:
  enum class Kind : uint8_t {
    kFourBytes,
    kOneWord,  // 8 bytes at a multiple of 8: may be a pointer
    kOther,
  };
  struct Run {
    Kind kind;
    uint32_t count;
  };

  ParameterLayout() = default;
  ParameterLayout(std::initializer_list<ParameterSlot> slots) {
    for (const ParameterSlot& slot : slots) push_back(slot);
  }
  void push_back(const ParameterSlot& slot) {
    const Kind kind = kind_of(slot);
    slots_.push_back(slot);
    bytes_ += slot.size;
    if (!runs_.empty() && runs_.back().kind == kind)
      ++runs_.back().count;
    else
      runs_.push_back({kind, 1});
  }
  void clear() { *this = {}; }

  bool empty() const { return slots_.empty(); }
  size_t size() const { return slots_.size(); }
  const ParameterSlot& operator[](size_t i) const { return slots_[i]; }
  auto begin() const { return slots_.begin(); }
  auto end() const { return slots_.end(); }
  const std::vector<Run>& runs() const { return runs_; }
  uint64_t bytes() const { return bytes_; }  // without padding between them
  bool operator==(const ParameterLayout& other) const { return slots_ == other.slots_; }

 private:
  static Kind kind_of(const ParameterSlot& slot) {
    if (slot.size == 4) return Kind::kFourBytes;
    return slot.size == 8 && slot.offset % 8 == 0 ? Kind::kOneWord : Kind::kOther;
  }

  std::vector<ParameterSlot> slots_;
  std::vector<Run> runs_;
  uint64_t bytes_ = 0;
};

struct FunctionInfo {
  std::string name;  // mangled
  ParameterLayout parameters;
  bool parameters_known = false;
  uint32_t registers_per_thread = 0, static_shared_bytes = 0;
  uint64_t code_hash = 0;  // of its machine code (cubin.h); 0 where nobody showed it to us
  // It starts kernels or graphs from the GPU: work that is in no count.
  bool launches_kernels = false, launches_graphs = false;
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
