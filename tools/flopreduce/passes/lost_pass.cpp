#include "passes/lost_pass.h"

#include <algorithm>

#include "flop_trace_fields.h"
#include "passes/rows/busy_interval.h"
#include "passes/rows/copies.h"
#include "passes/totals_pass.h"
#include "reader/message.h"

namespace flopinj::reduce {
namespace {

uint64_t held(u128 value) { return static_cast<uint64_t>(std::min<u128>(value, UINT64_MAX)); }

bool several_ranks(const TraceTables& tables) {
  return tables.traces.size() > 1 ||
         std::ranges::count_if(tables.devices, [](const Device& of) { return of.id != 0; }) > 1;
}

}  // namespace

LostPass::LostPass(Reading reading)
    : of_(std::move(reading)),
      tables_(of_.tables),
      parts_(of_.parts),
      compares_(of_.collectives && several_ranks(tables_)) {}

DeviceSplit& LostPass::device_at(uint32_t number) {
  const uint32_t trace = tables_.devices[number].trace;
  const bool first = !parts_.in_parts(trace) || parts_.is_first(segment_);
  const auto [entry, fresh] = devices_[trace].try_emplace(
      number, most_open_intervals(tables_, trace), first, &parts_.spare(), parts_.room());
  if (!fresh) return entry->second;
  TimeSplit& split = entry->second.split;
  if (of_.totals != nullptr) split.clock_error(of_.totals->devices[number].clock_error_ns);
  if (of_.windows == nullptr) return entry->second;
  if (const auto found = of_.windows->find(trace); found != of_.windows->end())
    split.only(found->second.from_of(number), found->second.to_ns);
  return entry->second;
}

LostPass::OfRow& LostPass::row_of(const RowTable& rows, uint32_t row) {
  if (row < rows_.size() && rows_[row] != nullptr) return *rows_[row];
  if (rows_.size() <= row) rows_.resize(rows.size());
  rows_[row] = std::make_unique<OfRow>();
  OfRow& of = *rows_[row];
  const RowTable::Info& info = rows.info(row);
  const RowPlace place{info.signature, info.device, info.path, info.rule};
  const LaunchGuess guess = of_.guesses.of(place);
  of.communicates = guess.communicates;
  if (!is_kept(rows.trace())) return of;
  of.device = &device_at(info.device);
  if (of_.worths == nullptr) {
    of.in_split = of.device->add_row(place, guess);
  } else {
    of.worth = of_.worths->of(place);
    of.in_split = of.device->add_row(place, of.worth);
  }
  return of;
}

bool LostPass::counts(uint32_t trace, uint32_t step) const {
  if (of_.windows == nullptr || of_.windows->empty()) return true;
  const auto found = of_.windows->find(trace);
  return found != of_.windows->end() && found->second.first <= step && step <= found->second.last;
}

void LostPass::add_collective(const RowTable& rows, const LaunchPiece& piece, size_t i) {
  const RowTable::Info& row = rows.info(piece.row[i]);
  const uint64_t ns = piece.duration_ns[i];
  if (row.signature == SignatureTable::kUndefined || !compares_) return;
  collectives_.add(
      row.device, tables_.signatures[row.signature].name, piece.step, piece.start_ns[i],
      ns != LaunchPiece::kNoTime && BusyInterval::has_place(piece.start_ns[i], ns) ? ns : 0);
}

void LostPass::launches(const RowTable& rows, const LaunchPiece& piece) {
  size_t first = 0;
  while (first < piece.size && piece.row[first] == RowTable::kDiscard) ++first;
  if (first == piece.size) return;
  const DeviceSplit* const device = row_of(rows, piece.row[first]).device;
  if (device == nullptr || device->split.given_up()) {
    for (size_t i = first; i < piece.size; ++i)
      if (piece.row[i] != RowTable::kDiscard && row_of(rows, piece.row[i]).communicates)
        add_collective(rows, piece, i);
    return;
  }
  if (quick_.size() < rows.size()) quick_.resize(rows.size());
  const bool plain = !piece.windowed && counts(rows.trace(), piece.step);
  auto pause = piece.pauses.begin();
  for (size_t i = 0; i < piece.size; ++i) {
    while (pause != piece.pauses.end() && pause->at < i) ++pause;
    const size_t to_pause = pause != piece.pauses.end() ? pause->at : piece.size;
    if (plain) i = quick_launches(piece, i, std::min(to_pause, piece.size));
    if (i == piece.size) break;
    const LaunchPiece::Pause* const its = to_pause == i ? &*pause : nullptr;
    if (piece.row[i] != RowTable::kDiscard) one_launch(rows, piece, i, its);
  }
}

// As most launches are, from this one to `end`: returns the first that is not so. All launches of a
// piece are of one device.
size_t LostPass::quick_launches(const LaunchPiece& piece, size_t begin, size_t end) {
  if (begin == end || quick_[piece.row[begin]].device == nullptr) return begin;
  size_t i = begin;
  DeviceSplit& device = *quick_[piece.row[begin]].device;
  if (of_.totals == nullptr && piece.calls) device.split.clock_error(piece.clock_error_ns);
  device.add(end - begin, [&](LaunchInTime* to) {
    for (; i < end; ++i) {
      Quick& quick = quick_[piece.row[i]];
      const uint64_t took = piece.duration_ns[i];
      if (quick.device == nullptr || took == LaunchPiece::kNoTime ||
          !BusyInterval::has_place(piece.start_ns[i], took))
        break;
      ++quick.launches;
      const uint32_t called_before = piece.calls ? piece.called_before[i] : 0;
      *to++ = {piece.start_ns[i], took, quick.in_split, piece.step, called_before, 0, 0};
    }
    return i - begin;
  });
  return i;
}

// Any launch.
void LostPass::one_launch(const RowTable& rows, const LaunchPiece& piece, size_t i,
                          const LaunchPiece::Pause* pause) {
  OfRow& row = row_of(rows, piece.row[i]);
  Quick& quick = quick_[piece.row[i]];
  TimeSplit& split = row.device->split;
  const bool counted = counts(rows.trace(), piece.step);
  quick.launches += counted ? 1 : 0;
  if (of_.totals == nullptr && piece.calls) split.clock_error(piece.clock_error_ns);
  if (row.communicates && counted) {
    row.device->collectives = true;
    add_collective(rows, piece, i);
  }
  if (!row.communicates || (counted && !compares_)) {
    quick.device = row.device;
    quick.in_split = row.in_split;
  }
  const uint64_t took = piece.duration_ns[i];
  if (took == LaunchPiece::kNoTime || !BusyInterval::has_place(piece.start_ns[i], took)) {
    if (counted) split.unplaced({.launches = 1, .row = row.in_split});
    return;
  }
  LaunchInTime launch{piece.start_ns[i], took, row.in_split, piece.step, 0, 0, piece.windowed};
  if (piece.calls && (launch.called_before = piece.called_before[i]) != 0 && pause != nullptr)
    if (const uint32_t path = tables_.traces[rows.trace()].path(pause->path); path != kNoIndex)
      launch.set_pause(split.add_pause(launch, path, pause->since_ns, pause->length_ns));
  row.device->add(launch);
}

void LostPass::tally(const RowTable& rows, uint32_t at, const TallyRow& tally) {
  if (!is_kept(rows.trace())) return;
  const bool summary = tables_.traces[rows.trace()].has_summary;
  if (summary) summary_rows_.push_back({});
  if (at == RowTable::kDiscard || tally.launches == 0) return;
  OfRow& row = row_of(rows, at);
  row.device->counted(row.in_split, tally.launches);
  const auto& times = tables_.devices[rows.info(at).device].times;
  if (summary && times && times->at_once())
    summary_rows_.back() = {&row, tally};
  else
    add_tally(row, tally);
}

void LostPass::add_tally(OfRow& row, const TallyRow& tally) {
  const bool timed = tally.has_possible_time();
  row.device->split.unplaced({.launches = tally.launches,
                              .timed = timed ? std::min(tally.timed, tally.launches) : 0,
                              .ns = timed ? tally.gpu_time_ns : 0,
                              .row = row.in_split,
                              .windowed = tally.windowed});
}

void LostPass::packet(uint32_t trace, const Packet& packet) {
  if (!is_kept(trace)) return;
  for_each_copy(tables_, trace, packet, [&](uint32_t device, uint64_t begin_ns, uint64_t ns) {
    device_at(device).add(LaunchInTime::copy(begin_ns, ns));
  });
  if (packet.body_field != static_cast<uint32_t>(trace_fields::TracePacketField::at_once)) return;
  trace::AtOnce message;
  if (!parse_message(message, packet.body)) return;
  if (auto sums = AtOnce::of(message)) at_once_.push_back(std::move(*sums));
}

// Launches that ran alike in all of their stretches, or that are all faster than the roofs allow or
// none of which is, have the same lines together as one by one.
bool LostPass::is_even(KernelClass of, std::span<const AtOnce::Part> parts) const {
  bool alike = true;
  double work = 0, most = 0, least = 0;  // of the time, at the shortest; at the longest
  for (const AtOnce::Part& part : parts) {
    const SummaryRow& row = summary_rows_[part.row];
    ShortestLongest times = row.tally.times;
    if (!times.any()) return false;
    if (row.kernel_ns < row.placed_ns) times = {*row.of->worth.mean_ns, *row.of->worth.mean_ns};
    alike = alike && times.shortest_ns == times.longest_ns;
    const LaunchWorth& worth = row.of->worth;
    const bool roofs = worth.of == of;
    const double shortest = static_cast<double>(std::max<uint64_t>(1, times.shortest_ns)) * kFsInNs;
    const double longest = static_cast<double>(std::max<uint64_t>(1, times.longest_ns)) * kFsInNs;
    work += static_cast<double>(worth.work_fs) / shortest;
    most += static_cast<double>(roofs ? worth.blocks_fs : worth.work_fs) / shortest;
    least += static_cast<double>(roofs ? worth.memory_fs : worth.work_fs) / longest;
  }
  return alike || most <= 1 || (least >= 1 && work <= 1);
}

// Kernels of a row that were slowed by measuring, as those are that ran alone, take what they would
// have taken, and the profiler the rest.
void LostPass::add_set(std::span<const AtOnce::Part> parts, uint64_t ns, TimeSplit& split) {
  std::vector<TimeSplit::Part> running;
  KernelClass of = KernelClass::kCommunication;
  bool slowed = false;
  for (const AtOnce::Part& part : parts) {
    SummaryRow& row = summary_rows_[part.row];
    running.push_back({row.of->in_split, row.done, row.done + part.launches});
    row.done += part.launches;
    of = std::min(of, row.of->worth.of);
    slowed = slowed || row.kernel_ns < row.placed_ns;
  }
  auto& uneven = uneven_.classes[static_cast<size_t>(of)];
  uneven = uneven || !is_even(of, parts);
  uint64_t slowed_ns = 0;
  if (slowed && parts.size() == 1) {
    const SummaryRow& row = summary_rows_[parts.front().row];
    slowed_ns = ns - static_cast<uint64_t>(u128{ns} * row.kernel_ns / row.placed_ns);
  }
  uneven_.spread = uneven_.spread || (slowed && parts.size() > 1);
  split.summed_stretch(u128{ns - slowed_ns} * kFsInNs, running);
  if (slowed_ns == 0) return;
  const TimeSplit::Part slow{.row = running.front().row, .slowed = true};
  split.summed_stretch(u128{slowed_ns} * kFsInNs, {&slow, 1});
}

// What does not fit its rows is damaged: the device is not summed then, and has no ledger.
void LostPass::add_at_once(uint32_t trace, const AtOnce& sums) {
  if (sums.all_rows != summary_rows_.size()) return;
  const OfRow* const first = summary_rows_[sums.parts.front().row].of;
  if (first == nullptr || first->device->summed) return;
  DeviceSplit* const device = first->device;
  const auto is_its_row = [&](uint32_t row) {
    return summary_rows_[row].of != nullptr && summary_rows_[row].of->device == device;
  };
  for (const AtOnce::Set& set : sums.sets)
    for (size_t i = set.begin; i < set.end; ++i) {
      if (!is_its_row(sums.parts[i].row)) return;
      SummaryRow& row = summary_rows_[sums.parts[i].row];
      add_saturating(row.placed_ns, set.ns);
      add_saturating(row.parts, sums.parts[i].launches);
    }
  for (const AtOnce::Gap& gap : sums.gaps)
    if (!is_its_row(gap.row)) return;
  for (SummaryRow& row : summary_rows_) {
    if (row.of == nullptr || row.of->device != device) continue;
    const uint64_t placed = row.parts / AtOnce::kLaunch;
    if (row.parts % AtOnce::kLaunch != 0 || !row.tally.has_possible_time() ||
        placed > std::min(row.tally.timed, row.tally.launches) ||
        row.placed_ns > row.tally.gpu_time_ns)
      return;
    row.kernel_ns = row.placed_ns;
    if (!row.tally.windowed || !row.of->worth.mean_ns) continue;
    const uint64_t mean_ns = *row.of->worth.mean_ns;
    row.kernel_ns = std::min(row.placed_ns, held(u128{mean_ns} * placed));
    const ShortestLongest& times = row.tally.times;
    uneven_.slowed = uneven_.slowed || !times.any() ||
                     (times.shortest_ns < mean_ns && mean_ns < times.longest_ns);
  }
  TimeSplit& split = device->split;
  device->summed = true;
  split.summed(sums.ns(), sums.edge_copies_ns);
  if (sums.lost_copies) split.lose_copies();
  for (const AtOnce::Set& set : sums.sets)
    add_set(std::span(sums.parts).subspan(set.begin, set.end - set.begin), set.ns, split);
  for (const AtOnce::Gap& gap : sums.gaps)
    split.summed_gap(summary_rows_[gap.row].of->in_split, gap.line, gap.ns, gap.beside_ns);
  for (const auto& [id, ns] : sums.host_ns)
    if (const uint32_t path = tables_.traces[trace].path(id); path != kNoIndex)
      split.add_host_ns(path, ns);
  uneven_.spread = uneven_.spread || sums.spread_ns > 0;
  for (SummaryRow& row : summary_rows_) {
    if (row.of == nullptr || row.of->device != device) continue;
    const uint64_t placed = row.parts / AtOnce::kLaunch;
    TallyRow rest = row.tally;
    rest.launches -= placed;
    rest.timed -= placed;
    rest.gpu_time_ns -= std::min(rest.gpu_time_ns, row.placed_ns);
    if (rest.timed == 0) rest.gpu_time_ns = 0;
    add_tally(*row.of, rest);
  }
}

void LostPass::forget_rows() {
  for (size_t row = 0; row < quick_.size(); ++row)
    if (quick_[row].launches > 0)
      rows_[row]->device->counted(rows_[row]->in_split, quick_[row].launches);
  rows_.clear();
  quick_.clear();
}

void LostPass::begin_segment(size_t number) {
  segment_ = number;
  has_room_ = parts_.room() == nullptr || !parts_.is_whole(number) || !parts_.room()->is_full();
}

void LostPass::end_segment(const RowTable& rows) {
  if (!parts_.in_parts(rows.trace()) || !is_kept(rows.trace())) return;
  forget_rows();
  parts_.add(segment_, std::move(devices_[rows.trace()]));
  devices_.erase(rows.trace());
}

void LostPass::end(const RowTable& rows) {
  for (const AtOnce& sums : at_once_) add_at_once(rows.trace(), sums);
  forget_rows();
  summary_rows_.clear();
  at_once_.clear();
  const auto found = devices_.find(rows.trace());
  if (found == devices_.end()) return;
  for (auto& [number, device] : found->second) device.end();
  if (of_.revised.contains(rows.trace())) return;
  of_.ended(rows.trace(), std::move(found->second));
  devices_.erase(found);
}

void LostPass::add(LostPass& o) {
  collectives_.add(std::move(o.collectives_));
  for (size_t of = 0; of < uneven_.classes.size(); ++of)
    uneven_.classes[of] = uneven_.classes[of] || o.uneven_.classes[of];
  uneven_.slowed = uneven_.slowed || o.uneven_.slowed;
  uneven_.spread = uneven_.spread || o.uneven_.spread;
}

void LostPass::end() {
  for (auto& [trace, devices] : devices_) of_.ended(trace, std::move(devices));
  devices_.clear();
}

}  // namespace flopinj::reduce
