#include "passes/rows/row_table.h"

#include <algorithm>

#include "tables/formulas.h"

namespace flopinj::reduce {
namespace {

constexpr uint64_t kPrime = 0x9E3779B97F4A7C15ULL;

// The mean over many launches, so that it is that of a kernel whose samples disagree, too.
uint64_t flop_per_launch(const SignatureFlop& flop) {
  constexpr uint64_t kMany = 1U << 20;
  if (flop.status != FlopStatus::kMeasured) return 0;
  const Flop many = flop.of(0, kMany, kMany);
  const u128 each = many.total / kMany;
  return many.overflow || each > UINT64_MAX ? 0 : static_cast<uint64_t>(each);
}

}  // namespace

SharedTables::SharedTables(const TraceTables& tables, PhaseMap& phases, RowsBy rows_by)
    : tables_(tables), phases_(phases), rows_by_(rows_by) {}

void SharedTables::keep_flop_over_time(const PhaseRules& rules, int fma) {
  for (const auto& rule : rules.rules()) {
    const auto known = std::find(phase_names_.begin(), phase_names_.end(), rule.phase);
    phase_of_rule_.push_back(static_cast<uint32_t>(known - phase_names_.begin()));
    if (known == phase_names_.end()) phase_names_.push_back(rule.phase);
  }
  const auto known =
      std::ranges::count_if(tables_.devices, [](const Device& d) { return d.id != 0; });
  most_flop_bins_ =
      FlopSeries::most_bins(std::max(static_cast<size_t>(known), tables_.traces.size()));
  Formulas formulas(fma);
  tables_.samples_by_chip.for_each([&](uint32_t signature, uint32_t chip, const SampleSet& set) {
    flop_[static_cast<uint64_t>(signature) << 32 | chip] = flop_per_launch(
        formulas.evaluate(&set, tables_.required[chip], tables_.names, tables_.code_of(signature)));
  });
}

uint32_t SharedTables::rule_of(uint32_t path, uint32_t thread_name, NumberTells tells) {
  const std::lock_guard lock(phases_lock_);
  return phases_.rule_of(path, thread_name, tells);
}

uint64_t SharedTables::flop_of(uint32_t signature, uint32_t chip) const {
  const auto found = flop_.find(static_cast<uint64_t>(signature) << 32 | chip);
  return found == flop_.end() ? 0 : found->second;
}

// Where the row is, or belongs.
uint32_t& RowTable::place(uint32_t lane, uint32_t path, uint32_t signature, bool call) {
  const uint64_t hash =
      ((uint64_t{lane} << 32 | path) * kPrime) ^ (uint64_t{signature} << 1 | (call ? 1 : 0));
  const size_t last = places_.size() - 1;
  for (size_t at = ((hash ^ hash >> 32) * kPrime >> 8) & last;; at = (at + 1) & last) {
    const Info& known = info_[places_[at]];
    if (places_[at] == kDiscard || (known.lane == lane && known.path_id == path &&
                                    known.signature_id == signature && known.call == call))
      return places_[at];
  }
}

void RowTable::more_places() {
  places_.assign(2 * places_.size(), kDiscard);
  for (uint32_t row = 1; row < info_.size(); ++row)
    place(info_[row].lane, info_[row].path_id, info_[row].signature_id, info_[row].call) = row;
}

void RowTable::clear() {
  hot_.assign(1, {});
  info_.assign(1, {});
  lost_.clear();
  places_.assign(kFirstPlaces, kDiscard);
  lanes_.assign(1, {});
  for (auto& lanes : lane_of_ids_) lanes.clear();
  lane_of_what_.clear();
  patterns_.clear();
  counted_.clear();
  recent_ = nullptr;
  duration_of_.clear();
  durations_ = 1;
  most_flop_ = 0;
  flop_fit_ = SIZE_MAX;
  full_ = false;
}

void RowTable::use_trace(uint32_t trace) {
  if (trace == trace_) return;
  clear();
  trace_ = trace;
}

uint32_t RowTable::lane(LaunchLane of) {
  constexpr size_t kMostIds = 1U << 16;  // hostile ones: looked up again each time
  const uint64_t ids = static_cast<uint64_t>(of.thread) << 32 | of.stream;
  auto& lane_of_ids = lane_of_ids_[static_cast<size_t>(of.tells) | (of.windowed ? 8U : 0U) |
                                   (of.in_step ? 16U : 0U)];
  if (const auto found = lane_of_ids.find(ids); found != lane_of_ids.end()) return found->second;
  const TraceState& trace = shared_.tables().traces[trace_];
  const uint32_t unknown_device = trace.unknown_device();
  const uint32_t device = of.stream == 0 ? unknown_device : trace.streams.get(of.stream);
  const uint32_t thread_name = of.thread == 0 ? NamePool::kEmpty : trace.threads.get(of.thread);
  Lane lane{.of = of};
  lane.lost = device == kNoIndex || thread_name == kNoIndex;
  lane.device = device != kNoIndex ? device : unknown_device;
  lane.thread_name = thread_name != kNoIndex ? thread_name : NamePool::kEmpty;
  lane.green = trace.green_streams.contains(of.stream);
  auto index = static_cast<uint32_t>(lanes_.size());
  if (shared_.rows_by() == RowsBy::kReport) {
    static_assert(NamePool::kMaxNames <= 1U << 27 && kNumberTells <= 8);
    const uint64_t what = static_cast<uint64_t>(lane.device) << 32 |
                          static_cast<uint64_t>(lane.thread_name) << 5 | (lane.green ? 16 : 0) |
                          static_cast<uint64_t>(of.tells) << 1 | (lane.lost ? 1 : 0);
    index = lane_of_what_.try_emplace(what, index).first->second;
    if (lane_of_ids.size() < kMostIds) lane_of_ids.emplace(ids, index);
  } else if (index < kMaxRows) {
    lane_of_ids.emplace(ids, index);
  } else {
    lanes_[kDiscard].device = unknown_device;
    return kDiscard;
  }
  if (index == lanes_.size()) lanes_.push_back(lane);
  return index;
}

// Ids count from 1 and are few; the deltas of a batch are between launches of one id.
uint32_t RowTable::duration_of(uint32_t signature) {
  const auto [entry, fresh] =
      duration_of_.try_emplace(signature, static_cast<uint32_t>(durations_));
  if (fresh) ++durations_;
  return entry->second;
}

uint32_t RowTable::add_row(uint32_t lane_index, uint32_t path_id, uint32_t signature_id,
                           bool call) {
  if (hot_.size() >= kMaxRows || lane_index == kDiscard) {
    full_ = true;
    return kDiscard;
  }
  const TraceTables& tables = shared_.tables();
  const TraceState& trace = tables.traces[trace_];
  const Lane& lane = lanes_[lane_index];
  const uint32_t path = path_id == 0 ? PathTable::kRoot : trace.paths.get(path_id);
  const uint32_t signature = trace.signatures.get(signature_id);
  Info info;
  info.lane = lane_index;
  info.signature_id = signature_id;
  info.path_id = path_id;
  info.device = lane.device;
  info.green = lane.green;
  info.call = call;
  const bool lost = lane.lost || path == kNoIndex || signature == kNoIndex;
  info.signature = signature != kNoIndex ? signature : SignatureTable::kUndefined;
  info.path = tables.path_of(path != kNoIndex ? path : PathTable::kLost, info.signature);
  Hot hot;
  hot.kernel = BusyInterval::packed_kernel(info.signature);
  hot.duration = duration_of(signature_id);
  if (shared_.rows_by() != RowsBy::kSummary) {
    info.rule = shared_.rule_of_kernel(shared_.rule_of(info.path, lane.thread_name, lane.of.tells),
                                       info.signature);
    hot.flop = shared_.flop_of(info.signature, tables.devices[info.device].chip);
    hot.phase = shared_.phase_of(info.rule);
  }
  if (hot.flop > most_flop_) {
    most_flop_ = hot.flop;
    flop_fit_ = static_cast<size_t>(UINT64_MAX / most_flop_);
  }
  const auto row = static_cast<uint32_t>(hot_.size());
  // The report of a summary says it.
  if (lost && shared_.rows_by() != RowsBy::kSummary) lost_.push_back(row);
  hot_.push_back(hot);
  info_.push_back(info);
  return row;
}

uint32_t RowTable::row(uint32_t lane, uint32_t path, uint32_t signature, bool call) {
  uint32_t& known = place(lane, path, signature, call);
  if (known != kDiscard) return known;
  const uint32_t row = add_row(lane, path, signature, call);
  known = row;
  if (2 * info_.size() > places_.size()) more_places();
  return row;
}

void RowTable::make_room(size_t blocks) {
  if (patterns_.size() + blocks <= kMaxBlocks) return;
  take_patterns();
  patterns_.clear();
}

void RowTable::use_block(uint64_t key) {
  recent_ = &patterns_[key];
  recent_key_ = key;
  if (!recent_->counted) counted_.push_back(recent_);
  recent_->counted = true;
}

void RowTable::look_up(uint32_t lane, uint64_t first, const RowStretch& stretch) {
  const PatternTable& patterns = shared_.tables().traces[trace_].patterns;
  RowBlock& block = *stretch.block;
  const size_t end = stretch.at + stretch.count;
  bool fresh = false;
  for (size_t i = 0; i < stretch.count; ++i) {
    uint32_t& known = block.row[stretch.at + i];
    if (known != kNoIndex) continue;
    const PatternTable::Row pattern = patterns.get(first + 1 + i);
    known = row(lane, pattern.path, pattern.signature, pattern.call);
    fresh = true;
  }
  if (fresh) describe(block, stretch.at, end);
  if (block.known_begin == block.known_end) block.known_begin = block.known_end = stretch.at;
  if (stretch.at > block.known_end || end < block.known_begin) return;
  block.known_begin = std::min(block.known_begin, stretch.at);
  block.known_end = std::max(block.known_end, end);
}

void RowTable::describe(RowBlock& block, size_t begin, size_t end) const {
  uint64_t flop = block.flop_to[begin];
  for (size_t i = begin; i < end; ++i) {
    const Hot& hot = hot_[block.row[i]];
    block.duration[i] = hot.duration;
    block.kernel[i] = hot.kernel;
    block.phase[i] = hot.phase;
    block.flop_to[i] = flop;
    flop += hot.flop;
  }
  const uint64_t more = flop - block.flop_to[end];
  for (size_t i = end; more != 0 && i <= RowBlock::kRows; ++i) block.flop_to[i] += more;
  for (size_t i = end; i-- > 0;) {
    const bool goes_on = i + 1 < RowBlock::kRows && block.phase[i] == block.phase[i + 1];
    const auto to = goes_on ? block.phase_to[i + 1] : static_cast<uint8_t>(i + 1);
    if (i < begin && block.phase_to[i] == to) return;
    block.phase_to[i] = to;
  }
}

void RowTable::take(RowBlock& block, size_t begin, size_t end) {
  uint32_t launches = 0;
  for (size_t i = begin; i < end; ++i) {
    launches += block.begun[i];
    if (launches == 0) continue;
    Hot& hot = hot_[block.row[i]];
    hot.timed += launches;
    overflow_ = !add_saturating(hot.time_ns, block.time_ns[i]) || overflow_;
    block.time_ns[i] = 0;
  }
  std::fill(block.begun.begin() + static_cast<std::ptrdiff_t>(begin),
            block.begun.begin() + static_cast<std::ptrdiff_t>(end) + 1, 0);
}

void RowTable::take_patterns() {
  for (RowBlock* const block : counted_) {
    take(*block, 0, RowBlock::kRows);
    block->counted = false;
  }
  counted_.clear();
  recent_ = nullptr;
}

}  // namespace flopinj::reduce
