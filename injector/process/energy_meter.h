// The energy that the process's devices take, by NVML's total energy counter.
//
// The counter is the whole board's, so nothing is known where the process has a part of it (MIG),
// or where other processes compute on it. It moves every 20 to 100 ms, by the figures of PETSc's
// PetscLogGpuEnergyMeter: shorter times are not resolved.
//
// NVML does not answer for seconds, or never, where a GPU has fallen off the bus. So all its
// calls are made by a thread that does nothing else, and readings are handed over. A thread that
// does not come back is left behind: the process has at most one, and its next recordings know no
// energy as long as that is so.
#pragma once
#include <collector/identity/recording.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace flopinj {

class EnergyMeter {
 public:
  // `now_ns` is called on the thread, and not any more once finish() has returned.
  explicit EnergyMeter(std::function<uint64_t()> now_ns);
  ~EnergyMeter();  // as finish(), without a reading
  EnergyMeter(const EnergyMeter&) = delete;
  EnergyMeter& operator=(const EnergyMeter&) = delete;

  // Has the device's first reading taken, and waits for it, `at_most` so long. Loads NVML at the
  // first call, so it may take tens of milliseconds.
  void open(DeviceId, const std::array<uint8_t, 16>& uuid, std::chrono::milliseconds at_most);
  // Of the devices that are known, from their first readings to their last. Returns at once, and
  // asks for readings for the next time.
  std::vector<DeviceEnergy> read();
  // Some call of NVML has taken over a second so far. It is not waited for then.
  bool is_late() const;
  // The last readings; then the thread lets NVML go, and ends. Waits for them, `at_most` so long.
  void finish(std::chrono::milliseconds at_most);
  // After finish(): waits for the thread's end, `at_most` so long.
  void await_end(std::chrono::milliseconds at_most);

 private:
  struct Shared;
  const std::shared_ptr<Shared> shared_;
};

}  // namespace flopinj
