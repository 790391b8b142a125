#include "passes/step_pass.h"

#include <algorithm>
#include <utility>

#include "flop_trace_fields.h"
#include "passes/merged_classes.h"
#include "passes/packets/every_packet.h"
#include "reader/launch_batch.h"
#include "reader/tally_batch.h"
#include "report/roofs.h"
#include "report/work_table.h"

namespace flopinj::reduce {

StepPass::StepPass(const TraceTables& tables, const Totals& totals, Formulas& formulas,
                   const std::vector<PeakOverride>& peaks)
    : tables_(tables),
      chips_(std::max<size_t>(1, tables.chips.size())),
      each_(tables.signatures.size() * chips_) {
  const WorkTable work(tables, totals, formulas);
  const MergedClasses classes(tables);
  Roofs roofs(tables, totals, formulas, peaks);
  for (const DeviceRow& row : totals.device_rows) {
    const uint32_t chip = tables.devices[row.device].chip;
    value(row.signature, chip, work.result(row.signature, chip), roofs);
  }
  // Those that count with a class have no row any more.
  for (uint32_t s = 0; classes.any() && s < tables.signatures.size(); ++s)
    for (uint32_t chip = 0; chip < chips_; ++chip)
      if (const uint32_t home = classes.home(s, chip); home != s)
        each_[size_t{s} * chips_ + chip] = each_[size_t{home} * chips_ + chip];
}

void StepPass::value(uint32_t signature, uint32_t chip, const SignatureResult& result,
                     Roofs& roofs) {
  Each& each = each_[size_t{signature} * chips_ + chip];
  if (std::exchange(each.known, true)) return;
  bool overflow = false;
  if (result.counts.timed > 0) {
    each.time_known = true;
    each.mean_ns = mul_div_round(result.counts.time_ns, 1, result.counts.timed, overflow);
  }
  if (result.flop.status != FlopStatus::kMeasured) return;
  each.flop_known = true;
  each.estimated = result.estimated();
  const uint64_t all = std::max<uint64_t>(1, result.counts.launches);
  // The mean, where launches differ.
  const Flop flop = each.estimated ? result.flop.of(0, all, all) : result.flop.of(0, 1, 1);
  const uint64_t of = each.estimated ? all : 1;
  each.flop = mul_div_round(flop.total, 1, of, overflow);
  const Roof roof = roofs.of(Row{signature, chip, 0, 0, {}}, flop, of);
  each.peak_known = roof.no_peak == 0;
  each.least_fs = static_cast<u128>(roof.compute_ns * 1e6 / static_cast<double>(of));
}

uint32_t StepPass::chip_of(uint32_t trace, uint32_t stream) const {
  return tables_.devices[tables_.traces[trace].device_of(stream)].chip;
}

const StepPass::Each& StepPass::each(uint32_t trace, uint32_t signature, uint32_t chip) const {
  const uint32_t index = tables_.traces[trace].signatures.get(signature);
  return each_[size_t{index != kNoIndex ? index : SignatureTable::kUndefined} * chips_ + chip];
}

const StepLaunch& StepPass::launch_of(uint32_t trace, uint32_t device, uint32_t signature) const {
  const TraceState& state = tables_.traces[trace];
  const uint32_t index = device == 0 ? kNoIndex : state.devices.get(device + 1);
  const uint32_t known = index != kNoIndex ? index : state.unknown_device();
  return each(trace, signature, tables_.devices[known].chip);
}

void StepPass::batch(uint32_t trace, const LaunchBatchReader& batch, LaunchList& list,
                     Result& result) const {
  const TraceState& state = tables_.traces[trace];
  const uint32_t chip = chip_of(trace, batch.stream());
  DamageLog told;
  uint32_t number = 0;
  StepWork* step = nullptr;  // null for one that did not end
  batch.read(state.patterns, list);
  if (!list.any_step) return;
  batch.read_times(list, told);
  for (size_t i = 0; i < list.size; ++i) {
    const LaunchRow row = list.row(i);
    if (row.step != number) {
      number = row.step;
      step = state.steps.steps().contains(number) ? &result[trace][number] : nullptr;
    }
    if (step == nullptr) continue;
    const Each& one = each(trace, row.signature, chip);
    step->add_launches(1, one);
    if (row.timed && !row.windowed)
      step->gpu_ns += row.duration_ns;
    else
      step->add_untimed(1, one);
  }
}

void StepPass::tally(uint32_t trace, TallyBatchReader& batch, Result& result) const {
  if (!tables_.traces[trace].steps.steps().empty()) return;  // times that came late
  TallyRow row;
  while (batch.next(row)) {
    if (!row.in_step || row.launches == 0) continue;
    const Each& one = each(trace, row.signature, chip_of(trace, row.stream));
    StepWork& all = result[trace][0];
    all.add_launches(row.launches, one);
    const uint64_t timed = row.windowed ? 0 : std::min(row.timed, row.launches);
    if (timed > 0) add_saturating(all.gpu_ns, row.gpu_time_ns);
    all.add_untimed(row.launches - timed, one);
  }
}

void StepPass::packet(uint32_t trace, const Packet& packet, LaunchList& list,
                      Result& result) const {
  using Field = trace_fields::TracePacketField;
  if (!tables_.traces[trace].steps.any()) return;
  DamageLog told;
  if (packet.body_field == static_cast<uint32_t>(Field::launch_batch)) {
    LaunchBatchReader reader;
    if (reader.open(packet.body, told)) batch(trace, reader, list, result);
  } else if (packet.body_field == static_cast<uint32_t>(Field::tally_batch)) {
    TallyBatchReader reader;
    if (reader.open(packet.body, told)) tally(trace, reader, result);
  }
}

StepPass::Result StepPass::run(const Segments& segments, const Revisions& revisions,
                               std::vector<TraceFile>& files, unsigned jobs) const {
  struct OfThread {
    Result sums;
    LaunchList list;
  };
  return add_up_packets(
             segments, revisions, files, jobs,
             [&] {
               return OfThread{Result(tables_.traces.size()), {}};
             },
             [&](uint32_t trace, const Packet& p, OfThread& mine) {
               packet(trace, p, mine.list, mine.sums);
             },
             [](OfThread& all, const OfThread& mine) {
               for (size_t trace = 0; trace < mine.sums.size(); ++trace)
                 for (const auto& [number, work] : mine.sums[trace])
                   all.sums[trace][number].add(work);
             })
      .sums;
}

}  // namespace flopinj::reduce
