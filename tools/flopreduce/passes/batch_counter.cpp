#include "passes/batch_counter.h"

#include <algorithm>
#include <array>

#include "reader/unpack.h"

namespace flopinj::reduce {
namespace {

// Times beyond are no times: 146 years after whatever the clock counts from.
constexpr unsigned kTimeBits = 62;

// Whether a kernel's time fits into an interval.
bool has_place(uint64_t start, uint64_t duration) {
  return ((start >> (kTimeBits - BusyInterval::kLengthBits) | duration) >>
          BusyInterval::kLengthBits) == 0;
}

bool begins_before(const BusyInterval& a, const BusyInterval& b) { return a.begin < b.begin; }

}  // namespace

std::span<const BusyInterval> BatchCounter::count(const LaunchBatchReader& batch, uint32_t lane,
                                                  DeviceTime& device, DamageLog& damage) {
  look_up_rows(batch, lane);
  forget_durations();
  interval_.resize(std::max(interval_.size(), batch.size()));
  intervals_ = 0;
  in_order_ = true;
  now_ = batch.first_start_ns();
  device_ = &device;
  Columns columns{batch.gaps(), batch.durations()};
  batch.for_each_stretch([&](const LaunchBatchReader::Stretch& s) {
    if (s.timed)
      timed(s, columns, damage);
    else
      untimed(s, columns);
  });
  device.placed += intervals_;
  device.unplaced += batch.size() - intervals_;
  const std::span<BusyInterval> intervals(interval_.data(), intervals_);
  if (!in_order_) std::stable_sort(intervals.begin(), intervals.end(), begins_before);
  return intervals;
}

void BatchCounter::look_up_rows(const LaunchBatchReader& batch, uint32_t lane) {
  row_.resize(batch.size());
  uint32_t* to = row_.data();
  batch.order().for_each(
      [&](uint64_t first, size_t count) {
        rows_of_.pattern_rows(lane, first, count, to);
        to += count;
      },
      [&](uint32_t signature, uint32_t path) { *to++ = rows_of_.row(lane, path, signature); });
}

// In each batch durations are differences to 0 at first.
void BatchCounter::forget_durations() {
  constexpr size_t kCheap = 1024;
  last_duration_.resize(std::max(last_duration_.size(), rows_of_.durations()));
  if (last_duration_.size() <= kCheap + row_.size())
    std::fill(last_duration_.begin(), last_duration_.end(), 0);
  else
    for (const uint32_t row : row_) last_duration_[rows_of_.hot()[row].duration] = 0;
}

void BatchCounter::untimed(const LaunchBatchReader::Stretch& stretch, Columns& columns) {
  for (size_t i = stretch.begin; i < stretch.end; ++i) {
    columns.gaps.next();
    columns.durations.next();
    Counts& c = rows_of_.info()[row_[i]].other;
    ++c.launches;
    c.graph += stretch.graph ? 1 : 0;
    c.windowed += stretch.windowed ? 1 : 0;
  }
}

void BatchCounter::timed(const LaunchBatchReader::Stretch& stretch, Columns& columns,
                         DamageLog& damage) {
  std::array<int64_t, kChunk + kUnpackRoom> gaps;
  std::array<int64_t, kChunk + kUnpackRoom> longer;
  RowTable::Info* const info = rows_of_.info();
  // Their FLOP together fit into a number.
  const uint64_t fit = UINT64_MAX / std::max<uint64_t>(1, rows_of_.most_flop());
  const auto chunk = static_cast<size_t>(std::min<uint64_t>(kChunk, fit));
  for (size_t begin = stretch.begin; begin < stretch.end; begin += chunk) {
    const size_t launches = std::min(chunk, stretch.end - begin);
    const uint32_t* const rows = row_.data() + begin;
    unpack_signed(columns.gaps, launches, gaps.data());
    unpack_signed(columns.durations, launches, longer.data());
    if (stretch.graph)
      for (size_t i = 0; i < launches; ++i) ++info[rows[i]].other.graph;
    for (size_t i = 0; i < launches; ++i) {
      if (!stretch.windowed)
        i += place(rows + i, {gaps.data() + i, longer.data() + i}, launches - i);
      if (i < launches) place_one(rows[i], gaps[i], longer[i], stretch.windowed, damage);
    }
  }
}

// The loop that most of the time is spent in, some fifteen processor cycles a launch: what is not needed
// for each launch is out of it. Launches outside of windows, up to the first that has no place in time;
// returns how many.
size_t BatchCounter::place(const uint32_t* rows, Deltas deltas, size_t launches) {
  RowTable::Hot* const hot = rows_of_.hot();
  uint64_t* const last_duration = last_duration_.data();
  uint64_t* const flop = flop_.data();
  BusyInterval* const to = interval_.data() + intervals_;
  uint64_t now = now_;
  size_t i = 0;
  for (; i < launches; ++i) {
    RowTable::Hot& h = hot[rows[i]];
    const uint64_t start = now + static_cast<uint64_t>(deltas.gaps[i]);
    uint64_t& last = last_duration[h.duration];
    const uint64_t duration = last + static_cast<uint64_t>(deltas.longer[i]);
    if (!has_place(start, duration)) [[unlikely]]
      break;
    last = duration;
    now = start + duration;
    ++h.timed;
    if (!add_saturating(h.time_ns, duration)) [[unlikely]]
      overflow_ = true;
    flop[h.phase] += h.flop;
    to[i] = {start, h.kernel | duration};
  }
  if (i == 0) return 0;
  uint64_t gaps = 0;
  int64_t signs = 0;
  for (size_t k = 0; k < i; ++k) {
    gaps += static_cast<uint64_t>(deltas.gaps[k]);
    signs |= deltas.gaps[k];
  }
  device_->kernel_ns += now - now_ - gaps;
  now_ = now;
  // Where no kernel begins before the one before it has ended, begins and ends are in order.
  const bool one_at_a_time = signs >= 0;
  const std::span<const BusyInterval> placed(to, i);
  const bool follows = intervals_ == 0 || to[-1].begin <= to->begin;
  in_order_ = in_order_ && follows &&
              (one_at_a_time || std::is_sorted(placed.begin(), placed.end(), begins_before));
  intervals_ += i;
  add_flop(placed, rows, one_at_a_time);
  return i;
}

// Any launch that has a time.
void BatchCounter::place_one(uint32_t row, int64_t gap, int64_t longer, bool windowed,
                             DamageLog& damage) {
  RowTable::Hot& h = rows_of_.hot()[row];
  Counts& other = rows_of_.info()[row].other;
  const uint64_t start = now_ + static_cast<uint64_t>(gap);
  uint64_t& last = last_duration_[h.duration];
  const uint64_t duration = last + static_cast<uint64_t>(longer);
  if (windowed) ++other.windowed;
  if (duration > kLongestKernelNs) {
    damage.add(Damage::kBadTime);
    ++other.launches;
    return;
  }
  last = duration;
  now_ = start + duration;
  if (windowed) {
    ++other.launches;
    ++other.windowed_timed;
    overflow_ = !add_saturating(other.windowed_time_ns, duration) || overflow_;
  } else {
    ++h.timed;
    overflow_ = !add_saturating(h.time_ns, duration) || overflow_;
  }
  if (!has_place(start, duration)) return;
  if (h.flop != 0) device_->flop[h.phase].add(start, now_, h.flop);
  BusyInterval* const to = interval_.data() + intervals_;
  *to = {start, h.kernel | duration};
  in_order_ = in_order_ && (intervals_ == 0 || to[-1].begin <= start);
  ++intervals_;
  device_->kernel_ns += duration;
}

// Adds flop_ to the device's FLOP over time, and leaves zeros. Most chunks lie within one bin.
void BatchCounter::add_flop(std::span<const BusyInterval> placed, const uint32_t* rows,
                            bool ends_in_order) {
  bool left = false;
  for (size_t phase = 0; phase < flop_.size(); ++phase) {
    if (flop_[phase] == 0) continue;
    if (ends_in_order && device_->flop[phase].add_to_last_bin(placed.front().begin,
                                                              placed.back().end(), flop_[phase]))
      flop_[phase] = 0;
    else
      left = true;
  }
  if (!left) return;
  const RowTable::Hot* const hot = rows_of_.hot();
  for (size_t i = 0; i < placed.size(); ++i) {
    const RowTable::Hot& h = hot[rows[i]];
    if (h.flop != 0 && flop_[h.phase] != 0)
      device_->flop[h.phase].add(placed[i].begin, placed[i].end(), h.flop);
  }
  std::fill(flop_.begin(), flop_.end(), 0);
}

}  // namespace flopinj::reduce
