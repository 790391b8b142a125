#include <algorithm>

#include "report/build_report.h"

namespace flopinj::reduce {

namespace {

// Of one trace, in a fixed order, each once: segments and merged classes may give several.
std::vector<FactRow> fact_rows(const PackedRows<FactRow>& packed) {
  std::vector<FactRow> rows;
  rows.reserve(packed.size());
  for (const FactRow& row : packed) rows.push_back(row);
  const auto order = [](const FactRow& r) {
    return std::tie(r.device, r.thread, r.stream, r.path, r.rule, r.signature);
  };
  std::ranges::sort(rows, {}, order);
  size_t size = 0;
  for (const FactRow& row : rows)
    if (size > 0 && order(rows[size - 1]) == order(row))
      rows[size - 1].counts.add(row.counts);
    else
      rows[size++] = row;
  rows.resize(size);
  return rows;
}

// Where launches of facts ran: as rows of the work table say it.
std::vector<PathReport> paths_of(const Report& report) {
  std::vector<PathReport> paths;
  for (const WorkGroup& of : group(report, {by::kRange, by::kRule})) {
    const auto layer = of.in_common(by::kLayer, report);
    paths.push_back({of.ids[0], of.ids[1], layer ? report.work.layers[*layer] : std::string()});
  }
  return paths;
}

}  // namespace

// Ids count from 1 and device 1 is ordinal 0; the device of id 0 is not known.
void build_facts(const ReportSources& from, const std::vector<uint32_t>& range_of,
                 const SignaturePlaces& signatures, WorkTable& work, Report& report) {
  const TraceTables& tables = from.tables;
  const Totals& totals = from.totals;
  report.fact_launches_left_out = totals.fact_launches_left_out;
  if (totals.facts.empty()) return;
  report.paths = paths_of(report);
  const auto place_of = [&](const FactRow& row) {
    const std::pair place(range_of[row.path], row.rule);
    const auto found = std::ranges::lower_bound(
        report.paths, place, {}, [](const PathReport& p) { return std::pair(p.range, p.rule); });
    const bool there = found != report.paths.end() && place == std::pair(found->range, found->rule);
    const bool known = place.first != kNoRange || row.path == PathTable::kRoot;
    return there && known ? static_cast<uint32_t>(found - report.paths.begin()) : kNoIndex;
  };
  std::unordered_map<uint32_t, uint32_t> thread_names;  // NamePool -> report.thread_names
  work.start_over();
  const auto add = [&](const FactRow& row) {
    const Device& device = tables.devices[row.device];
    const uint32_t path = place_of(row);
    const auto signature = signatures.find(signature_key(row.signature, device.chip));
    if (path == kNoIndex || signature == signatures.end()) {
      // In no row of the report either, whose table was full.
      add_saturating(report.fact_launches_left_out, row.counts.launches);
      return;
    }
    const Work did =
        work.next(Row{row.signature, device.chip, row.path, row.rule, row.counts}).work;
    FactReport fact;
    fact.trace = device.trace;
    if (device.id > 0) fact.device = device.id - 1;
    fact.chip = device.chip;
    fact.thread = row.thread;
    fact.stream = row.stream;
    const uint32_t name =
        row.thread == 0 ? NamePool::kEmpty : tables.traces[device.trace].threads.get(row.thread);
    const auto [known, fresh] =
        thread_names.try_emplace(name, static_cast<uint32_t>(report.thread_names.size()));
    if (fresh) report.thread_names.push_back(tables.names[name]);
    fact.thread_name = known->second;
    fact.path = path;
    fact.signature = signature->second;
    static_cast<Counts&>(fact) = row.counts;
    fact.unmeasured = did.unmeasured;
    fact.unscreened = did.unscreened;
    fact.time = did.time;
    fact.flop = did.flop;
    fact.varying = did.varying > 0;
    fact.at_most = did.flop_at_most();
    report.facts.push_back(fact);
  };
  for (const auto& [trace, rows] : totals.facts)
    for (const FactRow& row : fact_rows(rows)) add(row);
}

}  // namespace flopinj::reduce
