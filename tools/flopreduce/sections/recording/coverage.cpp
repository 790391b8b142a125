// How much of the work has a count, and what has none: signatures that no process measured.
#include "sections/launch_tables.h"
#include "sections/parts/cells.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section coverage_section(const Report& report) {
  Section out = launch_table("unmeasured").section(report);
  const Work& total = report.total;
  if (!out.empty())
    out.above.emplace_back(
        "  Counted: " +
        share_text(share_figure(total.launches - total.unmeasured, total.launches)) +
        " of launches, " + share_text(counted_gpu_time_share(report)) + " of GPU time");
  return out;
}

}  // namespace

Figure counted_gpu_time_share(const Report& report) {
  u128 counted_ns = 0;
  for (const auto& s : report.signatures)
    if (s.unmeasured_reason.empty()) add_saturating(counted_ns, s.work.time.ns);
  return share_figure(counted_ns, report.total.time.ns);
}

const Subject kCoverage = {{&launch_table("unmeasured")}, coverage_section};

}  // namespace flopinj::reduce
