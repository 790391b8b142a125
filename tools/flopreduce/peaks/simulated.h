// The devices of tools/simgpu: their peaks are those of its time model ("Times" in
// tools/simgpu/driver/README.md), no hardware's. A simulated trace is never measured against a real
// GPU's peak.
#pragma once
#include <span>
#include <string_view>

#include "peaks/peak_table.h"

namespace flopinj::reduce {

// True for a device name of the simulated driver: "simgpu GH100 (simulated)".
bool is_simulated_device(std::string_view cuda_name);

std::span<const Gpu> simulated_gpus();

}  // namespace flopinj::reduce
