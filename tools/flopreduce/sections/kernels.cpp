// Kernels by name, most FLOP first.
#include "sections/launch_tables.h"
#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace launches {
namespace {

// The kernel that a row has all launches of.
const KernelReport* whole_kernel(const LaunchRow& row, const Report& report) {
  const auto id = row.group.in_common(by::kKernel, report);
  const KernelReport* kernel = id ? &report.kernels[*id] : nullptr;
  return kernel != nullptr && kernel->launches == row.group.work.launches ? kernel : nullptr;
}

std::string note_of(const LaunchRow& row, const Report& report) {
  const Work& work = row.group.work;
  const KernelReport* k = whole_kernel(row, report);
  std::string note;
  if (work.varying > work.rounded) note += " varying";
  if (work.rounded > 0) note += " rounded";
  if (work.left_out > 0) note += " moves-left-out";
  if (work.bounded > 0)
    note += " bounded";
  else if (work.doubtful > 0)
    note += " may-hold-moves";
  if (k != nullptr && k->merged_launches > 0) note += " merged";
  if (k != nullptr && k->opaque_launches > 0) note += " no-parameters";
  return note.empty() ? note : note.substr(1);
}

// Of one launch, of those that were timed and not made while counters were read.
Figure median_of(const KernelReport& k) {
  const bool alike = k.times.min_ns == k.times.max_ns && k.untimed == 0;
  const Mark about = mark_if(!alike, Mark::kEstimate);
  return Figure::exact(k.times.median_ns).with(about);
}
// Launches that were not timed may be beyond.
Figure least_of(const KernelReport& k) {
  return Figure::exact(k.times.min_ns).with(mark_if(k.untimed > 0, Mark::kAtMost));
}
Figure most_of(const KernelReport& k) {
  return Figure::exact(k.times.max_ns).with(mark_if(k.untimed > 0, Mark::kAtLeast));
}

template <Figure (*kOf)(const KernelReport&)>
Figure duration(const LaunchRow& row, const Report& report) {
  const KernelReport* k = whole_kernel(row, report);
  return k != nullptr ? kOf(*k) : Figure();
}
template <uint64_t KernelReport::*kCount>
std::optional<uint64_t> number(const LaunchRow& row, const Report& report) {
  const KernelReport* k = whole_kernel(row, report);
  return k != nullptr ? std::optional(k->*kCount) : std::nullopt;
}

}  // namespace

void durations(Columns<LaunchRow>& c) {
  c.figure("min_ns", "min", Kind::kNanoseconds, duration<least_of>,
           "shortest GPU time of a launch, outside of reading counters; null where it was not "
           "recorded")
      .detail();
  c.figure(kMedian, "median", Kind::kNanoseconds, duration<median_of>,
           "half of the launches take less, to within 0.8 %; null at level tally, unless all took "
           "the same")
      .detail();
  c.figure("max_ns", "max", Kind::kNanoseconds, duration<most_of>,
           "longest GPU time of a launch, outside of reading counters")
      .detail();
}
void note(Columns<LaunchRow>& c) { c.text("note", "note", note_of); }
void parameters(Columns<LaunchRow>& c) {
  c.count("signatures", "signatures", number<&KernelReport::signatures>,
          "launch shapes and parameters that differ");
  c.count("merged_parameter_launches", "merged", number<&KernelReport::merged_launches>,
          "launches in signatures whose parameters were too many to keep apart");
  c.count("unknown_parameter_launches", "no parameters", number<&KernelReport::opaque_launches>,
          "launches in signatures whose parameters are not known");
}

}  // namespace launches

namespace {

Section kernels_section(const Report& report) {
  Section out = launch_table("kernels").section(report);
  if (report.medians_left_out)
    out.below.push_back({"No medians: the kernels are too many to keep them.", Tone::kWarn});
  return out;
}

}  // namespace

const Subject kKernels = {{&launch_table("kernels"), &launch_table("kernel_precisions")},
                          kernels_section};

}  // namespace flopinj::reduce
