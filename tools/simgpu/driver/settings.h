// What the environment asks of the simulated driver. Read once, in cuInit.
#pragma once
#include <cstdint>
#include <string>

#include "driver/chip.h"
#include "faults/faults.h"

namespace simgpu {

struct Settings {
  int devices = 1;     // SIMGPU_DEVICES, 0 to 16
  Chip chip{};         // SIMGPU_CHIP, with the memory that SIMGPU_MEMORY says, in MiB
  bool async = false;  // SIMGPU_ASYNC=1: streams have threads that do their work
  Faults faults;       // SIMGPU_FAULT
  std::string counts;  // SIMGPU_COUNTS: the file of counts.h of execution/; empty: none
};

// Never fails: a value that makes no sense is reported on stderr in one line and the default is
// used. SIMGPU_FAULT=list prints the faults on stdout and ends the process.
Settings read_settings();

// What cuDriverGetVersion answers: SIMGPU_DRIVER_VERSION, as 12.8, 12080, or unset for 13.0. Read
// once, at the first call, which may come before cuInit.
int driver_version();

// One line on stderr, "simgpu: <text>".
void complain(const std::string& text);

}  // namespace simgpu
