// The peaks that an explained figure is measured against: row, source, clock, least time.
#include <cstdio>

#include "sections/explained/explanation.h"
#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
#include "sections/parts/peak_cells.h"
#include "support/si_number.h"

namespace flopinj::reduce {
namespace {

const Peak* peak_of(const DevicePeaksReport& device, const std::string& precision) {
  for (const auto& used : device.peaks)
    if (used.precision == precision) return &used.peak;
  return nullptr;
}

// In ns. Peaks count a fused multiply-add as two operations; so does FLOP, but with --fma 1.
double least_ns(u128 work, const Peak& peak, int fma) {
  return static_cast<double>(work) * (fma == 1 ? 2e9 : 1e9) / peak.per_second;
}

std::string clock_text(const DevicePeaksReport& d) {
  const auto mhz = [](double clock) { return fixed(clock, 0) + " MHz"; };
  if (d.clock_mhz <= 0) return "";
  std::string text = ", at " + mhz(d.clock_mhz);
  if (d.tensor_clock_mhz > 0 && d.tensor_clock_mhz != d.clock_mhz)
    text += ", tensor at " + mhz(d.tensor_clock_mhz);
  return text;
}

std::string share_text(const Attained& attained, const Work& work) {
  if (!attained.share) return attained.missing;
  const std::string marks = marks_text(share_mark(work));
  return marks + (marks.empty() ? "" : " ") + fixed(*attained.share * 100, 2) + " %";
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
  for (const auto& [index, flop] : part.flop) {
    const std::string& precision = report.precisions[index];
    const Peak* peak = peak_of(d, precision);
    const std::string work = "  " + precision + ": " + to_human(flop, "FLOP");
    if (peak == nullptr) {
      s.above.emplace_back(work + ", no peak known (--peak " + precision + "=VALUE)", Tone::kWarn);
      continue;
    }
    const double ns = least_ns(flop, *peak, report.fma);
    s.above.emplace_back(work + " at " + format_si(peak->per_second) + "FLOP/s take " +
                         to_human_time(static_cast<u128>(ns + 0.5)));
    s.above.emplace_back(source_text(*peak), Tone::kDim);
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
                       share_text(utilization_of(part.work), part.work) + " of peak");
  if (roof.no_bytes < part.work.launches && roof.no_peak == 0 && roof.no_integer_peak == 0)
    s.above.emplace_back("  least time by the longer of the two, launch by launch, " +
                         to_human_time(static_cast<u128>(roof.ns + 0.5)) + ": " +
                         share_text(roofline_of(part.work), part.work) + " of roof");
  return s;
}

Json attained_peak_json(u128 work, const Peak& peak, double ns) {
  return {{"work", decimal(work)},
          {"per_second", peak.per_second},
          {"source", peak.source},
          {"least_ns", ns}};
}

Json part_json(const Report& report, const Explanation& e, const OnDevice& part) {
  const DevicePeaksReport& d = *part.peaks;
  const auto mhz = [](double clock) { return clock > 0 ? Json(clock) : Json(nullptr); };
  Json j;
  j["device"] = d.name;
  j["row"] = d.row.empty() ? Json(nullptr) : Json(d.row);
  j["clock_mhz"] = mhz(d.clock_mhz);
  j["tensor_clock_mhz"] = mhz(d.tensor_clock_mhz);
  j["notes"] = d.notes;
  j["error"] = d.error.empty() ? Json(nullptr) : Json(d.error);
  j["work"] = work_json(part.work);
  j["precision"] = Json::object();
  for (const auto& [index, flop] : part.flop) {
    const std::string& precision = report.precisions[index];
    const Peak* peak = peak_of(d, precision);
    j["precision"][precision] =
        peak != nullptr ? attained_peak_json(flop, *peak, least_ns(flop, *peak, report.fma))
                        : Json(nullptr);
  }
  const Roof& roof = part.work.roof;
  j["memory"] = d.memory && roof.dram_bytes > 0
                    ? attained_peak_json(roof.dram_bytes, *d.memory, roof.memory_ns)
                    : Json(nullptr);
  j["integer_least_ns"] = roof.integer_ns;
  // Without a peak of all that ran it would be too short.
  const bool whole = roof.no_peak == 0 && roof.no_integer_peak == 0 && !of_one_precision(e);
  j["least_ns"] = whole ? Json(roof.ns) : Json(nullptr);
  j.update(attained_json(
      of_one_precision(e) ? Attained{std::nullopt, "launches of several precisions have one time"}
                          : utilization_of(part.work)));
  j["roof_share"] =
      optional_json(of_one_precision(e) ? std::nullopt : roofline_of(part.work).share);
  return j;
}

}  // namespace

std::vector<Section> explained_peaks(const Report& report, const Explanation& e) {
  std::vector<Section> sections;
  for (const auto& part : e.devices)
    if (part.work.flop_known()) sections.push_back(section_of(report, e, part));
  return sections;
}

Json explained_peaks_json(const Report& report, const Explanation& e) {
  return list_json(e.devices, [&](const OnDevice& part) { return part_json(report, e, part); });
}

}  // namespace flopinj::reduce
