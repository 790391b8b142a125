// Kernels by name, most FLOP first.
#include "sections/launch_tables.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

std::string note_of(const KernelReport& k) {
  std::string note;
  if (k.work.varying > k.work.rounded) note += " varying";
  if (k.work.rounded > 0) note += " rounded";
  if (k.work.left_out > 0) note += " moves-left-out";
  if (k.work.bounded > 0)
    note += " bounded";
  else if (k.work.doubtful > 0)
    note += " may-hold-moves";
  if (k.merged_launches > 0) note += " merged";
  if (k.opaque_launches > 0) note += " no-parameters";
  return note.empty() ? note : note.substr(1);
}

// Of one launch, of those that were timed and not made while counters were read.
Figure median_of(const KernelReport& k) {
  const bool alike = k.times.min_ns == k.times.max_ns && k.untimed == 0;
  const Mark about = mark_if(!alike, Mark::kEstimate);
  return Figure::exact(k.times.median_ns).with(about);
}

// Launches that were not timed may be beyond.
Figure extreme_of(const KernelReport& k, const std::optional<uint64_t>& ns, Mark beyond) {
  return Figure::exact(ns).with(mark_if(k.untimed > 0, beyond));
}

Columns<KernelReport> kernel_columns() {
  Columns<KernelReport> c;
  const auto work = &KernelReport::work;
  c.text("kernel", "kernel", &KernelReport::name);
  add_flop(c, work);
  c.main();
  add_flop_share(c, work);
  c.main();
  add_launches(c, work);
  add_gpu_time(c, work);
  c.figure(
       "min_ns", "min", Kind::kNanoseconds,
       [](const KernelReport& k) { return extreme_of(k, k.times.min_ns, Mark::kAtMost); },
       "shortest GPU time of a launch, outside of reading counters; null where it was not recorded")
      .detail();
  c.figure("median_ns", "median", Kind::kNanoseconds, median_of,
           "half of the launches take less, to within 0.8 %; null at level tally, unless all took "
           "the same")
      .detail();
  c.figure(
       "max_ns", "max", Kind::kNanoseconds,
       [](const KernelReport& k) { return extreme_of(k, k.times.max_ns, Mark::kAtLeast); },
       "longest GPU time of a launch, outside of reading counters")
      .detail();
  c.text("note", "note", note_of).detail();
  c.for_programs();
  c.text(said::kMangled, &KernelReport::mangled);
  c.count("signatures", "signatures", &KernelReport::signatures,
          "launch shapes and parameters that differ");
  c.count("merged_parameter_launches", "merged", &KernelReport::merged_launches,
          "launches in signatures whose parameters were too many to keep apart");
  c.count("unknown_parameter_launches", "no parameters", &KernelReport::opaque_launches,
          "launches in signatures whose parameters are not known");
  add_work_details(c, work);
  return c;
}

const TableSource kKernelTable =
    TableSource("kernels", "kernels by name", kernel_columns, &Report::kernels)
        .long_list()
        .when_empty("no launches")
        .titled("Top kernels");
Section kernels_section(const Report& report) {
  Section out = kKernelTable.section(report);
  if (report.medians_left_out)
    out.below.push_back({"No medians: the kernels are too many to keep them.", Tone::kWarn});
  return out;
}

}  // namespace

const Subject kKernels = {{&kKernelTable, &launch_table("kernel_precisions")}, kernels_section};

}  // namespace flopinj::reduce
