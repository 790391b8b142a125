#include <injector/process/energy_meter.h>

#include <utility>

namespace flopinj {
namespace {

// As NVML writes it: "GPU-8d5f6a3c-1b2c-4d5e-8f90-a1b2c3d4e5f6".
std::string text_of(const std::array<uint8_t, 16>& uuid) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[uuid[i] >> 4];
    text += kDigits[uuid[i] & 15];
  }
  return text;
}

}  // namespace

EnergyMeter::~EnergyMeter() {
  const MutexLock lock(mutex_);
  if (started_) nvml_.Shutdown();
}

void EnergyMeter::open(DeviceId id, const std::array<uint8_t, 16>& uuid) {
  const MutexLock lock(mutex_);
  Meter meter;
  meter.so_far.device = id;
  meter.so_far.unavailable = find(uuid, meter);
  meter.so_far.begin_ns = now_ns_();
  if (const auto first = millijoules(meter)) meter.first_mj = meter.last_mj = *first;
  meters_.push_back(std::move(meter));
}

std::vector<DeviceEnergy> EnergyMeter::read() {
  const MutexLock lock(mutex_);
  std::vector<DeviceEnergy> all;
  for (Meter& meter : meters_) {
    if (const auto now = millijoules(meter)) {
      meter.so_far.end_ns = now_ns_();
      meter.so_far.millijoules = *now - meter.first_mj;
      if (std::exchange(meter.last_mj, *now) != *now) ++meter.so_far.updates;
    }
    all.push_back(meter.so_far);
  }
  return all;
}

bool EnergyMeter::load(std::string& why) {
  if (started_) return true;
  if (!load_nvml(nvml_, why)) return false;
  const NvmlReturn result = nvml_.Init();
  started_ = result == kNvmlSuccess;
  if (!started_) why = failure("nvmlInit", result);
  return started_;
}

// Why it cannot be metered; empty where it can.
std::string EnergyMeter::find(const std::array<uint8_t, 16>& uuid, Meter& meter) {
  std::string why;
  if (!load(why)) return why;
  if (const auto result = nvml_.DeviceGetHandleByUUID(text_of(uuid).c_str(), &meter.device);
      result != kNvmlSuccess)
    return failure("nvmlDeviceGetHandleByUUID", result);
  unsigned now = 0, pending = 0;
  if (nvml_.DeviceGetMigMode != nullptr &&
      nvml_.DeviceGetMigMode(meter.device, &now, &pending) == kNvmlSuccess &&
      now == kNvmlMigEnabled)
    return "the GPU is divided (MIG), and its energy is of all parts";
  return {};
}

// Nothing where it is not known: then it stays so, for a gap in it cannot be filled.
std::optional<uint64_t> EnergyMeter::millijoules(Meter& meter) {
  std::string& unavailable = meter.so_far.unavailable;
  if (!unavailable.empty()) return std::nullopt;
  unsigned processes = 0;
  const NvmlReturn listed =
      nvml_.DeviceGetComputeRunningProcesses(meter.device, &processes, nullptr);
  if (listed == kNvmlInsufficientSize && processes > 1) {
    unavailable = "other processes compute on the GPU, and its energy is of all of them";
    return std::nullopt;
  }
  unsigned long long counter = 0;
  const NvmlReturn result = nvml_.DeviceGetTotalEnergyConsumption(meter.device, &counter);
  if (result == kNvmlNotSupported)
    unavailable = "the GPU has no energy counter";
  else if (result != kNvmlSuccess)
    unavailable = failure("nvmlDeviceGetTotalEnergyConsumption", result);
  else if (counter < meter.last_mj)
    unavailable = "the energy counter began anew: the driver was loaded again";
  if (!unavailable.empty()) return std::nullopt;
  return counter;
}

std::string EnergyMeter::failure(const char* call, NvmlReturn result) const {
  const char* const text = nvml_.ErrorString(result);
  return std::string(call) + ": " + (text != nullptr ? text : "error") + " (" +
         std::to_string(result) + ")";
}

}  // namespace flopinj
