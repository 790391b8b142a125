#include <collector/trace/copy_output.h>

#include <algorithm>

namespace flopinj {

// Copies of one stream come in their order: most often the last time is all there is to look at.
bool CopyOutput::add_time(DeviceId device, const CopyTime& copy) {
  if (!times_.contains(device) && times_.size() == kMaxCopyDevices) return false;
  std::vector<CopyInterval>& times = times_[device];
  if (level_ == Level::kTally) return true;
  if (!times.empty() && copy.start_ns <= times.back().end_ns &&
      times.back().start_ns <= copy.end_ns) {
    times.back() = {std::min(times.back().start_ns, copy.start_ns),
                    std::max(times.back().end_ns, copy.end_ns)};
    return true;
  }
  if (times.size() == kMaxCopyTimes) write_times(device, times);
  times.push_back({copy.start_ns, copy.end_ns});
  return true;
}

void CopyOutput::add(std::span<const CopyTime> copies) {
  for (const CopyTime& copy : copies) {
    bool known = copy.start_ns != 0 && copy.start_ns <= copy.end_ns;
    for (size_t i = 0; i < copy.devices.size() && known; ++i) {
      const auto before = copy.devices.begin() + static_cast<std::ptrdiff_t>(i);
      if (copy.devices[i] && std::find(copy.devices.begin(), before, *before) == before)
        known = add_time(copy.devices[i], copy);
    }
    if (!known) {
      ++lost_;
      continue;
    }
    CopySum& sum = sums_[{copy.devices[0], copy.kind}];
    sum.device = copy.devices[0];
    sum.kind = copy.kind;
    ++sum.copies;
    sum.bytes += copy.bytes;
    if (copy.pageable) sum.pageable_bytes += copy.bytes;
    sum.total_ns += copy.end_ns - copy.start_ns;
    written_ = false;
  }
}

void CopyOutput::write_times(DeviceId device, std::vector<CopyInterval>& times) {
  std::ranges::sort(times, {}, &CopyInterval::start_ns);
  size_t last = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i].start_ns <= times[last].end_ns)
      times[last].end_ns = std::max(times[last].end_ns, times[i].end_ns);
    else
      times[++last] = times[i];
  }
  times.resize(last + 1);
  writer_.copies(device, times);
  times.clear();
}

void CopyOutput::write(bool everything) {
  for (auto& [device, times] : times_)
    if (!times.empty()) write_times(device, times);
  const auto now = Clock::now();
  if (written_ || (!everything && now < next_)) return;
  next_ = now + std::chrono::seconds(1);
  written_ = true;
  std::vector<CopySum> sums;
  for (const auto& [key, sum] : sums_) sums.push_back(sum);
  if (level_ == Level::kTally)
    writer_.copy_sums(message_, sums);
  else
    writer_.copy_sums(sums);
}

}  // namespace flopinj
