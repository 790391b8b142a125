// Training steps on their way into the trace: one by one (level launches), or summed up in a
// message that is written again and again (level tally). Likewise the numbers that ranges were
// given, which are sums at either level. Used by the writer thread.
#pragma once
#include <collector/identity/recording.h>
#include <collector/ranges/steps.h>
#include <collector/trace/trace_writer.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace flopinj {

// StepSums of the format.
struct StepSums {
  uint64_t steps = 0, total_ns = 0, min_ns = 0, max_ns = 0;
  uint64_t first_start_ns = 0, last_end_ns = 0;
  PathId path;
  std::map<uint32_t, uint64_t> buckets;  // common/step_buckets.h

  void add(const Step&);
};

class StepOutput {
 public:
  // `writer` must outlive the output.
  StepOutput(TraceWriter& writer, Level level) : writer_(writer), level_(level) {}

  // What has ended since the last call. Sums are written once a second, or where `everything` is.
  void write(std::span<const Step>, bool everything);
  // All numbers so far, at most once a second; none: nothing new has come.
  void write(std::vector<RangeNumber>, bool everything);

 private:
  using Clock = std::chrono::steady_clock;
  TraceWriter& writer_;
  const Level level_;
  StepSums sums_;
  RevisedMessage message_{RevisedMessage::kSteps};
  uint64_t written_ = 0;  // steps
  Clock::time_point next_ = Clock::now();
  RevisedMessage numbers_message_{RevisedMessage::kNumbers};
  std::vector<RangeNumber> numbers_;  // that are not written yet
  Clock::time_point next_numbers_ = Clock::now();
};

}  // namespace flopinj
