#include "passes/fact_pass.h"

#include <algorithm>
#include <tuple>

#include "flop_trace_fields.h"
#include "passes/rows/single_steps.h"
#include "passes/rows/tally_counts.h"

namespace flopinj::reduce {
namespace {

Counts counts_of(const LaunchRow& launch) {
  Counts counts;
  counts.launches = 1;
  counts.graph = launch.graph ? 1 : 0;
  counts.windowed = launch.windowed ? 1 : 0;
  (launch.windowed ? counts.windowed_timed : counts.timed) = launch.timed ? 1 : 0;
  (launch.windowed ? counts.windowed_time_ns : counts.time_ns) = launch.duration_ns;
  return counts;
}

}  // namespace

FactPass::FactPass(const TraceTables& tables, PhaseMap& phases, const NumberSource* numbers)
    : tables_(tables), phases_(phases), split_(numbers), classes_(tables) {}

void FactPass::add(const LaunchKey& key, const Counts& counts) {
  if (Counts* const row = rows_.at(key))
    row->add(counts);
  else
    add_saturating(left_out_, counts.launches);
}

void FactPass::batch(uint32_t trace, const LaunchBatchReader& batch, SingleSteps& steps) {
  DamageLog told;
  const TraceState& state = tables_.traces[trace];
  const uint32_t device = state.device_of(batch.stream());
  batch.read(state.patterns, list_);
  batch.read_times(list_, told);
  NumberCuts numbers(split_.of(trace, batch.thread(), list_));
  for (size_t i = 0; i < list_.size; ++i) {
    const LaunchRow launch = list_.row(i);
    add({{batch.thread(), batch.stream(), launch.range_path, launch.signature}, numbers.next()},
        counts_of(launch));
    steps.launch(device, launch);
  }
}

void FactPass::packet(uint32_t trace, const Packet& packet, SingleSteps& steps) {
  using Field = trace_fields::TracePacketField;
  DamageLog told;
  if (packet.damaged) return;
  if (packet.body_field == static_cast<uint32_t>(Field::launch_batch)) {
    LaunchBatchReader reader;
    if (reader.open(packet.body, told)) batch(trace, reader, steps);
  } else if (packet.body_field == static_cast<uint32_t>(Field::tally_batch)) {
    TallyBatchReader reader;
    if (!reader.open(packet.body, told)) return;
    TallyRow row;
    while (reader.next(row))
      add({{row.thread, row.stream, row.range_path, row.signature}, row.number_tells},
          counts_of(row));
  }
}

// Ids that no packet defined get the places that they have in the totals.
FactRow FactPass::row_of(uint32_t trace, const LaunchKey& key) {
  const TraceState& state = tables_.traces[trace];
  const auto known = [](uint32_t index, uint32_t otherwise) {
    return index != kNoIndex ? index : otherwise;
  };
  FactRow row;
  row.device = state.device_of(key.stream());
  row.stream = state.streams.get(key.stream()) != kNoIndex ? key.stream() : 0;
  const uint32_t thread_name = key.thread() == 0 ? kNoIndex : state.threads.get(key.thread());
  row.thread = thread_name != kNoIndex ? key.thread() : 0;
  const uint32_t signature =
      known(state.signatures.get(key.signature()), SignatureTable::kUndefined);
  row.path = tables_.path_of(key.range_path() == 0
                                 ? PathTable::kRoot
                                 : known(state.paths.get(key.range_path()), PathTable::kLost),
                             signature);
  row.rule = phases_.rule_of_kernel(
      phases_.rule_of(row.path, known(thread_name, NamePool::kEmpty), key.number_tells()),
      signature);
  row.signature = classes_.home(signature, tables_.devices[row.device].chip);
  return row;
}

void FactPass::take_rows(uint32_t trace, Totals& totals) {
  const auto order = [](const FactRow& r) {
    return std::tie(r.device, r.thread, r.stream, r.path, r.rule, r.signature);
  };
  std::vector<FactRow> rows;
  const auto counted = rows_.take();
  rows.reserve(counted.size());
  for (const auto& [key, counts] : counted) {
    rows.push_back(row_of(trace, key));
    rows.back().counts = counts;
  }
  std::sort(rows.begin(), rows.end(),
            [&](const FactRow& a, const FactRow& b) { return order(a) < order(b); });
  const size_t first = totals.facts.size();
  for (const FactRow& row : rows) {
    if (row.counts.launches == 0 && row.counts.timed == 0 && row.counts.windowed_timed == 0)
      continue;
    if (totals.facts.size() > first && order(totals.facts.back()) == order(row))
      totals.facts.back().counts.add(row.counts);
    else if (totals.facts.size() < kMaxRows)
      totals.facts.push_back(row);
    else
      add_saturating(left_out_, row.counts.launches);
  }
}

void FactPass::run(const Segments& segments, const Revisions& revisions,
                   std::vector<TraceFile>& files, Totals& totals) {
  struct Parts {
    std::vector<const Segment*> segments;
    std::vector<Revisions::Place> revised;
  };
  std::vector<Parts> parts(tables_.traces.size());
  for (const Segment& segment : segments.all()) parts[segment.trace].segments.push_back(&segment);
  for (const Revisions::Place& place : revisions.newest())
    parts[place.trace].revised.push_back(place);
  totals.step_times.resize(tables_.traces.size());
  for (uint32_t trace = 0; trace < parts.size(); ++trace) {
    SingleSteps steps(tables_.traces[trace].steps, SIZE_MAX);
    for (const Segment* segment : parts[trace].segments)
      for_each_new_packet(*segment, *files[segment->file].input, [&](const Packet& p) {
        packet(trace, p, steps);
        return true;
      });
    for (const Revisions::Place& place : parts[trace].revised) {
      DamageLog told;
      PacketReader reader(*files[place.file].input, told, Batches::kCheck, place.begin, place.end);
      Packet p;
      if (reader.next(p) && Revisions::open(place, p)) packet(trace, p, steps);
    }
    take_rows(trace, totals);
    totals.step_times[trace] = steps.take_times();
  }
  totals.fact_launches_left_out = left_out_;
}

}  // namespace flopinj::reduce
