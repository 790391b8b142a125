// The simulated libnvidia-ml.so.1: the functions that a tool asks for a device's energy.
//
// A simulated board draws kWatts, whatever it does, by the simulated clock (driver/README.md): its
// energy proves nothing about hardware. Of processes that compute on it, NVML knows this one.
#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "faults/faults.h"
#include "simgpu/hooks.h"

namespace simgpu {
namespace {

constexpr uint64_t kWatts = 400;

// nvmlReturn_t, of NVIDIA's NVML API reference.
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9
};

struct Nvml {
  const Driver* driver = nullptr;
  decltype(&cuDeviceGetUuid_v2) device_uuid = nullptr;
  Faults faults;

  Nvml() {
    std::vector<std::string> complaints;  // the driver prints them
    const char* const text = std::getenv("SIMGPU_FAULT");
    faults = parse_faults(text != nullptr ? text : "", complaints);
    void* const cuda = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (cuda == nullptr || faults.nvml_not_loaded) return;
    device_uuid = reinterpret_cast<decltype(device_uuid)>(dlsym(cuda, "cuDeviceGetUuid_v2"));
    const auto get = reinterpret_cast<decltype(&cuGetExportTable)>(dlsym(cuda, "cuGetExportTable"));
    const void* table = nullptr;
    if (get == nullptr || get(&table, &kHooksUuid) != CUDA_SUCCESS) return;
    const auto* const found = static_cast<const Driver*>(table);
    if (found->abi_version == kAbiVersion) driver = found;
  }

  static const Nvml& get() {
    static const Nvml nvml;
    return nvml;
  }
};

// Each function's beginning, but nvmlErrorString's, which asks no device.
const Nvml& entered() {
  static std::atomic<uint64_t> calls{0};
  const Nvml& nvml = Nvml::get();
  const uint64_t call = ++calls, hangs = nvml.faults.nvml_hang;
  while (hangs != 0 && call >= hangs) pause();
  if (nvml.faults.nvml_slow != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(nvml.faults.nvml_slow));
  return nvml;
}

// A handle is the device's ordinal plus 1.
bool is_device(uintptr_t handle) {
  const Driver* const driver = Nvml::get().driver;
  return driver != nullptr && handle >= 1 &&
         handle <= static_cast<uintptr_t>(driver->device_count());
}

std::string text_of(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    char byte[4];
    std::snprintf(byte, sizeof byte, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += byte;
  }
  return text;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

#pragma GCC visibility push(default)
extern "C" {

int nvmlInit_v2() { return entered().driver != nullptr ? kSuccess : kDriverNotLoaded; }
int nvmlShutdown() { return entered().driver != nullptr ? kSuccess : kUninitialized; }

const char* nvmlErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "Success";
    case kNotSupported:
      return "Not Supported";
    case kNotFound:
      return "Not Found";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    default:
      return "Unknown Error";
  }
}

int nvmlDeviceGetHandleByUUID(const char* uuid, uintptr_t* device) {
  const Nvml& nvml = entered();
  if (nvml.driver == nullptr) return kUninitialized;
  if (uuid == nullptr || device == nullptr) return kInvalidArgument;
  for (int ordinal = 0; ordinal < nvml.driver->device_count(); ++ordinal) {
    CUuuid id{};
    if (nvml.device_uuid(&id, ordinal) != CUDA_SUCCESS || text_of(id) != uuid) continue;
    *device = static_cast<uintptr_t>(ordinal) + 1;
    return kSuccess;
  }
  return kNotFound;
}

int nvmlDeviceGetMigMode(uintptr_t device, unsigned* now, unsigned* pending) {
  const Nvml& nvml = entered();
  if (!is_device(device) || now == nullptr || pending == nullptr) return kInvalidArgument;
  *now = *pending = nvml.faults.nvml_mig ? 1 : 0;
  return kSuccess;
}

int nvmlDeviceGetTotalEnergyConsumption(uintptr_t device, unsigned long long* millijoules) {
  const Nvml& nvml = entered();
  if (!is_device(device) || millijoules == nullptr) return kInvalidArgument;
  if (nvml.faults.nvml_no_energy) return kNotSupported;
  *millijoules = nvml.driver->timestamp_ns() * kWatts / 1'000'000;
  return kSuccess;
}

int nvmlDeviceGetComputeRunningProcesses_v3(uintptr_t device, unsigned* count, void* infos) {
  const Nvml& nvml = entered();
  if (!is_device(device) || count == nullptr) return kInvalidArgument;
  const unsigned room = infos != nullptr ? *count : 0;
  *count = nvml.faults.nvml_shared ? 2 : 1;
  return room < *count ? kInsufficientSize : kSuccess;  // what is in them is not simulated
}

}  // extern "C"
#pragma GCC visibility pop
