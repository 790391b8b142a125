// What the writer thread does with launches that leave the merger.
#include <collector/writer/writer_loop.h>

#include <algorithm>
#include <utility>

namespace flopinj {
namespace {

// Releases that a launch waits for its time: with the default period, under a second until it is in
// the file.
constexpr uint32_t kMaxAge = 2;
constexpr uint64_t kTallyPeriodNs = 1'000'000'000;
// Where the trace cannot be rewritten, the tally is written whenever the recording has become 1 %
// longer: what there is of it grows with the logarithm of the run's length.
constexpr uint64_t kStreamedTallyPart = 100;

}  // namespace

void WriterLoop::release(bool everything) {
  merger_.release(
      kMaxAge, everything,
      [this](const LaunchMerger::Origin& origin, const TimedLaunch& launch) {
        add_launch(origin, launch);
      },
      [this](const TallyRow& row) {
        make_room_in_tally();
        tally_.add(row);
      });
}

void WriterLoop::add_launch(const LaunchMerger::Origin& origin, const TimedLaunch& launch) {
  if (state_.config.level == Level::kTally) {
    make_room_in_tally();
    tally_.add(origin.thread, origin.stream, launch);
  } else {
    const uint64_t key = uint64_t{origin.thread.value} << 32 | origin.stream.value;
    LaunchColumns& columns = columns_.try_emplace(key, origin.thread, origin.stream).first->second;
    if (columns.full()) {
      writer_.launches(columns);
      columns.clear();
    }
    (void)columns.add(launch);  // has room now
  }
  if (launch.found) state_.losses.found(device_slot(origin.device), 1);
  counts_.recorded(origin.device, launch);
  ++released_[device_slot(origin.device)];
}

// Columns that had nothing this time give their memory back.
void WriterLoop::write_columns() {
  for (auto at = columns_.begin(); at != columns_.end();) {
    LaunchColumns& columns = at->second;
    const bool idle = columns.size() == 0;
    wrote_launches_ |= !idle;
    writer_.launches(columns);
    columns.clear();
    at = idle ? columns_.erase(at) : std::next(at);
  }
  if (state_.config.level == Level::kLaunches) recorded_ = released_;
}

// A full table starts anew under new keys; what was written stays as it is.
void WriterLoop::make_room_in_tally() {
  if (!tally_.full()) return;
  write_tally(true);
  tally_.clear();
  tally_messages_.clear();
}

// Level launches: times that came after their launches were written.
void WriterLoop::write_late_times(uint64_t since_ns) {
  wrote_launches_ |= !tally_.empty();
  writer_.tallies(tally_.rows(), since_ns, tally_written_ns_);
  tally_.clear();
}

// Level tally: sums since the beginning, each block of them in place of what was written of it
// before.
void WriterLoop::write_blocks() {
  for (size_t i = 0; i < tally_.blocks(); ++i) {
    if (i == tally_messages_.size()) tally_messages_.emplace_back(next_key_++);
    if (!tally_.take_changed(i)) continue;
    wrote_launches_ = true;
    writer_.tally(tally_messages_[i], tally_.block(i), began_ns_, tally_written_ns_);
  }
  recorded_ = released_;
}

void WriterLoop::write_tally(bool everything) {
  const uint64_t now = state_.now();
  uint64_t period = kTallyPeriodNs;
  if (state_.config.level == Level::kTally && !writer_.sink().rewritable())
    period = std::max(period, (now - began_ns_) / kStreamedTallyPart);
  if (!everything && now - tally_written_ns_ < period) return;
  const uint64_t since = std::exchange(tally_written_ns_, now);
  if (state_.config.level == Level::kTally)
    write_blocks();
  else
    write_late_times(since);
}

}  // namespace flopinj
