// The few functions of NVML that we call, from the driver's libnvidia-ml.so.1. Found at run time:
// nothing depends on it. The declarations are those of NVIDIA's NVML API reference; the kit that
// has nvml.h is no part of what the library is built with.
#pragma once
#include <cstdint>
#include <string>

namespace flopinj {

using NvmlReturn = int;  // nvmlReturn_t
using NvmlDevice = struct NvmlDeviceOpaque*;
inline constexpr NvmlReturn kNvmlSuccess = 0, kNvmlNotSupported = 3, kNvmlInsufficientSize = 7;
inline constexpr unsigned kNvmlMigEnabled = 1;

struct NvmlApi {
  NvmlReturn (*Init)() = nullptr;
  NvmlReturn (*Shutdown)() = nullptr;
  const char* (*ErrorString)(NvmlReturn) = nullptr;
  NvmlReturn (*DeviceGetHandleByUUID)(const char* uuid, NvmlDevice*) = nullptr;
  NvmlReturn (*DeviceGetMigMode)(NvmlDevice, unsigned* now, unsigned* pending) = nullptr;
  // Millijoules since the driver was loaded; Volta and later.
  NvmlReturn (*DeviceGetTotalEnergyConsumption)(NvmlDevice, unsigned long long*) = nullptr;
  // With room for none: success where there are none, else INSUFFICIENT_SIZE and how many.
  NvmlReturn (*DeviceGetComputeRunningProcesses)(NvmlDevice, unsigned* count, void* none) = nullptr;
};

// The library and all functions but DeviceGetMigMode, which an older one lacks. Else `error` says
// why not. It stays loaded.
bool load_nvml(NvmlApi&, std::string& error);

}  // namespace flopinj
