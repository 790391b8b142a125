#include <collector/writer/inbox.h>

#include <algorithm>
#include <utility>

namespace flopinj {

bool SampleQueue::push(SampleBatch batch) {
  const size_t bytes = batch.values.size() * sizeof(double) + batch.signatures.size() * 8;
  const MutexLock lock(mutex_);
  if (bytes_ + bytes > kMaxQueuedSampleBytes) return false;
  bytes_ += bytes;
  batches_.push_back(std::move(batch));
  return true;
}

std::vector<SampleBatch> SampleQueue::take() {
  const MutexLock lock(mutex_);
  bytes_ = 0;
  return std::exchange(batches_, {});
}

void DiagnosticQueue::push(Severity severity, std::string_view code, std::string_view message,
                           uint64_t time_ns, uint64_t times) {
  const MutexLock lock(mutex_);
  if (entries_.size() >= kMaxDiagnosticCodes && !entries_.contains(code)) {
    code = "diagnostics.more";
    message = "there are more kinds of diagnostics than are kept";
  }
  message = message.substr(0, kMaxTextBytes);
  const auto [at, fresh] = entries_.try_emplace(std::string(code));
  Entry& entry = at->second;
  Diagnostic& said = entry.said;
  said.severity = std::max(said.severity, severity);
  if (fresh) {
    said.code = code;
    said.message = message;
    said.time_ns = time_ns;
    said.times = times;
    return;
  }
  said.times += times;
  if (message == (said.last_message.empty() ? said.message : said.last_message)) return;
  said.last_message = message;
  said.last_time_ns = time_ns;
  entry.news = true;
}

std::vector<Diagnostic> DiagnosticQueue::take(uint64_t now_ns, bool last) {
  std::vector<Diagnostic> result;
  const MutexLock lock(mutex_);
  for (auto& [code, entry] : entries_) {
    const Diagnostic& said = entry.said;
    const bool due =
        last ? entry.news || said.times > entry.taken_times : entry.news && now_ns >= entry.due_ns;
    if (!due) continue;
    result.push_back(said);
    entry.news = false;
    entry.taken_times = said.times;
    entry.due_ns = now_ns + std::max(kLeastPauseNs, now_ns - std::min(now_ns, said.time_ns));
  }
  return result;
}

void DescriptionQueue::device(DeviceId id, const DeviceInfo& info) {
  const MutexLock lock(mutex_);
  if (known_devices_.size() >= kMaxDescribedDevices || !known_devices_.insert(id.value).second)
    return;
  devices_.push_back({id, info});
}

StreamId DescriptionQueue::stream(DeviceId device, uint32_t context, uint32_t stream,
                                  bool green_context) {
  const MutexLock lock(mutex_);
  const auto key = std::make_tuple(device, context, stream, green_context);
  if (const auto at = known_streams_.find(key); at != known_streams_.end()) return at->second;
  if (known_streams_.size() >= kMaxStreams) return {};
  const StreamId id{static_cast<uint32_t>(known_streams_.size() + 1)};
  known_streams_.emplace(key, id);
  streams_.push_back({id, device, context, stream, green_context});
  return id;
}

void DescriptionQueue::group(GroupId id, DeviceId device, const MetricGroupPlan& plan) {
  const MutexLock lock(mutex_);
  if (!id) id = GroupId{kMaxGroups + ++unnamed_groups_};
  groups_.push_back({id, device, plan});
}

std::vector<DescribedGroup> DescriptionQueue::take_groups() {
  const MutexLock lock(mutex_);
  return std::exchange(groups_, {});
}

std::vector<StreamDefinition> DescriptionQueue::take_streams() {
  const MutexLock lock(mutex_);
  return std::exchange(streams_, {});
}

std::vector<DescribedDevice> DescriptionQueue::take_devices() {
  const MutexLock lock(mutex_);
  return std::exchange(devices_, {});
}

}  // namespace flopinj
