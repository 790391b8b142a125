#include "passes/row_table.h"

#include <algorithm>

#include "model/formulas.h"

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

SharedTables::SharedTables(const Model& model, const PhaseRules& rules, PhaseMap& phases, int fma)
    : model_(model), phases_(phases) {
  for (const auto& rule : rules.rules()) {
    const auto known = std::find(phase_names_.begin(), phase_names_.end(), rule.phase);
    phase_of_rule_.push_back(static_cast<uint32_t>(known - phase_names_.begin()));
    if (known == phase_names_.end()) phase_names_.push_back(rule.phase);
  }
  Formulas formulas(fma);
  model_.samples_by_chip.for_each([&](uint32_t signature, uint32_t chip, const SampleSet& set) {
    flop_[static_cast<uint64_t>(signature) << 32 | chip] =
        flop_per_launch(formulas.evaluate(&set, model_.required[chip], model_.names));
  });
}

uint32_t SharedTables::rule_of(uint32_t path, uint32_t thread_name) {
  const std::lock_guard lock(phases_lock_);
  return phases_.rule_of(path, thread_name);
}

uint64_t SharedTables::flop_of(uint32_t signature, uint32_t chip) const {
  const auto found = flop_.find(static_cast<uint64_t>(signature) << 32 | chip);
  return found == flop_.end() ? 0 : found->second;
}

size_t RowTable::KeyHash::operator()(const Key& k) const {
  const uint64_t h = (k.lane_path ^ uint64_t{k.signature} << 20) * kPrime;
  return static_cast<size_t>(h ^ (h >> 32));
}

void RowTable::clear() {
  hot_.assign(1, {});
  info_.assign(1, {});
  lost_.clear();
  rows_.clear();
  cache_.fill({});
  lanes_.clear();
  lane_of_ids_.clear();
  lane_of_what_.clear();
  pattern_entries_ = 0;
  duration_of_.clear();
  durations_ = 1;
  most_flop_ = 0;
  full_ = false;
}

void RowTable::use_trace(uint32_t trace) {
  if (trace == trace_) return;
  clear();
  trace_ = trace;
}

uint32_t RowTable::lane(uint32_t thread, uint32_t stream) {
  constexpr size_t kMostIds = 1U << 16;  // hostile ones: looked up again each time
  const uint64_t ids = static_cast<uint64_t>(thread) << 32 | stream;
  if (const auto found = lane_of_ids_.find(ids); found != lane_of_ids_.end()) return found->second;
  const TraceState& trace = shared_.model().traces[trace_];
  const uint32_t unknown_device =
      trace.devices.get(1);  // id 0, which Model::join() gives every trace
  const uint32_t device = stream == 0 ? unknown_device : trace.streams.get(stream);
  const uint32_t thread_name = thread == 0 ? NamePool::kEmpty : trace.threads.get(thread);
  Lane lane;
  lane.lost = device == kNoIndex || thread_name == kNoIndex;
  lane.device = device != kNoIndex ? device : unknown_device;
  lane.thread_name = thread_name != kNoIndex ? thread_name : NamePool::kEmpty;
  const uint64_t what = static_cast<uint64_t>(lane.device) << 33 |
                        static_cast<uint64_t>(lane.thread_name) << 1 | (lane.lost ? 1 : 0);
  const auto [entry, fresh] = lane_of_what_.try_emplace(what, static_cast<uint32_t>(lanes_.size()));
  if (fresh) lanes_.push_back(std::move(lane));
  if (lane_of_ids_.size() < kMostIds) lane_of_ids_.emplace(ids, entry->second);
  return entry->second;
}

// Ids count from 1 and are few; the deltas of a batch are between launches of one id.
uint32_t RowTable::duration_of(uint32_t signature) {
  const auto [entry, fresh] =
      duration_of_.try_emplace(signature, static_cast<uint32_t>(durations_));
  if (fresh) ++durations_;
  return entry->second;
}

uint32_t RowTable::add_row(const Key& key, uint32_t path_id) {
  if (hot_.size() >= kMaxRows) {
    full_ = true;
    return kDiscard;
  }
  const Model& model = shared_.model();
  const TraceState& trace = model.traces[trace_];
  const Lane& lane = lanes_[static_cast<size_t>(key.lane_path >> 32)];
  const uint32_t path = path_id == 0 ? PathTable::kRoot : trace.paths.get(path_id);
  const uint32_t signature = trace.signatures.get(key.signature);
  Info info;
  info.device = lane.device;
  info.path = path != kNoIndex ? path : PathTable::kLost;
  info.rule = shared_.rule_of(info.path, lane.thread_name);
  info.lost = lane.lost || path == kNoIndex || signature == kNoIndex;
  info.signature = signature != kNoIndex ? signature : SignatureTable::kUndefined;
  info.rule = shared_.rule_of_kernel(info.rule, info.signature);
  Hot hot;
  hot.kernel = BusyInterval::packed_kernel(info.signature);
  hot.flop = shared_.flop_of(info.signature, model.devices[info.device].chip);
  most_flop_ = std::max(most_flop_, hot.flop);
  hot.duration = duration_of(key.signature);
  hot.phase = shared_.phase_of(info.rule);
  const auto row = static_cast<uint32_t>(hot_.size());
  if (info.lost) lost_.push_back(row);
  hot_.push_back(hot);
  info_.push_back(info);
  return row;
}

uint32_t RowTable::row(uint32_t lane, uint32_t path, uint32_t signature) {
  const Key key{static_cast<uint64_t>(lane) << 32 | path, signature};
  Cached& cached = cache_[(KeyHash{}(key)*kPrime) >> 52];
  if (cached.key == key) return cached.row;
  const auto found = rows_.find(key);
  uint32_t row = kDiscard;
  if (found != rows_.end()) {
    row = found->second;
  } else {
    row = add_row(key, path);
    if (row == kDiscard) return row;
    rows_.emplace(key, row);
  }
  cached = {key, row};
  return row;
}

void RowTable::pattern_rows(uint32_t lane, uint64_t first, size_t count, uint32_t* to) {
  const PatternTable& patterns = shared_.model().traces[trace_].patterns;
  if (lanes_[lane].pattern_rows.empty() && patterns.size() != 0) {
    if (pattern_entries_ + patterns.size() > kMaxPatternEntries) {
      for (auto& other : lanes_) std::vector<uint32_t>().swap(other.pattern_rows);
      pattern_entries_ = 0;
    }
    lanes_[lane].pattern_rows.assign(patterns.size(), kNoIndex);
    pattern_entries_ += patterns.size();
  }
  auto& known = lanes_[lane].pattern_rows;
  const size_t begin = static_cast<size_t>(std::min<uint64_t>(first - 1, known.size()));
  const size_t there = std::min(count, known.size() - begin);
  uint32_t all = 0;
  for (size_t i = 0; i < there; ++i) {
    to[i] = known[begin + i];
    all = std::max(all, to[i]);
  }
  if (all != kNoIndex && there == count) return;
  for (size_t i = 0; i < count; ++i) {
    if (i < there && to[i] != kNoIndex) continue;
    const PatternTable::Row pattern = patterns.get(first + i);
    to[i] = row(lane, pattern.path, pattern.signature);
    if (i < there) known[begin + i] = to[i];
  }
}

}  // namespace flopinj::reduce
