// How near to peak: the whole run by several methods, and percent of peak by phase and range.
#include <algorithm>
#include <cstdio>

#include "sections/parts/cells.h"
#include "sections/parts/peak_cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"
#include "support/si_number.h"

namespace flopinj::reduce {

Cell share_cell(const Attained& attained, const Work& work) {
  if (!attained.share) return Cell::none(attained.above_peak ? "above peak" : "-");
  return {*attained.share, share_mark(work)};
}

bool executed(const Report& report, const std::string& precision) {
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (report.precisions[i] == precision) return report.flop.by_precision[i] > 0;
  return false;
}

Mark share_mark(const Work& work) {
  return flop_mark(work) | (work.time.windowed == 0 ? Mark::kNone : Mark::kMoreThan);
}

Cell number_cell(const std::optional<double>& number) {
  return number ? Cell(*number) : Cell::none();
}

void attained_fields(Fields& f, const Attained& attained, Mark bounds, const std::string& error) {
  f.bounded("utilization", Kind::kShare, number_cell(attained.share), bounds);
  const bool wrong = attained.above_peak;
  const auto why = attained.share ? std::nullopt : text_or_null(attained.missing);
  f("missing", wrong ? std::nullopt : why, "why there is no utilization");
  f("error", error.empty() && wrong ? why : text_or_null(error),
    "above peak: FLOP, time or peak is wrong");
}

void attained_object(Fields& f, const char* key, const Attained& attained, Mark bounds,
                     const char* about) {
  f.object(key, about, [&](Fields& object) {
    object.part("attained", [&](Fields& part) { attained_fields(part, attained, bounds); });
  });
}

Mark bound_mark(const UtilizationMethod& m) {
  return (m.at_least ? Mark::kAtLeast : Mark::kNone) | (m.at_most ? Mark::kAtMost : Mark::kNone);
}

void method_fields(Fields& f, const UtilizationMethod& m) {
  f("name", m.name, "executed, formula, theory, one, batch or epoch");
  f("basis", m.flop_basis, "what was counted");
  const Mark bounds = bound_mark(m);
  f.bounded("flop", Kind::kRatio, number_cell(m.flop), bounds);
  f("gpu_time_ns", m.gpu_time_ns, "sum of kernels");
  attained_object(f, "gpu_time", m.gpu_time, bounds, "over GPU time, the sum of kernels");
  attained_object(f, "busy", m.busy, bounds, "over the union of the kernels' times, as recorded");
  attained_object(f, "first_to_last_kernel", m.span, bounds,
                  "over the time from each device's first kernel to its last, as recorded: "
                  "without start-up");
  attained_object(f, "wall", m.wall, bounds, "over wall time: of executed HFU, of formula MFU");
}

Mark wall_mark(const UtilizationMethod& m, const Report& report) {
  Work counted = report.total;
  counted.unmeasured = 0;  // the method knows whether launches are missing from its FLOP
  return share_mark(counted) | bound_mark(m);
}

namespace {

// "~ 41.2 %", or why there is no figure.
std::string share_words(const Attained& a, Mark mark) {
  if (!a.share) return "-  " + a.missing;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%.3g %%", *a.share * 100);
  return marked_text(mark, text.data());
}

Cell method_flop_cell(const UtilizationMethod& m) {
  return m.flop ? Cell(*m.flop, bound_mark(m)) : Cell::none();
}

// Of a method's FLOP over a time.
Cell method_cell(const Attained& a, const UtilizationMethod& m, const Report& report) {
  Cell cell = share_cell(a, report.total);
  if (a.share) cell.marks = wall_mark(m, report);
  return cell;
}

// Over times as they were recorded: they hold launches that were slowed while counters were read.
Cell recorded_cell(const Attained& a, const UtilizationMethod& m, const Report& report) {
  Cell cell = method_cell(a, m, report);
  if (a.share && report.time.kernel_ns > report.total.time.ns)
    cell.marks = cell.marks | Mark::kMoreThan;
  return cell;
}

// The two figures that are quoted, strictly as the field defines them, and where wall time went.
void add_wall_shares(std::vector<Line>& lines, const Report& report) {
  const UtilizationReport& u = report.utilization;
  const auto say = [&](const char* name, const UtilizationMethod* m, const char* definition) {
    if (m == nullptr) return;
    Line line = Line(name).then(share_words(m->wall, wall_mark(*m, report)), Tone::kTitle);
    if (m->wall.share) line.then(definition, Tone::kDim);
    lines.push_back(std::move(line));
  };
  say("  HFU  ", u.hfu(), "   executed FLOP / (wall time x peak)");
  say("  MFU  ", u.mfu(), "   FLOP by formula / (wall time x peak)");
  const TimeReport& time = report.time;
  if (!u.wall_ns || !time.complete || !time.wall_ns || *time.wall_ns == 0 || !time.before_ns ||
      !time.after_ns)
    return;
  const auto share = [&](u128 ns) {
    return fixed(static_cast<double>(ns) / static_cast<double>(*time.wall_ns) * 100, 1) + " % ";
  };
  lines.push_back({"  wall time: " + share(*time.before_ns) + "before the first kernel, " +
                       share(*time.busy_ns) + "busy, " + share(*time.idle_ns) +
                       "idle between kernels, " + share(*time.after_ns) + "after the last kernel",
                   Tone::kDim});
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
    for (size_t i = 0; i < kIntegerFormats.size(); ++i)
      for (const auto& p : d.integer_peaks)
        if (p.precision == kIntegerFormats[i] && report.flop.integer[i] > 0) {
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

Section utilization_section(const Report& report) {
  const UtilizationReport& u = report.utilization;
  Section out{"Utilization", {}, std::nullopt, {}};
  add_devices(out.above, report);
  if (!u.any_peak) {
    if (out.above.empty()) return {};
    return out;
  }
  add_wall_shares(out.above, report);
  Table table{"utilization",
              {{"method", "method"},
               {"flop", "FLOP", Kind::kFlop, Worth::kDetail},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"utilization_wall", "of wall", Kind::kShare, Worth::kMain},
               {"utilization_first_to_last", "first to last kernel", Kind::kShare},
               {"utilization_busy", "of busy", Kind::kShare},
               {"utilization_gpu_time", "of GPU time", Kind::kShare, Worth::kMain}}};
  for (const auto& m : u.methods)
    table.rows.push_back({m.name + ": " + m.flop_basis, method_flop_cell(m),
                          m.gpu_time_ns > 0 ? Cell(m.gpu_time_ns) : Cell::none(),
                          method_cell(m.wall, m, report), recorded_cell(m.span, m, report),
                          recorded_cell(m.busy, m, report), method_cell(m.gpu_time, m, report)});
  out.table = std::move(table);
  for (const auto& m : u.methods)
    if (m.gpu_time.above_peak || m.busy.above_peak || m.span.above_peak || m.wall.above_peak)
      out.below.emplace_back("  " + m.name +
                                 " is above the devices' peak: its FLOP, its time or the peak is "
                                 "wrong (--peak gives another)",
                             Tone::kBad);
  return out;
}

// Ranges with the longest GPU time first.
Table peak_by_range_table(const Report& report) {
  Table table{"utilization_ranges",
              {{"range", "range"},
               {"flop", "FLOP", Kind::kFlop},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"flop_per_s", "rate", Kind::kRate},
               {"utilization", "of peak", Kind::kShare, Worth::kMain},
               {"roof_share", "of roof", Kind::kShare, Worth::kMain}}};
  table.long_list = true;
  std::vector<const RangeReport*> ranges;
  for (const auto& r : report.ranges) ranges.push_back(&r);
  std::stable_sort(ranges.begin(), ranges.end(), [](const auto* a, const auto* b) {
    return a->inclusive.time.ns > b->inclusive.time.ns;
  });
  for (const auto* r : ranges) {
    const Work& w = r->inclusive;
    table.rows.push_back({r->path, flop_cell(w), time_cell(w), rate_cell(w),
                          share_cell(utilization_of(w), w), share_cell(roofline_of(w), w)});
  }
  return table;
}

Section peak_by_range_section(const Report& report) {
  if (!report.utilization.any_peak || report.ranges.empty()) return {};
  return {"Percent of peak by range (inclusive)", {}, peak_by_range_table(report), {}};
}

void peak_fields(Fields& f, const Peak& peak) {
  f("per_second", peak.per_second);
  f("source", peak.source);
}

void peak_map(Fields& f, const char* key, const std::vector<PeakUsed>& peaks, const char* about) {
  f.map(
      key, peaks, about, [](const PeakUsed& p) { return p.precision; },
      [](Fields& peak, const PeakUsed& p) { peak_fields(peak, p.peak); });
}

void device_peaks_fields(Fields& f, const DevicePeaksReport& d) {
  f("name", d.name);
  f("launches", d.launches);
  f("row", text_or_null(d.row), "of the table of peaks; null where all are the user's");
  peak_map(f, "peaks", d.peaks, "FLOP/s by precision");
  peak_map(f, "integer_peaks", d.integer_peaks, "OP/s by integer format of the tensor cores");
  f("no_peak_of", d.no_peak_of,
    "precisions and integer formats that ran and have no known peak: shares that need one are "
    "null");
  f.object_if(d.memory.has_value(), "memory", "B/s",
              [&](Fields& memory) { peak_fields(memory, d.memory.value_or(Peak{})); });
  f("notes", d.notes);
  f("error", text_or_null(d.error), "why there are no peaks, and what to do");
}

void utilization_fields(Fields& f, const Report& report) {
  const UtilizationReport& u = report.utilization;
  f.object(
      "utilization",
      "share of peak: the least time that the peaks allow for the FLOP, a sum over precisions of "
      "FLOP / peak, divided by the time taken. A lower bound, KEY_at_least, where launches are "
      "unmeasured",
      [&](Fields& all) {
        all("convention",
            "peaks count a fused multiply-add as two operations; with fma 1 they are halved");
        all.list("devices", u.devices, "kinds of devices with launches", device_peaks_fields);
        all("wall_device_ns", u.wall_ns,
            "wall time of each trace x its devices, summed; null where simulated");
        all.list("methods", u.methods, "ways to work it out; the first is of what was executed",
                 method_fields);
        all.map(
            "phases", report.phases, "", [](const PhaseReport& p) { return p.name; },
            [](Fields& phase, const PhaseReport& p) {
              attained_fields(phase, utilization_of(p.work), missing_mark(p.work));
            });
        all.list("ranges", report.ranges, "with everything below them, in the order of ranges",
                 [](Fields& range, const RangeReport& r) {
                   range("path", r.path);
                   const Mark bounds = missing_mark(r.inclusive);
                   attained_fields(range, utilization_of(r.inclusive), bounds);
                   range.bounded("roof_share", Kind::kShare,
                                 number_cell(roofline_of(r.inclusive).share), bounds);
                 });
      });
}

}  // namespace

const Subject kUtilization = {utilization_section, utilization_fields};
const Subject kPeakByRange = {peak_by_range_section, nullptr};

}  // namespace flopinj::reduce
