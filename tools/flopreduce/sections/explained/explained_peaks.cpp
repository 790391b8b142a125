// The peaks that an explained figure is measured against: row, source, clock, least time.
#include <cstdio>

#include "sections/explained/explanation.h"
#include "sections/parts/cells.h"
#include "sections/parts/peak_cells.h"
#include "sections/parts/records.h"
#include "support/si_number.h"

namespace flopinj::reduce {
namespace {

const PeakUsed* peak_of(const DevicePeaksReport& device, const std::string& precision) {
  for (const auto& used : device.peaks)
    if (used.precision == precision) return &used;
  return nullptr;
}

double least_ns(u128 work, const PeakUsed& peak) {
  return static_cast<double>(work) * 1e9 / peak.per_second;
}

std::string clock_text(const DevicePeaksReport& d) {
  const auto mhz = [](double clock) { return fixed(clock, 0) + " MHz"; };
  if (d.clock_mhz <= 0) return "";
  std::string text = ", at " + mhz(d.clock_mhz);
  if (d.tensor_clock_mhz > 0 && d.tensor_clock_mhz != d.clock_mhz)
    text += ", tensor at " + mhz(d.tensor_clock_mhz);
  return text;
}

std::string reached_text(const Figure& share) {
  if (!share.known()) return share.why();
  return marked_text(share.marks(), fixed(*share.number() * 100, 2) + " %");
}

std::string source_text(const Peak& peak) { return "      source: " + peak.source; }

bool of_one_precision(const Explanation& e) { return e.kind == FigureKind::kPrecision; }

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
  const Mark missing = missing_mark(part.work);
  for (const auto& [index, flop] : part.flop) {
    const std::string& precision = report.precisions[index];
    const PeakUsed* peak = peak_of(d, precision);
    const std::string work = "  " + precision + ": " + marked_text(missing, to_human(flop, "FLOP"));
    if (peak == nullptr) {
      s.above.emplace_back(work + ", no peak known (--peak " + precision + "=VALUE)", Tone::kWarn);
      continue;
    }
    const double ns = least_ns(flop, *peak);
    s.above.emplace_back(work + " at " + format_si(peak->peak.per_second) + "FLOP/s take " +
                         marked_text(missing, to_human_time(static_cast<u128>(ns + 0.5))));
    s.above.emplace_back(source_text(peak->peak), Tone::kDim);
  }
  if (of_one_precision(e)) return s;
  const Roof& roof = part.work.roof;
  if (roof.integer_ns > 0)
    s.above.emplace_back("  integer tensor work, no FLOP: takes " +
                         to_human_time(static_cast<u128>(roof.integer_ns + 0.5)) + " at peak");
  if (d.memory && roof.dram_bytes > 0) {
    s.above.emplace_back("  memory: " + to_human(roof.dram_bytes, "B") + " at " +
                         format_si(d.memory->per_second) + "B/s take " +
                         to_human_time(static_cast<u128>(roof.memory_ns + 0.5)));
    s.above.emplace_back(source_text(*d.memory), Tone::kDim);
  }
  if (!part.work.time_known()) {
    s.above.emplace_back("  no launch has a time: no share of peak");
    return s;
  }
  s.above.emplace_back("  GPU time " + to_human_time(part.work.time.ns) + ": " +
                       reached_text(utilization_of(part.work)) + " of peak");
  if (roof.no_bytes < part.work.launches && roof.no_peak == 0 && roof.no_integer_peak == 0)
    s.above.emplace_back("  least time by the longer of the two, launch by launch, " +
                         marked_text(missing, to_human_time(static_cast<u128>(roof.ns + 0.5))) +
                         ": " + reached_text(roofline_of(part.work)) + " of roof");
  return s;
}

// The least time of so much work.
struct LeastTime {
  std::string name;
  Cell work;
  std::optional<Peak> peak;
  double ns = 0;
};

void least_time_fields(Fields& f, const LeastTime& t) {
  f.sum("work", t.work, "FLOP in the report's convention, or bytes");
  f("per_second", t.peak ? std::optional(t.peak->per_second) : std::nullopt,
    "operations, a fused multiply-add as two; or bytes. null where no peak is known");
  f("source", t.peak ? std::optional(t.peak->source) : std::nullopt);
  f.bounded("least_ns", Kind::kRatio, t.peak ? Cell(t.ns) : Cell::none(), t.work.marks);
}

std::vector<LeastTime> by_precision(const Report& report, const OnDevice& part) {
  std::vector<LeastTime> times;
  for (const auto& [index, flop] : part.flop) {
    LeastTime& time = times.emplace_back(
        LeastTime{report.precisions[index], Cell(flop, missing_mark(part.work)), {}, 0});
    const PeakUsed* peak = peak_of(*part.peaks, time.name);
    if (peak == nullptr) continue;
    time.peak = peak->peak;
    time.ns = least_ns(flop, *peak);
  }
  return times;
}

void part_fields(Fields& f, const Report& report, const Explanation& e, const OnDevice& part) {
  const DevicePeaksReport& d = *part.peaks;
  const auto mhz = [](double clock) { return clock > 0 ? std::optional(clock) : std::nullopt; };
  f("device", d.name, "as CUDA names it");
  f("row", text_or_null(d.row), "of the table of peaks; null where all peaks are the user's");
  f("clock_mhz", mhz(d.clock_mhz), "behind the row's peaks; null where its source has none");
  f("tensor_clock_mhz", mhz(d.tensor_clock_mhz));
  f("notes", d.notes);
  work_object(f, "work", part.work);
  f.map(
      "precision", by_precision(report, part), "", [](const LeastTime& t) { return t.name; },
      least_time_fields);
  const Roof& roof = part.work.roof;
  const bool memory = d.memory && roof.dram_bytes > 0;
  f.object_if(memory, "memory",
              "of DRAM bytes; null where nobody read them, or no bandwidth is known",
              [&](Fields& least) {
                least_time_fields(least, {"", Cell(roof.dram_bytes), d.memory, roof.memory_ns});
              });
  f("integer_least_ns", roof.integer_ns, "integer tensor work, which is no FLOP, at its peaks");
  // Without a peak of all that ran it would be too short.
  const bool whole = roof.no_peak == 0 && roof.no_integer_peak == 0 && !of_one_precision(e);
  const Mark bounds = missing_mark(part.work);
  f.bounded("least_ns", Kind::kRatio, whole ? Cell(roof.ns) : Cell::none(), bounds,
            "the longer of arithmetic, integer work in it, and memory, launch by launch; null "
            "where something ran without a known peak");
  attained_fields(f,
                  of_one_precision(e)
                      ? Figure::unknown("launches of several precisions have one time")
                      : utilization_of(part.work),
                  d.error);
  const Figure roof_share = of_one_precision(e) ? Figure() : roofline_of(part.work);
  f.bounded("roof_share", Kind::kShare, roof_share, roof_share.marks());
}

}  // namespace

std::vector<Section> explained_peaks(const Report& report, const Explanation& e) {
  std::vector<Section> sections;
  for (const auto& part : e.devices)
    if (part.work.flop_known()) sections.push_back(section_of(report, e, part));
  return sections;
}

void explained_peaks_fields(Fields& f, const Report& report, const Explanation& e) {
  f.list("peaks", e.devices, "for each kind of device: what the figure is measured against",
         [&](Fields& peaks, const OnDevice& part) { part_fields(peaks, report, e, part); });
}

}  // namespace flopinj::reduce
