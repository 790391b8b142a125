// Roofline: which of the two roofs, memory or arithmetic, is nearer for each kernel, how far below
// it the kernel is, and whether it binds.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/peak_cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"
#include "support/si_number.h"

namespace flopinj::reduce {

Cell rate_cell(const Work& work) {
  if (!work.flop_known() || work.time.unknown > 0 || work.time.ns == 0) return Cell::none();
  return {static_cast<double>(work.flop) * 1e9 / static_cast<double>(work.time.ns),
          share_mark(work)};
}

namespace {

bool bytes_known(const Work& work) { return work.launches > 0 && work.roof.no_bytes == 0; }

}  // namespace

Cell intensity_cell(const Work& work) {
  if (!work.flop_known() || !bytes_known(work) || work.roof.dram_bytes == 0) return Cell::none();
  // No time is in it: that some are upper bounds does not matter.
  return {static_cast<double>(work.flop) / static_cast<double>(work.roof.dram_bytes),
          flop_mark(work)};
}

namespace {

Cell bytes_cell(const Work& work) {
  if (!bytes_known(work)) return Cell::none();
  return work.roof.dram_bytes;
}

Cell bandwidth_cell(const Work& work) {
  if (!bytes_known(work) || work.time.unknown > 0 || work.time.ns == 0) return Cell::none();
  return static_cast<double>(work.roof.dram_bytes) * 1e9 / static_cast<double>(work.time.ns);
}

// A kernel this far below the nearer roof is bound by neither: by latency, or by a cache. Nsight
// Compute's rule of section "Speed Of Light Throughput" has the same limit ("below 60.0% of peak
// typically indicate latency issues").
constexpr double kBindingShare = 0.6;

// "memory", a precision, or nothing where a roof is not known, or not all that is under it.
std::string nearer_roof(const Work& work, const std::string& slowest) {
  const Roof& r = work.roof;
  const bool unknown =
      r.no_peak > 0 || r.no_integer_peak > 0 || r.no_bytes > 0 || r.no_bandwidth > 0;
  if (!work.flop_complete() || unknown || r.ns <= 0) return "";
  return r.memory_ns >= r.compute_ns + r.integer_ns ? "memory" : slowest;
}

}  // namespace

// Times that were taken while counters were read are too long to say "latency".
std::string bound_by(const Work& work, const std::string& slowest) {
  const std::string nearer = nearer_roof(work, slowest);
  const auto share = roofline_of(work).number();
  if (nearer.empty() || !share) return "";
  if (*share >= kBindingShare) return nearer;
  return work.time.windowed > 0 ? "" : "latency";
}

namespace {

std::vector<Cell> row(const std::string& name, const Work& w, const std::string& slowest) {
  const auto word = [](const std::string& text) {
    return text.empty() ? Cell::none() : Cell(text);
  };
  return {name,
          intensity_cell(w),
          rate_cell(w),
          bandwidth_cell(w),
          time_cell(w),
          word(bound_by(w, slowest)),
          word(nearer_roof(w, slowest)),
          share_cell(roofline_of(w)),
          share_cell(utilization_of(w))};
}

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
  const bool any_bytes = std::any_of(report.kernels.begin(), report.kernels.end(),
                                     [](const auto& k) { return k.work.roof.dram_bytes > 0; });
  if (!report.utilization.any_peak || !any_bytes) return {};
  Table table{"roofline",
              {{"kernel", "kernel"},
               {"flop_per_byte", "FLOP/B", Kind::kRatio},
               {"flop_per_s", "rate", Kind::kRate},
               {"byte_per_s", "memory", Kind::kBandwidth, Worth::kDetail},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"bound_by", "bound by", Kind::kText, Worth::kMain},
               {"nearer_roof", "nearer roof", Kind::kText, Worth::kDetail},
               {"roof_share", "of roof", Kind::kShare, Worth::kMain},
               {"utilization", "of peak", Kind::kShare}}};
  table.long_list = true;
  Section out{"Roofline", {}, std::nullopt, {}};
  add_ridges(out.above, report);
  size_t above = 0;
  for (const auto* k : kernels_by(report, KernelOrder::kTime)) {
    table.rows.push_back(row(k->name, k->work, k->slowest_precision));
    above += above_peak(roofline_of(k->work)) || above_peak(utilization_of(k->work)) ? 1 : 0;
  }
  out.table = std::move(table);
  if (above > 0)
    out.below.emplace_back("  " + std::to_string(above) +
                               " kernels are above a roof: their counts, their times or the peak "
                               "are wrong (--peak gives another)",
                           Tone::kBad);
  return out;
}

// What binds: the peaks of precisions that were used, and the memory's, in the report's convention.
std::vector<Table> roofline_tables(const Report& report) {
  Table table{"roofs",
              {{"device", "device"},
               {"roof", "roof"},
               {"flop_per_s", "rate", Kind::kRate},
               {"byte_per_s", "memory", Kind::kBandwidth},
               {"source", "source"}}};
  for (const auto& d : report.utilization.devices) {
    for (const auto& p : d.peaks)
      if (executed(report, p.precision))
        table.rows.push_back({d.name, p.precision, p.per_second, Cell::none(), p.peak.source});
    if (d.memory)
      table.rows.push_back(
          {d.name, "memory", Cell::none(), d.memory->per_second, d.memory->source});
  }
  return {std::move(table)};
}

void roof_fields(Fields& f, const Work& w, const std::string& slowest) {
  f.cell("dram_bytes", Kind::kBytes, bytes_cell(w),
         "read and written, as measured when kernels ran alone; null where a launch has none");
  const Mark bounds = missing_mark(w);
  f.bounded("flop_per_byte", Kind::kRatio, intensity_cell(w), bounds);
  f.bounded("flop_per_s", Kind::kRate, rate_cell(w), bounds);
  f.cell("byte_per_s", Kind::kBandwidth, bandwidth_cell(w));
  f("bound_by", text_or_null(bound_by(w, slowest)),
    "nearer_roof where roof_share is 0.6 or more, else latency; null where a roof or the time is "
    "not known, where launches are unmeasured, and instead of latency where the time is an upper "
    "bound "
    "(gpu_time_windowed_launches)");
  f("nearer_roof", text_or_null(nearer_roof(w, slowest)),
    "memory, or the precision that takes most of the time at peak");
  const Figure roof = roofline_of(w);
  f.bounded("roof_share", Kind::kShare, roof, roof.marks(),
            "the longer of the two least times / the time taken");
  attained_fields(f, utilization_of(w), above_peak(roof) ? roof.why() : "");
}

void roofline_fields(Fields& f, const Report& report) {
  f.object("roofline", "", [&](Fields& roofline) {
    roofline.object("total", "",
                    [&](Fields& total) { roof_fields(total, report.total, "compute"); });
    roofline.list("kernels", report.kernels, "in the order of kernels",
                  [](Fields& kernel, const KernelReport& k) {
                    kernel("name", k.name);
                    roof_fields(kernel, k.work, k.slowest_precision);
                  });
  });
}

}  // namespace

const Subject kRoofline = {roofline_section, roofline_fields, roofline_tables};

}  // namespace flopinj::reduce
