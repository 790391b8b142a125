// The peaks that an explained figure is measured against: row, source, clock, least time.
#include "sections/explained/explanation.h"
#include "sections/parts/cells.h"
#include "support/si_number.h"

namespace flopinj::reduce {
namespace {

// Work at one peak.
struct AtPeak {
  std::string of;         // "fp32", "memory"
  const char* unit = "";  // of the work: "FLOP", "B"
  Figure work;
  const Peak* peak = nullptr;  // null where it is not known
  Figure least_ns;
};

bool of_one_precision(const Explanation& e) { return e.kind == FigureKind::kPrecision; }

std::vector<AtPeak> at_peaks(const Report& report, const Explanation& e, const OnDevice& part) {
  std::vector<AtPeak> rows;
  for (const auto& [index, flop] : part.flop) {
    AtPeak row{report.precisions[index], "FLOP", {flop, missing_mark(part.work)}, nullptr, {}};
    for (const PeakUsed& used : part.peaks->peaks)
      if (used.precision == row.of) {
        row.peak = &used.peak;
        row.least_ns = row.work * (1e9 / used.per_second);
      }
    rows.push_back(std::move(row));
  }
  const Roof& roof = part.work.roof;
  if (of_one_precision(e)) return rows;
  if (roof.integer_ns > 0)
    rows.push_back(
        {"integer tensor work, no FLOP", "", {}, nullptr, Figure::exact(roof.integer_ns)});
  if (part.peaks->memory && roof.dram_bytes > 0)
    rows.push_back({"memory", "B", Figure::exact(roof.dram_bytes), &*part.peaks->memory,
                    Figure::exact(roof.memory_ns)});
  return rows;
}

std::string time_text(const Figure& ns) {
  return marked_text(ns.marks(), to_human_time(static_cast<u128>(*ns.number() + 0.5)));
}

std::string reached_text(const Figure& share) {
  if (!share.known()) return share.why();
  return marked_text(share.marks(), fixed(*share.number() * 100, 2) + " %");
}

void add_lines(std::vector<Line>& lines, const AtPeak& row) {
  if (!row.work.known())
    return lines.push_back({"  " + row.of + ": takes " + time_text(row.least_ns) + " at peak"});
  const std::string work =
      "  " + row.of + ": " +
      marked_text(row.work.marks(), to_human(std::get<u128>(row.work.value()), row.unit));
  if (row.peak == nullptr)
    return lines.push_back({work + ", no peak known (--peak " + row.of + "=VALUE)", Tone::kWarn});
  lines.push_back({work + " at " + format_si(row.peak->per_second) + row.unit + "/s take " +
                   time_text(row.least_ns)});
  lines.push_back({"      source: " + row.peak->source, Tone::kDim});
}

std::string clock_text(const DevicePeaksReport& d) {
  const auto mhz = [](double clock) { return fixed(clock, 0) + " MHz"; };
  if (d.clock_mhz <= 0) return "";
  std::string text = ", at " + mhz(d.clock_mhz);
  if (d.tensor_clock_mhz > 0 && d.tensor_clock_mhz != d.clock_mhz)
    text += ", tensor at " + mhz(d.tensor_clock_mhz);
  return text;
}

// By the longer of arithmetic and memory, launch by launch. Without a peak of all that ran it would
// be too short.
Figure least_time_of(const Explanation& e, const Work& work) {
  if (of_one_precision(e)) return {};
  if (work.roof.no_peak > 0 || work.roof.no_integer_peak > 0)
    return Figure::unknown("no peak known");
  return {work.roof.ns, missing_mark(work)};
}

Section section_of(const Report& report, const Explanation& e, const OnDevice& part) {
  const DevicePeaksReport& d = *part.peaks;
  Section s;
  s.title = "Against the peaks of " + d.name;
  if (!d.error.empty()) {
    s.above.emplace_back("  " + d.error, Tone::kWarn);
    return s;
  }
  s.above.emplace_back("  peaks " + (d.row.empty() ? "as given" : "of " + d.row + clock_text(d)) +
                       "; a fused multiply-add counts two there" +
                       (report.fma == 1 ? ", so FLOP with --fma 1 stand for twice as many" : ""));
  for (const auto& note : d.notes) s.above.emplace_back("  note: " + note, Tone::kDim);
  for (const AtPeak& row : at_peaks(report, e, part)) add_lines(s.above, row);
  if (of_one_precision(e)) return s;
  if (!part.work.time_known()) {
    s.above.emplace_back("  no launch has a time: no share of peak");
    return s;
  }
  s.above.emplace_back("  GPU time " + to_human_time(part.work.time.ns) + ": " +
                       reached_text(utilization_of(part.work)) + " of peak");
  if (const Figure least = least_time_of(e, part.work);
      least.known() && part.work.roof.no_bytes < part.work.launches)
    s.above.emplace_back("  least time by the longer of the two, launch by launch, " +
                         time_text(least) + ": " + reached_text(roofline_of(part.work)) +
                         " of roof");
  return s;
}

}  // namespace

std::vector<Section> explained_peaks(const Report& report, const Explanation& e) {
  std::vector<Section> sections;
  for (const auto& part : e.devices)
    if (part.work.flop_known()) sections.push_back(section_of(report, e, part));
  return sections;
}

Table explained_peaks_table(const Report& report, const Explanation& e) {
  Table table{"explained_peaks",
              {{"device", "device"},
               {"row", "row", Kind::kText, Worth::kUsual, "of the table of peaks"},
               {"of", "of", Kind::kText, Worth::kUsual,
                "a precision, memory or integer work; all: by the longer of the two roofs, launch "
                "by launch"},
               {"flop", "FLOP", Kind::kFlop},
               {"bytes", "bytes", Kind::kBytes},
               {"per_second", "peak", Kind::kRatio, Worth::kUsual,
                "operations, a fused multiply-add as two; or bytes"},
               {"least_ns", "least", Kind::kNanoseconds},
               {"utilization", "of peak", Kind::kShare},
               {"roof_share", "of roof", Kind::kShare},
               {"source", "source"}}};
  const Cell none = Cell::none();
  for (const OnDevice& part : e.devices) {
    const DevicePeaksReport& d = *part.peaks;
    const Cell row = d.row.empty() ? none : Cell(d.row);
    for (const AtPeak& at : at_peaks(report, e, part)) {
      const bool bytes = *at.unit == 'B';
      table.rows.push_back(
          {d.name, row, at.of, bytes ? none : Cell(at.work), bytes ? Cell(at.work) : none,
           at.peak != nullptr ? Cell(Figure::exact(at.peak->per_second)) : none, at.least_ns, none,
           none, at.peak != nullptr ? Cell(at.peak->source) : none});
    }
    const Figure one = Figure::unknown("launches of several precisions have one time");
    const auto share = [&](const Figure& of_all) { return of_one_precision(e) ? one : of_all; };
    table.rows.push_back({d.name, row, "all", flop_of(part.work), none, none,
                          least_time_of(e, part.work), share(utilization_of(part.work)),
                          share(roofline_of(part.work)), none});
  }
  return table;
}

}  // namespace flopinj::reduce
