#include <collector/base/mutex.h>
#include <collector/base/start_thread.h>
#include <injector/process/energy_meter.h>
#include <injector/process/helper_threads.h>
#include <injector/vendor/nvml_api.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <optional>
#include <string>
#include <utility>

namespace flopinj {
namespace {

using Clock = std::chrono::steady_clock;
using Uuid = std::array<uint8_t, 16>;

constexpr const char* kNoAnswer = "NVML did not answer";

// The process whose thread is inside NVML. A forked child has no such thread.
constinit std::atomic<pid_t> g_inside{0};

// As NVML writes it: "GPU-8d5f6a3c-1b2c-4d5e-8f90-a1b2c3d4e5f6".
std::string text_of(const Uuid& uuid) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[uuid[i] >> 4];
    text += kDigits[uuid[i] & 15];
  }
  return text;
}

// One device's counter. The thread's own, as NVML is.
struct Meter {
  NvmlDevice device = nullptr;
  uint64_t first_mj = 0, last_mj = 0;
};

class Nvml {
 public:
  void end() {
    if (started_) api_.Shutdown();
  }
  // Why it cannot be metered; empty where it can.
  std::string find(const Uuid& uuid, Meter& meter) {
    std::string why;
    if (!load(why)) return why;
    if (const auto result = api_.DeviceGetHandleByUUID(text_of(uuid).c_str(), &meter.device);
        result != kNvmlSuccess)
      return failure("nvmlDeviceGetHandleByUUID", result);
    unsigned now = 0, pending = 0;
    if (api_.DeviceGetMigMode != nullptr &&
        api_.DeviceGetMigMode(meter.device, &now, &pending) == kNvmlSuccess &&
        now == kNvmlMigEnabled)
      return "the GPU is divided (MIG), and its energy is of all parts";
    return {};
  }
  // Nothing where it is not known, and why: then it stays so, for a gap in it cannot be filled.
  std::optional<uint64_t> millijoules(const Meter& meter, std::string& why) {
    unsigned processes = 0;
    const NvmlReturn listed =
        api_.DeviceGetComputeRunningProcesses(meter.device, &processes, nullptr);
    if (listed == kNvmlInsufficientSize && processes > 1) {
      why = "other processes compute on the GPU, and its energy is of all of them";
      return std::nullopt;
    }
    unsigned long long counter = 0;
    const NvmlReturn result = api_.DeviceGetTotalEnergyConsumption(meter.device, &counter);
    if (result == kNvmlNotSupported)
      why = "the GPU has no energy counter";
    else if (result != kNvmlSuccess)
      why = failure("nvmlDeviceGetTotalEnergyConsumption", result);
    else if (counter < meter.last_mj)
      why = "the energy counter began anew: the driver was loaded again";
    if (!why.empty()) return std::nullopt;
    return counter;
  }

 private:
  bool load(std::string& why) {
    if (started_) return true;
    if (!load_nvml(api_, why)) return false;
    const NvmlReturn result = api_.Init();
    started_ = result == kNvmlSuccess;
    if (!started_) why = failure("nvmlInit", result);
    return started_;
  }
  std::string failure(const char* call, NvmlReturn result) const {
    const char* const text = api_.ErrorString(result);
    return std::string(call) + ": " + (text != nullptr ? text : "error") + " (" +
           std::to_string(result) + ")";
  }

  NvmlApi api_;
  bool started_ = false;
};

}  // namespace

// What the meter and its thread share, which may outlive the meter.
struct EnergyMeter::Shared {
  struct Device {
    Uuid uuid{};
    DeviceEnergy so_far;
    bool read = false;  // so_far is known, or why it is not
  };

  explicit Shared(std::function<uint64_t()> clock) : now_ns(std::move(clock)) {}

  const std::function<uint64_t()> now_ns;  // the meter's owner's: not after finished
  Mutex mutex;
  std::condition_variable asked_changed, changed;
  std::vector<Device> devices FLOPINJ_GUARDED_BY(mutex);
  uint64_t asked FLOPINJ_GUARDED_BY(mutex) = 0, answered FLOPINJ_GUARDED_BY(mutex) = 0;
  bool running FLOPINJ_GUARDED_BY(mutex) = false;
  bool in_clock FLOPINJ_GUARDED_BY(mutex) = false;  // the thread reads the owner's clock
  bool finished FLOPINJ_GUARDED_BY(mutex) = false;  // no more readings
  std::optional<Clock::time_point> calling_since FLOPINJ_GUARDED_BY(mutex);

  bool late() const FLOPINJ_REQUIRES(mutex) {
    constexpr auto kPatience = std::chrono::seconds(1);
    return calling_since && Clock::now() - *calling_since > kPatience;
  }
  // Asks for readings. False: nobody is there to take them.
  bool ask(const std::shared_ptr<Shared>& self) FLOPINJ_REQUIRES(mutex);
  // For all that was asked, unless NVML is late already.
  void await_answer(MutexLock& lock, std::chrono::milliseconds at_most) FLOPINJ_REQUIRES(mutex);

  void run() noexcept;
  // The time of a reading; nothing where nobody wants it any more.
  std::optional<uint64_t> time(MutexLock& lock) FLOPINJ_REQUIRES(mutex);
  void read_one(MutexLock& lock, Nvml& nvml, Meter& meter, size_t number) FLOPINJ_REQUIRES(mutex);
};

bool EnergyMeter::Shared::ask(const std::shared_ptr<Shared>& self) {
  if (finished) return false;
  ++asked;
  asked_changed.notify_all();
  if (running) return true;
  pid_t nobody = g_inside.load();
  const pid_t mine = getpid();
  if (nobody == mine || !g_inside.compare_exchange_strong(nobody, mine)) return false;
  pthread_t thread{};
  running = start_thread(thread, [self] { self->run(); });
  if (!running)
    g_inside = 0;
  else
    pthread_detach(thread);
  return running;
}

void EnergyMeter::Shared::await_answer(MutexLock& lock, std::chrono::milliseconds at_most) {
  const uint64_t ticket = asked;
  if (!running || late()) return;
  changed.wait_for(lock.native(), at_most,
                   [&]() FLOPINJ_REQUIRES(mutex) { return answered >= ticket || !running; });
}

std::optional<uint64_t> EnergyMeter::Shared::time(MutexLock& lock) {
  if (finished) return std::nullopt;
  in_clock = true;
  uint64_t now = 0;
  {
    const MutexUnlock unlocked(mutex, lock);  // a simulated clock is the driver's, with its locks
    now = now_ns();
  }
  in_clock = false;
  changed.notify_all();
  return now;
}

// The lock is not held while NVML is called.
void EnergyMeter::Shared::read_one(MutexLock& lock, Nvml& nvml, Meter& meter, size_t number) {
  if (!devices[number].so_far.unavailable.empty()) return;
  const bool first = !devices[number].read;
  const Uuid uuid = devices[number].uuid;
  calling_since = Clock::now();
  std::string why;
  std::optional<uint64_t> counter;
  {
    const MutexUnlock unlocked(mutex, lock);
    if (first) why = nvml.find(uuid, meter);
    if (why.empty()) counter = nvml.millijoules(meter, why);
  }
  calling_since.reset();
  const auto now = time(lock);
  if (!now) return;
  Device& device = devices[number];
  device.read = true;
  device.so_far.unavailable = why;
  if (!counter) return;
  if (first) {
    device.so_far.begin_ns = *now;
    meter.first_mj = meter.last_mj = *counter;
  } else {
    device.so_far.end_ns = *now;
    device.so_far.millijoules = *counter - meter.first_mj;
    if (std::exchange(meter.last_mj, *counter) != *counter) ++device.so_far.updates;
  }
}

void EnergyMeter::Shared::run() noexcept {
  name_helper_thread("flopinj-energy");
  Nvml nvml;
  try {
    std::vector<Meter> meters;
    MutexLock lock(mutex);
    for (;;) {
      asked_changed.wait(lock.native(),
                         [&]() FLOPINJ_REQUIRES(mutex) { return finished || asked > answered; });
      if (finished) break;
      const uint64_t ticket = asked;
      meters.resize(devices.size());
      for (size_t i = 0; i < meters.size() && !finished; ++i) read_one(lock, nvml, meters[i], i);
      answered = ticket;
      changed.notify_all();
    }
  } catch (const std::exception&) {  // no memory: what was read so far is known
  }
  nvml.end();
  const MutexLock lock(mutex);
  g_inside = 0;
  finished = true;
  running = false;
  changed.notify_all();
}

EnergyMeter::EnergyMeter(std::function<uint64_t()> now_ns)
    : shared_(std::make_shared<Shared>(std::move(now_ns))) {}

EnergyMeter::~EnergyMeter() { finish(std::chrono::milliseconds(0)); }

void EnergyMeter::open(DeviceId id, const Uuid& uuid, std::chrono::milliseconds at_most) {
  MutexLock lock(shared_->mutex);
  Shared::Device device;
  device.uuid = uuid;
  device.so_far.device = id;
  shared_->devices.push_back(device);
  if (shared_->ask(shared_)) shared_->await_answer(lock, at_most);
}

std::vector<DeviceEnergy> EnergyMeter::read() {
  const MutexLock lock(shared_->mutex);
  std::vector<DeviceEnergy> all;
  if (shared_->devices.empty()) return all;
  const bool wanted = shared_->ask(shared_), hopeless = !wanted || shared_->late();
  for (const Shared::Device& device : shared_->devices) {
    if (!device.read && !hopeless) continue;
    all.push_back(device.so_far);
    if (!device.read) all.back().unavailable = kNoAnswer;
  }
  return all;
}

bool EnergyMeter::is_late() const {
  const MutexLock lock(shared_->mutex);
  return shared_->late();
}

void EnergyMeter::finish(std::chrono::milliseconds at_most) {
  MutexLock lock(shared_->mutex);
  if (at_most.count() > 0 && shared_->running && shared_->ask(shared_))
    shared_->await_answer(lock, at_most);
  shared_->finished = true;
  shared_->asked_changed.notify_all();
  shared_->changed.wait(lock.native(),
                        [&]() FLOPINJ_REQUIRES(shared_->mutex) { return !shared_->in_clock; });
}

void EnergyMeter::await_end(std::chrono::milliseconds at_most) {
  MutexLock lock(shared_->mutex);
  if (shared_->late()) return;
  shared_->changed.wait_for(lock.native(), at_most,
                            [&]() FLOPINJ_REQUIRES(shared_->mutex) { return !shared_->running; });
}

}  // namespace flopinj
