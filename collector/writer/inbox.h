// What reaches the writer from other threads, apart from launches: times, samples, diagnostics, and
// what the edge has described. Each queue has its own lock, held for a copy; each is bounded.
#pragma once
#include <collector/base/mutex.h>
#include <collector/identity/copy_time.h>
#include <collector/identity/launch.h>
#include <collector/identity/recording.h>
#include <collector/schedule/metric_plan.h>
#include <collector/trace/sample_batch.h>
#include <collector/trace/trace_definitions.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <vector>

namespace flopinj {

inline constexpr size_t kMaxQueuedTimes = 1U << 20;   // 32 MiB
inline constexpr size_t kMaxQueuedCopies = 1U << 16;  // 2.5 MiB
inline constexpr size_t kMaxQueuedSampleBytes = 16U << 20;
inline constexpr size_t kMaxDiagnosticCodes = 256;
inline constexpr size_t kMaxStreams = 65'536;
inline constexpr size_t kMaxDescribedDevices = 1'024;

template <class Time, size_t kMost>
class QueueOf {
 public:
  void push(std::span<const Time> times) {
    const MutexLock lock(mutex_);
    const size_t room = std::min(times.size(), kMost - times_.size());
    times_.insert(times_.end(), times.begin(), times.begin() + static_cast<std::ptrdiff_t>(room));
    overflowed_ += times.size() - room;
  }
  void take(std::vector<Time>& out) {  // replaces `out`, whose capacity is used again
    out.clear();
    const MutexLock lock(mutex_);
    times_.swap(out);
  }
  uint64_t overflowed() const {  // times that found no room
    const MutexLock lock(mutex_);
    return overflowed_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<Time> times_ FLOPINJ_GUARDED_BY(mutex_);
  uint64_t overflowed_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};
using TimeQueue = QueueOf<KernelTime, kMaxQueuedTimes>;
using CopyQueue = QueueOf<CopyTime, kMaxQueuedCopies>;

class SampleQueue {
 public:
  bool push(SampleBatch);  // false: no room
  std::vector<SampleBatch> take();

 private:
  Mutex mutex_;
  std::vector<SampleBatch> batches_ FLOPINJ_GUARDED_BY(mutex_);
  size_t bytes_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

// The first of each code is written at the next flush. Where another message follows, that is
// written too, each time after a pause that is as long as all the time since the first: of a killed
// process a message is not older than half of that, and one that runs for long writes few. The end
// writes how often each came, and the last message. Past kMaxDiagnosticCodes codes the rest have
// one in common, "diagnostics.more".
class DiagnosticQueue {
 public:
  void push(Severity, std::string_view code, std::string_view message, uint64_t time_ns,
            uint64_t times = 1);
  // `last`: all that has come since it was taken.
  std::vector<Diagnostic> take(uint64_t now_ns, bool last);

 private:
  static constexpr uint64_t kLeastPauseNs = 1'000'000'000;
  struct Entry {
    Diagnostic said;
    uint64_t taken_times = 0, due_ns = 0;
    bool news = true;  // its message was not taken
  };
  mutable Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ FLOPINJ_GUARDED_BY(mutex_);
};

struct DescribedDevice {
  DeviceId id;
  DeviceInfo info;
};
struct DescribedGroup {
  GroupId id;
  DeviceId device;
  MetricGroupPlan plan;
};

class DescriptionQueue {
 public:
  void device(DeviceId, const DeviceInfo&);  // the first description of an id counts
  // 0 past kMaxStreams
  StreamId stream(DeviceId, uint32_t context, uint32_t stream, bool green_context);
  // A group without an id, which no sample refers to, gets one past kMaxGroups.
  void group(GroupId, DeviceId, const MetricGroupPlan&);

  // In this order a description never refers to one that is not taken yet.
  std::vector<DescribedGroup> take_groups();
  std::vector<StreamDefinition> take_streams();
  std::vector<DescribedDevice> take_devices();

 private:
  Mutex mutex_;
  std::unordered_set<uint32_t> known_devices_ FLOPINJ_GUARDED_BY(mutex_);
  std::map<std::tuple<DeviceId, uint32_t, uint32_t, bool>, StreamId> known_streams_
      FLOPINJ_GUARDED_BY(mutex_);
  std::vector<DescribedDevice> devices_ FLOPINJ_GUARDED_BY(mutex_);
  std::vector<StreamDefinition> streams_ FLOPINJ_GUARDED_BY(mutex_);
  std::vector<DescribedGroup> groups_ FLOPINJ_GUARDED_BY(mutex_);
  uint32_t unnamed_groups_ FLOPINJ_GUARDED_BY(mutex_) = 0;
};

}  // namespace flopinj
