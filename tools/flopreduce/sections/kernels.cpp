// Kernels by name, most FLOP first.
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"
#include "support/text.h"

namespace flopinj::reduce {
namespace {

std::string note_of(const KernelReport& k) {
  std::string note;
  if (k.work.varying > k.work.rounded) note += " varying";
  if (k.work.rounded > 0) note += " rounded";
  if (k.work.left_out > 0) note += " moves-left-out";
  if (k.work.doubtful > 0) note += " may-hold-moves";
  if (k.merged_launches > 0) note += " merged";
  if (k.opaque_launches > 0) note += " no-parameters";
  return note.empty() ? note : note.substr(1);
}

template <typename Number>
Cell cell_of(const std::optional<Number>& ns) {
  return ns ? Cell(*ns) : Cell::none();
}

Cell median_cell(const LaunchTimes& times) {
  return times.min_ns == times.max_ns ? cell_of(times.median_ns)
                                      : marked(cell_of(times.median_ns), Mark::kEstimate);
}

Section kernels_section(const Report& report) {
  Table table{"kernels",
              {{"kernel", "kernel"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_share", "share", Kind::kShare, Worth::kMain},
               {"launches", "launches", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds},
               {"min_ns", "min", Kind::kNanoseconds, Worth::kDetail},
               {"median_ns", "median", Kind::kNanoseconds, Worth::kDetail},
               {"max_ns", "max", Kind::kNanoseconds, Worth::kDetail},
               {"note", "note", Kind::kText, Worth::kDetail}}};
  table.long_list = true;
  table.when_empty = "no launches";
  for (const auto& k : report.kernels)
    table.rows.push_back({k.name, flop_cell(k.work), flop_share_cell(k.work, report.total),
                          k.work.launches, time_cell(k.work), cell_of(k.times.min_ns),
                          median_cell(k.times), cell_of(k.times.max_ns), note_of(k)});
  Section out{"Top kernels", {}, std::move(table), {}};
  if (report.medians_left_out)
    out.below.push_back({"No medians: the kernels are too many to keep them.", Tone::kWarn});
  return out;
}

void kernels_fields(Fields& f, const Report& report) {
  f.list("kernels", report.kernels, "most FLOP first", [&](Fields& kernel, const KernelReport& k) {
    kernel("name", k.name);
    kernel("mangled", cut(k.mangled, 2048));
    kernel("signatures", k.signatures);
    work_part(kernel, k.work);
    kernel.ns("min_ns", k.times.min_ns,
              "the shortest GPU time of one launch, of those that were timed and not made while "
              "counters were read; null where it was not recorded");
    kernel.ns("median_ns", k.times.median_ns,
              "of the same launches, to within 0.8 %; null at level tally, unless all took the "
              "same");
    kernel.ns("max_ns", k.times.max_ns, "the longest");
    precision_fields(kernel, report, k.flop);
    kernel("merged_parameter_launches", k.merged_launches,
           "in signatures whose parameters were too many to tell apart");
    kernel("unknown_parameter_launches", k.opaque_launches,
           "in signatures whose parameters are not known");
  });
}

}  // namespace

const Subject kKernels = {kernels_section, kernels_fields};

}  // namespace flopinj::reduce
