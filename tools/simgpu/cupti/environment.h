// What the environment asks of the simulated CUPTI. Read once, at the first CUPTI call of the
// process.
#pragma once
#include <cstdint>
#include <string>

#include "faults/faults.h"

namespace simgpu::cupti {

struct Environment {
  // SIMGPU_CUPTI_VERSION, as 24 or 12.6. Default: CUPTI_API_VERSION of the headers of the build; in
  // a file named libcupti.so.12: 28 (12.9.1), or 22 (12.4) without the range profiler.
  uint32_t cupti_version;
  Faults faults;  // SIMGPU_FAULT
  // SIMGPU_UNKNOWN_METRICS: metrics whose names contain this are not known; empty: none.
  std::string unknown_metrics = {};
  std::string chip_name = {};  // SIMGPU_CHIP_NAME: CUPTI's name of the chip; empty: its own name
};

// Malformed values get one line on stderr and the default.
Environment read_environment();

// 0 for text it does not know. Apart for the tests.
uint32_t parse_version(const char* text);

}  // namespace simgpu::cupti
