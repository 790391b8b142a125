#include "passes/rows/batch_counter.h"

#include <call_times.h>

#include <algorithm>
#include <utility>

#include "passes/rows/place_rows.h"

namespace flopinj::reduce {
namespace {

// Places of last_duration_ that are cleared after each batch, whichever of them it has used.
constexpr size_t kAlwaysCleared = 1024;
bool begins_before(const BusyInterval& a, const BusyInterval& b) { return a.begin < b.begin; }

}  // namespace

uint32_t BatchCounter::lane_of(const LaunchBatchReader& batch,
                               const LaunchBatchReader::Stretch& alike, NumberTells tells) {
  const StepNames* const names = shared_.step_names();
  if (names != nullptr && names->without(rows_of_.trace(), alike.step))
    tells = NumberTells::kNameless;
  LaunchLane lane{batch.thread(), batch.stream(), tells};
  if (shared_.rows_by() == RowsBy::kSummary) {
    lane.windowed = alike.windowed;
    // Steps that did not end are not counted, and neither are their launches.
    lane.in_step = alike.step != 0 &&
                   shared_.tables().traces[rows_of_.trace()].steps.steps().contains(alike.step);
  }
  return rows_of_.lane(lane);
}

size_t BatchCounter::count(const LaunchBatchReader& batch, DeviceTime& device,
                           BusyInterval* intervals, DamageLog& damage) {
  order_ = batch.order();
  run_ = {};
  interval_ = intervals;
  intervals_ = 0;
  in_order_ = true;
  now_ = batch.first_start_ns();
  device_ = &device;
  Columns columns{batch.gaps(), batch.durations()};
  begin_calls(batch);
  const std::vector<NumberSplit::Cut>& cuts = split_.of(rows_of_.trace(), batch);
  auto cut = cuts.begin();
  batch.for_each_stretch([&](const LaunchBatchReader::Stretch& alike) {
    uint32_t lane = lane_of(batch, alike, cut->tells);
    for (size_t at = alike.begin; at < alike.end;) {
      if (at == cut->end) lane = lane_of(batch, alike, (++cut)->tells);
      const size_t launches = std::min({kAtOnce, alike.end - at, cut->end - at});
      next_rows(lane, launches);
      if (alike.timed)
        timed(alike, launches, columns, damage);
      else
        untimed(alike, columns);
      if (consumer_ != nullptr) show(alike, at, launches);
      if (named_rows_ > 0) rows_of_.take(named_, 0, named_rows_);
      at += launches;
    }
  });
  forget_durations();
  device.placed += intervals_;
  device.unplaced += batch.size() - intervals_;
  if (!in_order_) std::stable_sort(intervals, intervals + intervals_, begins_before);
  return intervals_;
}

void BatchCounter::begin_calls(const LaunchBatchReader& batch) {
  if (batch.has_calls())
    device_->clock_error_ns = std::max(device_->clock_error_ns, batch.clock_error_ns());
  piece_.calls = batch.has_calls() && consumer_ != nullptr;
  if (!piece_.calls) return;
  called_before_ = batch.called_before();
  piece_.clock_error_ns = batch.clock_error_ns();
  any_timed_ = false;
  pauses_ = batch.pauses();
  next_pause_ = {};
  read_pause();
}

void BatchCounter::read_pause() {
  if (pauses_.empty()) {
    next_pause_.at = UINT64_MAX;
    return;
  }
  next_pause_.at += pauses_.next32();
  next_pause_.path = pauses_.next32();
  next_pause_.since_ns = uint64_t{pauses_.next32()} * kCallUnitNs;
  next_pause_.length_ns = uint64_t{pauses_.next32()} * kCallUnitNs;
}

void BatchCounter::note_calls(const Deltas& deltas, size_t launches) {
  if (!piece_.calls) return;
  for (size_t i = 0; i < launches; ++i) {
    const bool first = !std::exchange(any_timed_, true);
    const bool has = first || deltas.gaps[i] >= kLeastCalledGapNs;
    piece_.called_before[i] =
        has ? static_cast<uint32_t>(std::min<uint64_t>(called_before_.next(), UINT32_MAX)) : 0;
  }
}

// With the pauses before the launches at hand, the first of which has this index in its batch.
void BatchCounter::show(const LaunchBatchReader::Stretch& alike, size_t begin, size_t launches) {
  piece_.pauses.clear();
  for (; piece_.calls && next_pause_.at < begin + launches; read_pause()) {
    piece_.pauses.push_back(next_pause_);
    piece_.pauses.back().at -= begin;
  }
  piece_.graph = alike.graph;
  piece_.windowed = alike.windowed;
  piece_.step = alike.step;
  piece_.size = launches;
  for_each_row([&](size_t i, uint32_t row) { piece_.row[i] = row; });
  consumer_->launches(rows_of_, piece_);
}

// Rows of the next launches, in pieces.
void BatchCounter::next_rows(uint32_t lane, size_t launches) {
  rows_of_.make_room(launches);
  rows_.clear();
  named_rows_ = 0;
  while (launches > 0) {
    if (run_.launches == 0) {
      run_ = order_.next_run();
      run_is_pattern_ = run_.first_row != 0;
    }
    const RowStretch rows =
        run_is_pattern_ ? rows_of_.pattern_rows(lane, run_, launches) : name_rows(lane, launches);
    rows_.push_back(rows);
    run_.first_row += rows.count;
    run_.launches -= rows.count;
    launches -= rows.count;
    if (rows_of_.durations() > kAlwaysCleared) note_durations(rows);
  }
  if (last_duration_.size() < rows_of_.durations()) last_duration_.resize(rows_of_.durations());
}

RowStretch BatchCounter::name_rows(uint32_t lane, size_t most) {
  const RowStretch rows{&named_, named_rows_, std::min(most, run_.launches)};
  named_rows_ += rows.count;
  for (size_t i = rows.at; i < named_rows_; ++i) {
    const LaunchOrder::Named named = order_.next_named();
    named_.row[i] = rows_of_.row(lane, named.path, named.signature, named.call);
  }
  rows_of_.describe(named_, rows.at, named_rows_);
  return rows;
}

void BatchCounter::note_durations(const RowStretch& rows) {
  const auto from = rows.block->duration.begin() + static_cast<std::ptrdiff_t>(rows.at);
  durations_to_clear_.insert(durations_to_clear_.end(), from,
                             from + static_cast<std::ptrdiff_t>(rows.count));
}

// In each batch durations are differences to 0 at first.
void BatchCounter::forget_durations() {
  const size_t always = std::min(kAlwaysCleared, last_duration_.size());
  std::fill_n(last_duration_.begin(), always, 0);
  for (const uint32_t place : durations_to_clear_) last_duration_[place] = 0;
  durations_to_clear_.clear();
}

template <typename Visit>
void BatchCounter::for_each_row(Visit&& visit) const {
  size_t number = 0;
  for (const RowStretch& rows : rows_)
    for (size_t i = 0; i < rows.count; ++i) visit(number++, rows.row(i));
}

void BatchCounter::untimed(const LaunchBatchReader::Stretch& alike, Columns& columns) {
  for_each_row([&](size_t i, uint32_t row) {
    piece_.called_before[i] = 0;
    columns.gaps.next();
    columns.durations.next();
    piece_.duration_ns[i] = LaunchPiece::kNoTime;
    Counts& c = rows_of_.info()[row].other;
    ++c.launches;
    c.graph += alike.graph ? 1 : 0;
    c.windowed += alike.windowed ? 1 : 0;
  });
}

void BatchCounter::timed(const LaunchBatchReader::Stretch& alike, size_t launches, Columns& columns,
                         DamageLog& damage) {
  Deltas deltas;
  unpack_signed(columns.gaps, columns.durations, launches, deltas.gaps.data(),
                deltas.longer.data());
  note_calls(deltas, launches);
  if (alike.graph) for_each_row([&](size_t, uint32_t row) { ++rows_of_.info()[row].other.graph; });
  if (!alike.windowed && place(deltas, launches)) return;
  for_each_row([&](size_t i, uint32_t row) {
    piece_.duration_ns[i] =
        place_one(row, deltas.gaps[i], deltas.longer[i], alike.windowed, damage);
    piece_.start_ns[i] = now_ - piece_.duration_ns[i];
  });
}

// Launches outside of windows. False, and nothing is added, where one of them has no place in time.
bool BatchCounter::place(const Deltas& deltas, size_t launches) {
  const std::span<BusyInterval> placed(interval_ + intervals_, launches);
  uint64_t* const last_duration = last_duration_.data();
  Placed found{.now = now_};
  size_t at = 0;
  for (const RowStretch& rows : rows_) {
    RowBlock& block = *rows.block;
    const size_t count = rows.count;
    const uint32_t* const place_of = block.duration.data() + rows.at;
    const int64_t* const longer = deltas.longer.data() + at;
    uint64_t* const durations = piece_.duration_ns.data() + at;
    for (size_t i = 0; i < count; ++i)
      durations[i] = last_duration[place_of[i]] += static_cast<uint64_t>(longer[i]);
    place_rows({durations, deltas.gaps.data() + at, block.kernel.data() + rows.at,
                block.time_ns.data() + rows.at, placed.data() + at},
               count, found);
    at += count;
    ++block.begun[rows.at];
    --block.begun[rows.at + count];
  }
  if (!BusyInterval::has_place(found.start_bits, found.duration_bits)) [[unlikely]] {
    take_back(deltas, launches);
    return false;
  }
  device_->kernel_ns += found.duration_ns;
  now_ = found.now;
  // Where no kernel begins before the one before it has ended, begins and ends are in order.
  const bool one_at_a_time = found.gap_bits >= 0;
  const bool follows = intervals_ == 0 || placed.data()[-1].begin <= placed.front().begin;
  in_order_ = in_order_ && follows &&
              (one_at_a_time || std::is_sorted(placed.begin(), placed.end(), begins_before));
  intervals_ += launches;
  if (consumer_ != nullptr)
    for (size_t i = 0; i < launches; ++i) piece_.start_ns[i] = placed[i].begin;
  add_flop(placed, one_at_a_time);
  return true;
}

// What place() has added before it knew all of the launches.
void BatchCounter::take_back(const Deltas& deltas, size_t launches) {
  for (auto rows = rows_.rbegin(); rows != rows_.rend(); ++rows) {
    --rows->block->begun[rows->at];
    ++rows->block->begun[rows->at + rows->count];
    for (size_t i = rows->at + rows->count; i-- > rows->at;) {
      uint64_t& last = last_duration_[rows->block->duration[i]];
      rows->block->time_ns[i] -= last;
      last -= static_cast<uint64_t>(deltas.longer[--launches]);
    }
  }
}

// Any launch that has a time. Its duration, or kNoTime where that is damaged.
uint64_t BatchCounter::place_one(uint32_t row, int64_t gap, int64_t longer, bool windowed,
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
    return LaunchPiece::kNoTime;
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
  if (!BusyInterval::has_place(start, duration)) return duration;
  if (h.flop != 0) device_->flop[h.phase].add(start, now_, h.flop);
  BusyInterval* const to = interval_ + intervals_;
  *to = {start, h.kernel | duration};
  in_order_ = in_order_ && (intervals_ == 0 || to[-1].begin <= start);
  ++intervals_;
  device_->kernel_ns += duration;
  return duration;
}

// To the device's FLOP over time. Most of the time all launches lie within one bin.
void BatchCounter::add_flop(std::span<const BusyInterval> placed, bool ends_in_order) {
  if (flop_.empty()) return;
  const bool together = ends_in_order && placed.size() <= rows_of_.flop_fit();
  if (together)
    sum_flop();
  else
    std::fill(flop_.begin(), flop_.end(), 1);  // whatever it is
  bool left = false;
  for (size_t phase = 0; phase < flop_.size(); ++phase) {
    if (flop_[phase] == 0) continue;
    if (together && device_->flop[phase].add_to_last_bin(placed.front().begin, placed.back().end(),
                                                         flop_[phase]))
      flop_[phase] = 0;
    else
      left = true;
  }
  if (!left) return;
  const RowTable::Hot* const hot = rows_of_.hot();
  for_each_row([&](size_t i, uint32_t row) {
    const RowTable::Hot& h = hot[row];
    if (h.flop != 0 && flop_[h.phase] != 0)
      device_->flop[h.phase].add(placed[i].begin, placed[i].end(), h.flop);
  });
  std::fill(flop_.begin(), flop_.end(), 0);
}

// Of the launches at hand, by phase.
void BatchCounter::sum_flop() {
  for (const RowStretch& rows : rows_) {
    const RowBlock& block = *rows.block;
    const size_t end = rows.at + rows.count;
    for (size_t i = rows.at, next = 0; i < end; i = next) {
      next = std::min<size_t>(block.phase_to[i], end);
      flop_[block.phase[i]] += block.flop_to[next] - block.flop_to[i];
    }
  }
}

}  // namespace flopinj::reduce
