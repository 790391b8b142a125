// The energy that the process's devices take, by NVML's total energy counter.
//
// The counter is the whole board's, so nothing is known where the process has a part of it (MIG),
// or where other processes compute on it. It moves every 20 to 100 ms, by the figures of PETSc's
// PetscLogGpuEnergyMeter: shorter times are not resolved.
#pragma once
#include <collector/identity/mutex.h>
#include <collector/identity/recording.h>
#include <injector/vendor/nvml_api.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace flopinj {

class EnergyMeter {
 public:
  explicit EnergyMeter(std::function<uint64_t()> now_ns) : now_ns_(std::move(now_ns)) {}
  ~EnergyMeter();
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  // Takes the device's first reading. Loads NVML at the first call, so it may take tens of
  // milliseconds.
  void open(DeviceId, const std::array<uint8_t, 16>& uuid);
  // Of all open devices from their first readings until now. One thread at a time.
  std::vector<DeviceEnergy> read();

 private:
  struct Meter {
    DeviceEnergy so_far;
    NvmlDevice device = nullptr;
    uint64_t first_mj = 0, last_mj = 0;
  };
  bool load(std::string& why) FLOPINJ_REQUIRES(mutex_);
  std::string find(const std::array<uint8_t, 16>& uuid, Meter&) FLOPINJ_REQUIRES(mutex_);
  std::optional<uint64_t> millijoules(Meter&) FLOPINJ_REQUIRES(mutex_);
  std::string failure(const char* call, NvmlReturn) const FLOPINJ_REQUIRES(mutex_);

  const std::function<uint64_t()> now_ns_;
  Mutex mutex_;
  NvmlApi nvml_ FLOPINJ_GUARDED_BY(mutex_);
  bool started_ FLOPINJ_GUARDED_BY(mutex_) = false;
  std::vector<Meter> meters_ FLOPINJ_GUARDED_BY(mutex_);
};

}  // namespace flopinj
