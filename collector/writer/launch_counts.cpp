#include <collector/writer/launch_counts.h>

#include <utility>

namespace flopinj {

LaunchCounts::Entry& LaunchCounts::entry(DeviceId device, SignatureId signature) {
  thread_.check();
  auto& entries = entries_[device_slot(device)];
  if (signature.value >= entries.size()) entries.resize(signature.value + size_t{64});
  return entries[signature.value];
}

LaunchProgress& LaunchCounts::progress(DeviceId device, SignatureId signature) {
  Entry& e = entry(device, signature);
  if (e.changed == 0) {
    LaunchProgress& fresh = next_.emplace_back();
    fresh.device = device;
    fresh.signature = signature;
    e.changed = static_cast<uint32_t>(next_.size());
  }
  return next_[e.changed - 1];
}

void LaunchCounts::taken(DeviceId device, SignatureId signature, uint32_t correlation,
                         uint32_t flags) {
  if ((flags & LaunchRecord::kWindowed) != 0)
    measured_.insert({correlation, signature.value}, entry(device, signature).launches,
                     [](uint64_t) {});
  ++entry(device, signature).launches;
  // The scheduler keeps no room in the budget for launches that no window will see.
  if ((flags & LaunchRecord::kGreenContext) == 0) ++progress(device, signature).launches;
}

void LaunchCounts::recorded(DeviceId device, const TimedLaunch& launch) {
  LaunchProgress& p = progress(device, launch.signature);
  ++p.recorded;
  if (!launch.timed()) return;
  ++(launch.windowed ? p.windowed_timed : p.timed);
  (launch.windowed ? p.windowed_gpu_ns : p.gpu_ns) += launch.end_ns - launch.start_ns;
}

const std::vector<LaunchProgress>& LaunchCounts::changed() {
  for (const LaunchProgress& p : next_) entry(p.device, p.signature).changed = 0;
  told_.clear();
  std::swap(told_, next_);
  return told_;
}

uint64_t LaunchCounts::ordinal(DeviceId device, SignatureId signature, uint32_t correlation) {
  if (const auto* known = measured_.find({correlation, signature.value})) return *known;
  return entry(device, signature).launches;
}

}  // namespace flopinj
