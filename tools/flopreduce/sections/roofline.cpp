// Roofline: which of the two roofs, memory or arithmetic, is nearer for each kernel, how far below
// it the kernel is, and whether it binds.
#include <algorithm>

#include "sections/launch_tables.h"
#include "sections/parts/cells.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"
#include "support/si_number.h"

namespace flopinj::reduce {
namespace {

// Where memory and arithmetic take equally long: below it memory is the nearer roof.
void add_ridges(std::vector<Line>& lines, const Report& report) {
  for (const auto& d : report.utilization.devices) {
    if (!d.memory || d.peaks.empty()) continue;
    std::string text = "  " + d.name + ": ridge point";
    bool first = true;
    for (const auto& p : d.peaks) {
      if (!executed(report, p.precision)) continue;
      text += (first ? " " : ", ") + format_si(p.peak.per_second / d.memory->per_second) +
              " FLOP/B (" + p.precision + ")";
      first = false;
    }
    if (!first) lines.emplace_back(std::move(text), Tone::kDim);
  }
}

Section roofline_section(const Report& report) {
  if (!report.utilization.any_peak || report.total.roof.dram_bytes == 0) return {};
  Section out = launch_table("roofline").section(report);
  add_ridges(out.above, report);
  const auto above = std::ranges::count_if(group(report, {by::kKernel}), [](const auto& k) {
    return above_peak(roofline_of(k.work)) || above_peak(utilization_of(k.work));
  });
  if (above > 0)
    out.below.emplace_back("  " + std::to_string(above) +
                               " kernels are above a roof: their counts, their times or the peak "
                               "are wrong (--peak gives another)",
                           Tone::kBad);
  return out;
}

// A peak of a device, in the report's convention.
struct RoofRow {
  std::string device, roof;
  Figure flop = {}, operations = {}, bytes = {};  // a second; one of them is known, or none
  std::string source = {};
  bool executed = true;
};

std::vector<RoofRow> all_roofs(const Report& report) {
  std::vector<RoofRow> rows;
  for (const auto& d : report.utilization.devices) {
    const auto add = [&](const PeakUsed& p) -> RoofRow& {
      return rows.emplace_back(RoofRow{.device = d.name,
                                       .roof = p.precision,
                                       .source = p.peak.source,
                                       .executed = executed(report, p.precision)});
    };
    for (const auto& p : d.peaks) add(p).flop = Figure::exact(p.per_second);
    for (const auto& p : d.integer_peaks) add(p).operations = Figure::exact(p.peak.per_second);
    for (const auto& format : d.no_peak_of) rows.push_back({d.name, format});
    if (d.memory)
      rows.push_back({.device = d.name,
                      .roof = "memory",
                      .bytes = Figure::exact(d.memory->per_second),
                      .source = d.memory->source});
  }
  return rows;
}

// Peaks of precisions that were used, and the memory's.
std::vector<RoofRow> roofs_used(const Report& report) {
  std::vector<RoofRow> rows = all_roofs(report);
  std::erase_if(
      rows, [](const RoofRow& r) { return !r.executed || !(r.flop.known() || r.bytes.known()); });
  return rows;
}

Columns<RoofRow> roof_columns() {
  Columns<RoofRow> c;
  c.text("device", "device", &RoofRow::device);
  c.text("roof", "roof", &RoofRow::roof, "a precision, an integer format, or memory");
  c.figure("flop_per_s", "rate", Kind::kRate, &RoofRow::flop, "a multiply-add counts as in --fma");
  c.figure("byte_per_s", "memory", Kind::kBandwidth, &RoofRow::bytes);
  c.text("source", "source", &RoofRow::source);
  return c;
}
Columns<RoofRow> peak_columns() {
  Columns<RoofRow> c = roof_columns();
  c.figure("op_per_s", "integer rate", Kind::kOperations, &RoofRow::operations,
           "of an integer format of the tensor cores; a multiply-add is two");
  c.flag("executed", "executed", &RoofRow::executed,
         "launches used it; without a peak then, they have no share of peak");
  return c;
}

const TableSource kRoofs("roofs", "peaks that were used, with their sources", roof_columns,
                         roofs_used);
const TableSource kPeaks("peaks", "all peaks of the devices, and formats that ran without one",
                         peak_columns, all_roofs);

}  // namespace

const Subject kRoofline = {{&launch_table("roofline"), &kRoofs, &kPeaks}, roofline_section};

}  // namespace flopinj::reduce
