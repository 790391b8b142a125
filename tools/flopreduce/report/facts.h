// What single processes did, for tables that programs read.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "report/gpu_time.h"
#include "support/wide.h"

namespace flopinj::reduce {

// A range path by one rule.
struct PathReport {
  uint32_t range = ~uint32_t{0};  // Report::ranges; kNoRange outside all ranges
  size_t rule = 0;                // Report::rules
  std::string layer;              // empty where it is in none, or in several
  uint64_t launches = 0;
};

// Launches of one process that have all of these in common.
struct FactReport {
  uint32_t trace = 0;               // Report::traces
  std::optional<uint32_t> device;   // CUDA ordinal
  uint32_t chip = 0;                // Report::chips
  uint32_t thread = 0, stream = 0;  // numbers in the trace; 0: not known
  uint32_t thread_name = 0;         // Report::thread_names
  uint32_t path = 0;                // Report::paths
  uint32_t signature = 0;           // Report::signatures
  uint64_t launches = 0, timed = 0, windowed = 0, graph = 0, unmeasured = 0;
  uint64_t timed_ns = 0;  // of launches that were timed outside of windows
  GpuTime time;
  u128 flop = 0;
  bool varying = false, at_most = false;  // as in Work
};

}  // namespace flopinj::reduce
