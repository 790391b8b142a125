#include "passes/totals_pass.h"

#include <algorithm>
#include <tuple>

#include "flop_trace_fields.h"

namespace flopinj::reduce {
namespace {

// What a row of a tally adds to the counts of its launches, without an impossible time.
Counts counts_of(const TallyRow& row) {
  Counts counts;
  counts.launches = row.launches;
  counts.graph = std::min(row.graph_launches, row.launches);
  counts.windowed = row.windowed ? row.launches : 0;
  counts.calls = std::min(row.calls, row.launches);
  if (!row.has_possible_time()) return counts;
  (row.windowed ? counts.windowed_timed : counts.timed) = row.timed;
  (row.windowed ? counts.windowed_time_ns : counts.time_ns) = row.gpu_time_ns;
  return counts;
}

}  // namespace

size_t most_open_intervals(const TraceTables& tables, uint32_t trace) {
  return std::max<size_t>(1024, kMostOpenIntervals / (tables.traces[trace].device_count + 1));
}

void append_times(SegmentTimes& to, const TraceTables& tables, uint32_t trace,
                  const SegmentTimes& segment) {
  for (const auto& [device, track] : segment)
    to.try_emplace(device, most_open_intervals(tables, trace), false).first->second.append(track);
}

size_t TotalsPass::RowHash::operator()(const RowKey& k) const {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;
  const uint64_t h = (k.signature_chip * kPrime) ^ ((k.path_rule + 1) * 0xC2B2AE3D27D4EB4FULL);
  return h ^ (h >> 29);
}

namespace {

// Their kernels are compared.
bool several_devices(const SharedTables& shared) {
  return std::ranges::count_if(shared.tables().devices,
                               [](const Device& device) { return device.id != 0; }) > 1;
}

}  // namespace

TotalsPass::TotalsPass(SharedTables& shared, LaunchConsumer* consumer, bool totals)
    : shared_(shared),
      consumer_(consumer),
      totals_wanted_(totals),
      by_path_(several_devices(shared)),
      rows_of_(shared),
      counter_(shared, rows_of_, consumer) {}

DeviceTime& TotalsPass::time_of(uint32_t device) {
  DeviceTime& time = devices_[totals_wanted_ ? device : kNoIndex];
  if (time.flop.empty())
    time.flop.resize(shared_.phases().size(), FlopSeries(shared_.most_flop_bins()));
  return time;
}

void TotalsPass::use_trace(uint32_t trace) {
  if (trace == trace_) return;
  fold_rows();
  rows_of_.use_trace(trace);
  trace_ = trace;
}

SegmentTimes TotalsPass::segment(const Segment& segment, DamageLog& damage) {
  SegmentTimes times;
  use_trace(segment.trace);
  for_each_new_packet(segment, [&](const Packet& packet) {
    if (!packet.is_batch()) {
      if (consumer_ != nullptr) consumer_->packet(segment.trace, packet);
    } else if (packet.damaged) {
      damage.add(Damage::kBadFrame);
      damage.add(Damage::kSkippedBytes, packet.end - packet.offset);
      damage.add(Damage::kLostPackets);
    } else if (packet.body_field ==
               static_cast<uint32_t>(trace_fields::TracePacketField::launch_batch)) {
      launch_batch(packet, times, damage);
    } else {
      tally_batch(packet, damage);
    }
    return consumer_ == nullptr || consumer_->goes_on();
  });
  rows_of_.take_patterns();
  report_lost(damage);
  return times;
}

void TotalsPass::tally(uint32_t trace, const Packet& packet, DamageLog& damage) {
  use_trace(trace);
  tally_batch(packet, damage);
  report_lost(damage);
}

void TotalsPass::launch_batch(const Packet& packet, SegmentTimes& times, DamageLog& damage) {
  LaunchBatchReader batch;
  if (!batch.open(packet.body, damage, packet.sequence)) return;
  const TraceState& trace = shared_.tables().traces[trace_];
  const SkippedLaunches skipped = batch.leave_out(trace.skipped_steps, trace.patterns);
  const uint32_t device = rows_of_.device(rows_of_.lane({batch.thread(), batch.stream()}));
  if (skipped.launches > 0) {
    time_of(device).skipped.add(skipped);
    if (batch.size() == 0) return;
  }
  if (totals_wanted_) {
    auto& track = times.try_emplace(device, most_open_intervals(shared_.tables(), trace_), true)
                      .first->second;
    track.added(counter_.count(batch, time_of(device), track.room(batch.size()), damage));
  } else {
    unused_times_.resize(std::max(unused_times_.size(), size_t{batch.size()}));
    counter_.count(batch, time_of(device), unused_times_.data(), damage);
  }
  if (consumer_ != nullptr) consumer_->batch(trace_, batch);
}

void TotalsPass::tally_batch(const Packet& packet, DamageLog& damage) {
  TallyBatchReader batch;
  if (!batch.open(packet.body, damage)) return;
  TallyRow t;
  while (batch.next(t)) {
    LaunchLane lane{t.thread, t.stream, t.number_tells};
    if (shared_.rows_by() == RowsBy::kSummary) {
      lane.windowed = t.windowed;
      lane.in_step = t.in_step;
    }
    const uint32_t index = rows_of_.lane(lane);
    const uint32_t row = rows_of_.row(index, t.range_path, t.signature, false);
    if (!t.has_possible_time()) damage.add(Damage::kBadTime);
    // A time that came late: nothing says whether its launch is skipped.
    if (t.launches == 0 && shared_.tables().traces[trace_].skipped_steps.any()) continue;
    overflow_ = !rows_of_.info()[row].other.add(counts_of(t)) || overflow_;
    if (totals_wanted_) add_saturating(devices_[rows_of_.device(index)].unplaced, t.launches);
    if (consumer_ != nullptr) consumer_->tally(rows_of_, row, t);
  }
}

// Launches that name something never defined, of this segment.
void TotalsPass::report_lost(DamageLog& damage) {
  for (const uint32_t row : rows_of_.lost()) {
    RowTable::Info& info = rows_of_.info()[row];
    uint64_t launches = info.other.launches;
    add_saturating(launches, rows_of_.hot()[row].timed);
    damage.add(Damage::kUndefinedId, launches - info.reported);
    info.reported = launches;
  }
}

void TotalsPass::add_counts(const RowKey& key, const Counts& counts) {
  auto entry = totals_.find(key);
  if (entry == totals_.end()) {
    full_ = full_ || totals_.size() >= kMaxRows;
    if (totals_.size() >= kMaxRows) return;
    entry = totals_.try_emplace(key).first;
  }
  overflow_ = !entry->second.add(counts) || overflow_;
}

void TotalsPass::fold_totals() {
  for (size_t i = 1; i < rows_of_.size(); ++i) {
    const RowTable::Hot& hot = rows_of_.hot()[i];
    const RowTable::Info& info = rows_of_.info()[i];
    Counts counts = info.other;
    Counts outside_windows;
    outside_windows.launches = outside_windows.timed = hot.timed;
    outside_windows.time_ns = hot.time_ns;
    overflow_ = !counts.add(outside_windows) || overflow_;
    if (info.call) counts.calls = counts.launches;
    if (info.green) counts.green = counts.launches - std::min(counts.graph, counts.launches);
    const uint64_t signature = static_cast<uint64_t>(info.signature) << 32;
    add_counts({signature | shared_.tables().devices[info.device].chip,
                static_cast<uint64_t>(info.path) << 32 | info.rule},
               counts);
    full_ = full_ || timed_rows_.size() >= kMaxDeviceRows;
    if (timed_rows_.size() < kMaxDeviceRows) {
      device_rows_.add(info.signature, {info.device, counts.launches, counts.graph});
      timed_rows_.add({info.signature, by_path_ ? info.path : PathTable::kRoot, info.rule},
                      {info.device, counts.launches, counts.timed, counts.time_ns});
    }
    if (shared_.rows_by() == RowsBy::kThread) add_fact(info, counts);
  }
}

void TotalsPass::fold_rows() {
  if (totals_wanted_) fold_totals();
  if (consumer_ != nullptr) consumer_->end(rows_of_);
  left_out_ += rows_of_.hot()[RowTable::kDiscard].timed;
  left_out_ += rows_of_.info()[RowTable::kDiscard].other.launches;
  full_ = full_ || rows_of_.full();
  overflow_ = overflow_ || rows_of_.overflow();
  rows_of_.clear();
  trace_ = kNoIndex;
  if (!totals_wanted_) devices_.clear();
}

// Threads and streams that are not known are one.
void TotalsPass::add_fact(const RowTable::Info& info, const Counts& counts) {
  if (counts.launches == 0 && counts.timed == 0 && counts.windowed_timed == 0) return;
  if (facts_size_ >= kMaxFacts) {
    add_saturating(facts_left_out_, counts.launches);
    return;
  }
  const TraceState& trace = shared_.tables().traces[rows_of_.trace()];
  const LaunchLane lane = rows_of_.lane_of(info);
  ++facts_size_;
  facts_[rows_of_.trace()].push_back({info.device,
                                      trace.threads.get(lane.thread) != kNoIndex ? lane.thread : 0,
                                      trace.streams.get(lane.stream) != kNoIndex ? lane.stream : 0,
                                      info.path, info.rule, info.signature, counts});
}

void TotalsPass::add(TotalsPass& other) {
  add_saturating(facts_left_out_, other.facts_left_out_);
  if (facts_size_ + other.facts_size_ <= kMaxFacts) {
    facts_size_ += other.facts_size_;
    for (auto& [trace, rows] : other.facts_) {
      const auto [entry, fresh] = facts_.try_emplace(trace);
      if (fresh)
        entry->second = std::move(rows);
      else
        for (const FactRow& row : rows) entry->second.push_back(row);
      rows = {};
    }
  } else {
    add_saturating(facts_left_out_, other.facts_size_);
  }
  for (const auto& [key, counts] : other.totals_) add_counts(key, counts);
  device_rows_.add(other.device_rows_);
  timed_rows_.add(other.timed_rows_);
  for (auto& [index, from] : other.devices_) {
    DeviceTime& to = devices_[index];
    if (to.flop.empty()) to.flop.swap(from.flop);
    add_saturating(to.placed, from.placed);
    add_saturating(to.unplaced, from.unplaced);
    to.skipped.add(from.skipped);
    to.kernel_ns += from.kernel_ns;
    to.clock_error_ns = std::max(to.clock_error_ns, from.clock_error_ns);
    for (size_t phase = 0; phase < from.flop.size(); ++phase) {
      from.flop[phase].finish();
      to.flop[phase].add(from.flop[phase]);
    }
  }
  full_ = full_ || other.full_;
  overflow_ = overflow_ || other.overflow_ || other.counter_.overflow();
  left_out_ += other.left_out_;
}

Totals TotalsPass::take(DamageLog& damage) {
  Totals totals;
  const auto sum = [&](auto& row, const auto& next) { overflow_ = !row.add(next) || overflow_; };
  device_rows_.put_in_order(sum);
  timed_rows_.put_in_order(sum);
  totals.device_rows = std::move(device_rows_);
  totals.timed_rows = std::move(timed_rows_);
  if (full_) damage.add(Damage::kTableFull, std::max<uint64_t>(1, left_out_));
  if (overflow_ || counter_.overflow()) damage.add(Damage::kOverflow);
  totals.facts = std::move(facts_);
  totals.fact_launches_left_out = facts_left_out_;
  if (shared_.rows_by() == RowsBy::kThread)
    add_saturating(totals.fact_launches_left_out, left_out_);
  totals.rows.reserve(totals_.size());
  for (const auto& [key, counts] : totals_)
    totals.rows.push_back(
        {static_cast<uint32_t>(key.signature_chip >> 32), static_cast<uint32_t>(key.signature_chip),
         static_cast<uint32_t>(key.path_rule >> 32), static_cast<uint32_t>(key.path_rule), counts});
  std::ranges::sort(totals.rows, {},
                    [](const Row& r) { return std::tuple(r.signature, r.chip, r.path, r.rule); });
  totals.phases = shared_.phases();
  totals.devices.resize(shared_.tables().devices.size());
  for (auto& [index, time] : devices_) {
    for (auto& series : time.flop) series.finish();
    totals.devices[index] = std::move(time);
  }
  return totals;
}

}  // namespace flopinj::reduce
