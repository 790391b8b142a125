// How near to peak: the whole run by several methods, and percent of peak by phase and range.
#include <algorithm>

#include "sections/launch_tables.h"
#include "sections/parts/cells.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"
#include "support/si_number.h"

namespace flopinj::reduce {

namespace {

// The two figures that are quoted, strictly as the field defines them.
void add_wall_shares(std::vector<Line>& lines, const Report& report) {
  const UtilizationReport& u = report.utilization;
  const auto say = [&](const char* name, const UtilizationMethod* m, const char* definition) {
    if (m == nullptr) return;
    Line line = Line(name).then(share_or_why(m->wall), Tone::kTitle);
    if (m->wall.known()) line.then(definition, Tone::kDim);
    lines.push_back(std::move(line));
  };
  say("  HFU  ", u.hfu(), "   executed FLOP / (wall time x peak)");
  say("  MFU  ", u.mfu(), "   FLOP by formula / (wall time x peak)");
}

void add_devices(std::vector<Line>& lines, const Report& report) {
  for (const auto& d : report.utilization.devices) {
    if (!d.error.empty()) {
      lines.emplace_back("  " + d.error, Tone::kWarn);
      continue;
    }
    std::string text = "  " + d.name + ": peaks " + (d.row.empty() ? "as given" : "of " + d.row);
    std::string source;
    const auto add_source = [&](const Peak& peak) {
      if (source.find(peak.source) == std::string::npos)
        source += (source.empty() ? "  source: " : "; ") + peak.source;
    };
    for (const auto& p : d.peaks) {
      if (!executed(report, p.precision)) continue;
      text += ", " + p.precision + " " + format_si(p.peak.per_second) + "FLOP/s";
      add_source(p.peak);
    }
    for (const auto& p : d.integer_peaks) {
      if (!executed(report, p.precision)) continue;
      text += ", " + p.precision + " " + format_si(p.peak.per_second) + "OP/s";
      add_source(p.peak);
    }
    if (d.memory) {
      text += ", memory " + format_si(d.memory->per_second) + "B/s";
      add_source(*d.memory);
    }
    lines.emplace_back(std::move(text));
    lines.emplace_back(std::move(source), Tone::kDim);
    for (const auto& precision : d.no_peak_of)
      lines.emplace_back("  no peak known of " + precision +
                             ": what ran in it has no share of peak (--peak " + precision +
                             "=VALUE)",
                         Tone::kWarn);
    for (const auto& note : d.notes) lines.emplace_back("  note: " + note, Tone::kDim);
  }
}

using Method = UtilizationMethod;

Columns<Method> method_columns() {
  Columns<Method> c;
  c.text("method", "method", [](const Method& m) { return m.name + ": " + m.flop_basis; });
  c.figure("flop", "FLOP", Kind::kFlop, &Method::flop, "FLOP that the method counts")
      .detail()
      .dash();
  c.figure("gpu_time_ns", "GPU time", Kind::kNanoseconds, &Method::gpu_time_ns,
           "sum of the durations of the kernels that the method speaks of");
  const auto share = [&c](const char* key, const char* heading, Figure Method::*of,
                          const char* meaning) -> Columns<Method>& {
    return c.figure(key, heading, Kind::kShare, of, meaning).range().dash(kAbovePeak);
  };
  share("utilization_wall", "of wall", &Method::wall,
        "FLOP / (wall time x peak): of executed HFU, of formula MFU")
      .main();
  share("utilization_first_to_last", "first to last kernel", &Method::span,
        "FLOP / (time from each device's first kernel to its last x peak): start-up is left out");
  share("utilization_busy", "of busy", &Method::busy,
        "FLOP / (time in which some kernel ran x peak)");
  share("utilization_gpu_time", "of GPU time", &Method::gpu_time,
        "FLOP / (sum of kernel durations x peak)")
      .main();
  c.for_programs();
  c.text("name", "name", &Method::name, "executed, formula, theory, one, batch or epoch");
  c.text("basis", "basis", &Method::flop_basis, "what was counted");
  c.figure("least_ns", "least", Kind::kNanoseconds, &Method::least_ns,
           "least time that the peaks allow for the FLOP: the sum over precisions of FLOP / peak")
      .range();
  c.figure(
      "wall_device_ns", "wall", Kind::kNanoseconds,
      [](const Method&, const Report& report) { return report.utilization.wall_ns; },
      "wall time of each recording x the devices that it launched on, summed");
  return c;
}

Columns<DevicePeaksReport> device_columns() {
  Columns<DevicePeaksReport> c;
  using D = DevicePeaksReport;
  c.text("device", "device", &D::name, "kind of device, as CUDA names it");
  c.count(said::kLaunches, &D::launches);
  c.text("row", "row", or_null(&D::row),
         "of the table of peaks (flopinj peaks); null where all are given by --peak");
  c.text("notes", "notes", [](const D& d) { return joined(d.notes, "; "); });
  c.text("error", "error", or_null(&D::error), "why there are no peaks, and what to do");
  return c;
}

const TableSource kMethodTable(
    "utilization", "HFU, MFU and other shares of peak", method_columns,
    [](const Report& report) -> const auto& { return report.utilization.methods; });
const TableSource kPeakDevices(
    "peak_devices", "kinds of devices with launches, and where their peaks are from",
    device_columns, [](const Report& report) -> const auto& { return report.utilization.devices; });

Section utilization_section(const Report& report) {
  const UtilizationReport& u = report.utilization;
  Section out{"Utilization", {}, std::nullopt, {}};
  add_devices(out.above, report);
  if (!u.any_peak) {
    if (out.above.empty()) return {};
    return out;
  }
  add_wall_shares(out.above, report);
  out.table = kMethodTable.for_people(report);
  for (const auto& m : u.methods)
    if (m.above_peak())
      out.below.emplace_back("  " + m.name +
                                 " is above the devices' peak: its FLOP, its time or the peak is "
                                 "wrong (--peak gives another)",
                             Tone::kBad);
  return out;
}

Section peak_by_range_section(const Report& report) {
  return report.utilization.any_peak ? launch_table("utilization_ranges").section(report)
                                     : Section{};
}

}  // namespace

const Subject kUtilization = {{&kMethodTable, &kPeakDevices}, utilization_section};
const Subject kPeakByRange = {{&launch_table("utilization_ranges")}, peak_by_range_section};

}  // namespace flopinj::reduce
