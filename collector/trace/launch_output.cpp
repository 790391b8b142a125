#include <collector/trace/launch_output.h>

#include <algorithm>
#include <utility>

namespace flopinj {
namespace {

constexpr uint64_t kTallyPeriodNs = 1'000'000'000;
// Where the trace cannot be rewritten, the tally is written whenever the recording has become 1 %
// longer: what there is of it grows with the logarithm of the run's length.
constexpr uint64_t kStreamedTallyPart = 100;

}  // namespace

LaunchOutput::LaunchOutput(TraceWriter& writer, Level level, Now now, Now real_now)
    : writer_(writer),
      level_(level),
      now_(std::move(now)),
      real_now_(std::move(real_now)),
      began_ns_(now_()),
      began_real_ns_(real_now_()),
      tally_written_ns_(began_ns_),
      tally_written_real_ns_(began_real_ns_) {}

void LaunchOutput::add(size_t device_slot, ThreadId thread, StreamId stream,
                       const TimedLaunch& launch) {
  if (level_ == Level::kTally) {
    make_room_in_tally();
    tally_.add(thread, stream, launch);
  } else {
    const uint64_t key = uint64_t{thread.value} << 32 | stream.value;
    LaunchColumns& columns = columns_.try_emplace(key, thread, stream).first->second;
    if (columns.full()) {
      writer_.launches(columns, clock_error_ns_);
      columns.clear();
    }
    (void)columns.add(launch);  // has room now
  }
  if (added_.size() <= device_slot) added_.resize(device_slot + 1);
  ++added_[device_slot];
}

void LaunchOutput::add(const TallyRow& row) {
  make_room_in_tally();
  tally_.add(row);
}

void LaunchOutput::write(bool everything) {
  write_columns();
  write_tally(everything);
}

void LaunchOutput::clear() {
  columns_.clear();
  tally_.clear();
}

// Columns that had nothing this time give their memory back.
void LaunchOutput::write_columns() {
  for (auto at = columns_.begin(); at != columns_.end();) {
    LaunchColumns& columns = at->second;
    const bool idle = columns.size() == 0;
    written_ |= !idle;
    writer_.launches(columns, clock_error_ns_);
    columns.clear();
    at = idle ? columns_.erase(at) : std::next(at);
  }
  if (level_ == Level::kLaunches) recorded_ = added_;
}

// A full table starts anew under new keys; what was written stays as it is.
void LaunchOutput::make_room_in_tally() {
  if (!tally_.full()) return;
  write_tally(true);
  tally_.clear();
  tally_messages_.clear();
}

// Level launches: times that came after their launches were written.
void LaunchOutput::write_late_times(uint64_t since_ns) {
  written_ |= !tally_.empty();
  writer_.tallies(tally_.rows(), since_ns, tally_written_ns_);
  tally_.clear();
}

// Level tally: sums since the beginning, each block of them in place of what was written of it
// before.
void LaunchOutput::write_blocks() {
  for (size_t i = 0; i < tally_.blocks(); ++i) {
    if (i == tally_messages_.size()) tally_messages_.emplace_back(next_key_++);
    if (!tally_.take_changed(i)) continue;
    written_ = true;
    writer_.tally(tally_messages_[i], tally_.block(i), began_ns_, tally_written_ns_);
  }
  recorded_ = added_;
}

void LaunchOutput::write_tally(bool everything) {
  const uint64_t now = real_now_();
  uint64_t period = kTallyPeriodNs;
  if (level_ == Level::kTally && !writer_.sink().rewritable())
    period = std::max(period, (now - began_real_ns_) / kStreamedTallyPart);
  if (!everything && now - tally_written_real_ns_ < period) return;
  tally_written_real_ns_ = now;
  const uint64_t since = std::exchange(tally_written_ns_, now_());
  if (level_ == Level::kTally)
    write_blocks();
  else
    write_late_times(since);
}

}  // namespace flopinj
