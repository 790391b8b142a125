#include "passes/lost_pass.h"

#include <call_times.h>

#include <algorithm>

#include "passes/rows/busy_interval.h"
#include "passes/totals_pass.h"

namespace flopinj::reduce {
namespace {

bool begins_before(const TimeSplit::Launch& a, const TimeSplit::Launch& b) {
  return a.begin_ns < b.begin_ns;
}

uint64_t held(u128 value) { return static_cast<uint64_t>(std::min<u128>(value, UINT64_MAX)); }

}  // namespace

void LostPass::OfDevice::add(const TimeSplit::Launch& launch) {
  if (newest_.empty()) newest_.reserve(2 * kept_);
  if (newest_.size() == 2 * kept_) fold(kept_);
  newest_.push_back(launch);
}

// Launches come batch by batch, each in order: neighbours are merged, two and two, until all are.
// In most traces the first round is the last.
void LostPass::OfDevice::sort_batches() {
  std::vector<std::ptrdiff_t> begins{0};
  const auto from = newest_.begin();
  for (auto at = from; at != newest_.end(); begins.push_back(at - from))
    at = std::is_sorted_until(at, newest_.end(), begins_before);
  while (begins.size() > 2) {
    std::vector<std::ptrdiff_t> fewer{0};
    for (size_t i = 2; i <= begins.size(); i += 2) {
      const auto end = from + begins[std::min(i, begins.size() - 1)];
      const auto middle = from + begins[i - 1];
      if (middle != end) {
        auto to = std::upper_bound(from + begins[i - 2], middle, *middle, begins_before);
        beside_.assign(to, middle);
        auto left = beside_.begin();
        for (auto right = middle; left != beside_.end(); ++to) {
          const bool next = right != end && begins_before(*right, *left);
          *to = next ? *right++ : *left++;
        }
      }
      fewer.push_back(end - from);
    }
    begins = std::move(fewer);
  }
}

void LostPass::OfDevice::fold(size_t count) {
  sort_batches();
  for (size_t i = 0; i < count; ++i) {
    const TimeSplit::Launch& launch = newest_[i];
    if (launch.begin_ns >= last_begin_ns_) {
      last_begin_ns_ = launch.begin_ns;
      split.launch(launch);
    } else if (!split.within(launch.begin_ns)) {
      continue;
    } else if (launch.slowed) {  // too late, as is the next
      split.slowed_unplaced(*launch.place, launch.length_ns);
    } else {
      split.unplaced(*launch.worth, *launch.place, 1, launch.length_ns);
    }
  }
  newest_.erase(newest_.begin(), newest_.begin() + static_cast<std::ptrdiff_t>(count));
}

void LostPass::OfDevice::end() {
  fold(newest_.size());
  newest_ = {};
  beside_ = {};
  split.finish();
}

LostPass::OfRow& LostPass::row_of(const RowTable& rows, uint32_t row) {
  if (row < rows_.size() && rows_[row] != nullptr) return *rows_[row];
  if (rows_.size() <= row) rows_.resize(rows.size());
  rows_[row] = std::make_unique<OfRow>();
  OfRow& of = *rows_[row];
  const RowTable::Info& info = rows.info(row);
  of.worth = worths_.of({info.signature, info.device, info.path, info.rule});
  const auto [entry, fresh] =
      devices_.try_emplace(info.device, most_open_intervals(tables_, rows.trace()));
  of.device = &entry->second;
  if (const auto found = steps_.windows.find(tables_.devices[info.device].trace);
      fresh && found != steps_.windows.end())
    of.device->split.only(found->second.from_ns, found->second.to_ns);
  of.place = &of.device->places[OfDevice::key(info.path, info.rule)];
  return of;
}

void LostPass::untimed(OfRow& row, uint64_t launches) {
  const auto mean_ns = row.worth.mean_ns ? row.worth.mean_ns : row.worth.slowed_mean_ns;
  if (mean_ns)
    row.device->split.unplaced(row.worth, *row.place, launches, held(u128{*mean_ns} * launches));
}

bool LostPass::counts(uint32_t trace, uint32_t step) const {
  if (steps_.windows.empty()) return true;
  const auto found = steps_.windows.find(trace);
  return found != steps_.windows.end() && found->second.first <= step && step <= found->second.last;
}

void LostPass::add_collective(const RowTable& rows, const LaunchPiece& piece, size_t i) {
  const RowTable::Info& row = rows.info(piece.row[i]);
  const uint64_t ns = piece.duration_ns[i];
  if (row.signature == SignatureTable::kUndefined) return;
  collectives_.add(
      row.device, static_cast<uint32_t>(report_.traces[rows.trace()].run),
      tables_.signatures[row.signature].name, piece.step, piece.start_ns[i],
      ns != LaunchPiece::kNoTime && BusyInterval::has_place(piece.start_ns[i], ns) ? ns : 0);
}

uint32_t LostPass::add_pause(OfDevice& device, uint32_t trace, const TimeSplit::Launch& launch,
                             const LaunchPiece::Pause& pause) const {
  const uint32_t path =
      pause.path == 0 ? PathTable::kRoot : tables_.traces[trace].paths.get(pause.path);
  const uint64_t before_ns = (launch.called_before - uint64_t{1}) * kCallUnitNs + pause.since_ns;
  if (path == kNoIndex || launch.begin_ns < before_ns) return 0;
  const uint64_t end_ns = launch.begin_ns - before_ns;
  return device.split.add_pause({path, end_ns - std::min(end_ns, pause.length_ns), end_ns});
}

void LostPass::launches(const RowTable& rows, const LaunchPiece& piece) {
  auto pause = piece.pauses.begin();
  for (size_t i = 0; i < piece.size; ++i) {
    while (pause != piece.pauses.end() && pause->at < i) ++pause;
    if (piece.row[i] == RowTable::kDiscard) continue;
    OfRow& row = row_of(rows, piece.row[i]);
    const bool counted = counts(rows.trace(), piece.step);
    if (counted) fp32_fs_ += row.worth.fp32_fs;
    if (counted && row.worth.of == KernelClass::kCommunication) add_collective(rows, piece, i);
    const uint64_t took = piece.duration_ns[i];
    if (took == LaunchPiece::kNoTime || !BusyInterval::has_place(piece.start_ns[i], took)) {
      if (counted) untimed(row, 1);
      continue;
    }
    const uint64_t kernel =
        piece.windowed && row.worth.mean_ns ? std::min(took, *row.worth.mean_ns) : took;
    TimeSplit::Launch launch{piece.start_ns[i], kernel, &row.worth, row.place, piece.step,
                             piece.windowed,    false,  0,          0};
    if (piece.calls && (launch.called_before = piece.called_before[i]) != 0) {
      row.device->split.clock_error(piece.clock_error_ns);
      if (pause != piece.pauses.end() && pause->at == i)
        launch.pause = add_pause(*row.device, rows.trace(), launch, *pause);
    }
    row.device->add(launch);
    if (took == kernel) continue;
    launch.called_before = launch.pause = 0;
    launch.begin_ns += kernel;
    launch.length_ns = took - kernel;
    launch.slowed = true;
    row.device->add(launch);
  }
}

void LostPass::tally(const RowTable& rows, uint32_t at, const TallyRow& tally) {
  if (at == RowTable::kDiscard || tally.launches == 0) return;
  OfRow& row = row_of(rows, at);
  add_saturating(fp32_fs_, u128{row.worth.fp32_fs} * tally.launches);
  const uint64_t timed =
      tally.has_possible_time() ? std::min(tally.timed, tally.launches) : uint64_t{0};
  untimed(row, tally.launches - timed);
  if (timed == 0) return;
  uint64_t took = tally.gpu_time_ns;
  if (tally.windowed && row.worth.mean_ns) {
    const uint64_t kernels = held(u128{*row.worth.mean_ns} * timed);
    if (took > kernels) row.device->split.slowed_unplaced(*row.place, took - kernels);
    took = std::min(took, kernels);
  }
  row.device->split.unplaced(row.worth, *row.place, timed, took);
}

void LostPass::end(const RowTable&) {
  for (auto& [number, device] : devices_) device.end();
  rows_.clear();
}

}  // namespace flopinj::reduce
