// What the environment asks of the simulated driver. Read once, in cuInit.
#pragma once
#include <cstdint>
#include <string>

#include "driver/chip.h"

namespace simgpu {

struct Settings {
  int devices = 1;               // SIMGPU_DEVICES, 0 to 16
  const Chip* chip = nullptr;    // SIMGPU_CHIP, never null once read
  bool no_device = false;        // SIMGPU_FAULT=no_device: cuInit gives CUDA_ERROR_NO_DEVICE
  bool no_export_table = false;  // SIMGPU_FAULT=no_export_table: cuGetExportTable finds nothing
  bool no_param_info = false;    // SIMGPU_FAULT=no_param_info: cu*GetParamInfo is NOT_SUPPORTED
  uint64_t failing_launch =
      0;  // SIMGPU_FAULT=launch_failure=N: the N-th kernel of the process fails; 0: none
  uint64_t failing_alloc =
      0;  // SIMGPU_FAULT=out_of_memory=N: device allocation N and later fail; 0: none
};

// Never fails: a value that makes no sense is reported on stderr in one line and the default is
// used.
Settings read_settings();

// One line on stderr, "simgpu: <text>".
void complain(const std::string& text);

}  // namespace simgpu
