// What the writer thread does with launches that leave the merger.
#include <collector/writer_loop.h>

namespace flopinj {
namespace {

// Releases that a launch waits for its time: with the default period, under a second until it is in
// the file.
constexpr uint32_t kMaxAge = 2;
constexpr uint64_t kTallyPeriodNs = 1'000'000'000;

}  // namespace

void WriterLoop::release(bool everything) {
  merger_.release(
      kMaxAge, everything,
      [this](const LaunchMerger::Origin& origin, const TimedLaunch& launch) {
        add_launch(origin, launch);
      },
      [this](const TallyRow& row) {
        if (tally_.full()) write_tally(true);
        tally_.add(row);
      });
}

void WriterLoop::add_launch(const LaunchMerger::Origin& origin, const TimedLaunch& launch) {
  if (state_.config.level == Level::kTally) {
    if (tally_.full()) write_tally(true);
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

void WriterLoop::write_tally(bool everything) {
  const uint64_t now = state_.now();
  if (!everything && now - tally_began_ns_ < kTallyPeriodNs) return;
  wrote_launches_ |= !tally_.empty();
  writer_.tallies(tally_.rows(), tally_began_ns_, now);
  tally_.clear();
  tally_began_ns_ = now;
  if (state_.config.level == Level::kTally) recorded_ = released_;
}

}  // namespace flopinj
