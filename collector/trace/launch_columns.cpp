#include <call_times.h>
#include <collector/trace/launch_columns.h>

namespace flopinj {
namespace {

// Differences wrap: the reader adds them up in the same arithmetic, so every pair of time stamps
// round-trips.
int64_t difference(uint64_t a, uint64_t b) { return static_cast<int64_t>(a - b); }

}  // namespace

uint32_t LaunchColumns::step_to(uint64_t sequence) {
  if (sequence == 0) return 0;
  const int64_t by = difference(sequence, last_sequence_);
  last_sequence_ = sequence;
  constexpr int64_t kMost = INT32_MAX - 1;
  if (by > kMost || by < -kMost) return PatternRow::kNoStep;
  return 1 + static_cast<uint32_t>(by >= 0 ? 2 * by : -2 * by - 1);  // zigzag
}

bool LaunchColumns::add(const TimedLaunch& launch) {
  if (full()) return false;
  const auto index = static_cast<uint32_t>(size());
  rows.push_back(
      {launch.signature.value, launch.path.value, step_to(launch.sequence_plus_1), launch.call});
  sequence_plus_1.push_back(launch.sequence_plus_1);
  graph.add(launch.graph ? 1 : 0);
  windowed.add(launch.windowed ? 1 : 0);
  step.add(launch.step);
  if (!launch.timed()) {
    gap_ns.push_back(0);
    duration_delta_ns.push_back(0);
    untimed_delta.push_back(index - last_untimed_);
    last_untimed_ = index;
    return true;
  }
  const bool first = !any_timed_;
  if (first) {
    first_start_ns = launch.start_ns;
    last_end_ns_ = launch.start_ns;
    any_timed_ = true;
  }
  gap_ns.push_back(difference(launch.start_ns, last_end_ns_));
  if (first || gap_ns.back() >= kLeastCalledGapNs) add_call(launch, index);
  last_end_ns_ = launch.end_ns;
  const int64_t duration = difference(launch.end_ns, launch.start_ns);
  int64_t& last = last_duration_[launch.signature.value];
  duration_delta_ns.push_back(
      difference(static_cast<uint64_t>(duration), static_cast<uint64_t>(last)));
  last = duration;
  return true;
}

// What is called after it has begun, by clocks that are not quite alike, is called as it begins.
void LaunchColumns::add_call(const TimedLaunch& launch, uint32_t index) {
  const uint64_t called = std::min(launch.called_ns, launch.start_ns);
  called_before.push_back(called == 0 ? 0 : 1 + (launch.start_ns - called) / kCallUnitNs);
  if (called == 0) return;
  any_called = true;
  if (launch.pause.end <= launch.pause.begin || launch.pause.end > launch.called_ns) return;
  const uint64_t since_ns = called - std::min(called, launch.pause.end);
  pause.insert(pause.end(), {index - last_paused_, launch.pause.path.value, since_ns / kCallUnitNs,
                             launch.pause.length() / kCallUnitNs});
  last_paused_ = index;
}

void LaunchColumns::clear() {
  rows.clear();
  sequence_plus_1.clear();
  sequence_base = last_sequence_;
  graph.pairs.clear();
  windowed.pairs.clear();
  step.pairs.clear();
  first_start_ns = 0;
  gap_ns.clear();
  duration_delta_ns.clear();
  untimed_delta.clear();
  called_before.clear();
  pause.clear();
  any_called = false;
  last_paused_ = 0;
  last_end_ns_ = 0;
  any_timed_ = false;
  last_untimed_ = 0;
  last_duration_.clear();
}

}  // namespace flopinj
