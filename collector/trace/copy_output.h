// Copies on their way into the trace. Each is folded at once into the times in which its devices
// copied (level launches) and into sums by direction, which are written again and again.
//
// Bounded: kMaxCopyTimes times wait for each of kMaxCopyDevices devices; a device that has more is
// written early. Used by the writer thread.
#pragma once
#include <collector/identity/copy_time.h>
#include <collector/identity/recording.h>
#include <collector/trace/trace_writer.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace flopinj {

inline constexpr size_t kMaxCopyTimes = 16'384, kMaxCopyDevices = 64;

class CopyOutput {
 public:
  // `writer` must outlive the output.
  CopyOutput(TraceWriter& writer, Level level) : writer_(writer), level_(level) {}

  void add(std::span<const CopyTime>);
  // What has come since the last call. Sums once a second, or where `everything` is.
  void write(bool everything);
  uint64_t lost() const { return lost_; }  // had no time, or a device too many

 private:
  using Clock = std::chrono::steady_clock;
  bool add_time(DeviceId, const CopyTime&);
  void write_times(DeviceId, std::vector<CopyInterval>&);

  TraceWriter& writer_;
  const Level level_;
  std::map<DeviceId, std::vector<CopyInterval>> times_;
  std::map<std::pair<DeviceId, CopyKind>, CopySum> sums_;
  bool written_ = true;  // the sums
  Clock::time_point next_ = Clock::now();
  RevisedMessage message_{RevisedMessage::kCopies};
  uint64_t lost_ = 0;
};

}  // namespace flopinj
