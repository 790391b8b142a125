// How much of the work has a count, and what has none: signatures that no process measured.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

using Uncounted = const SignatureReport*;

// Most GPU time first.
std::vector<Uncounted> uncounted_of(const Report& report) {
  std::vector<Uncounted> without;
  for (const auto& s : report.signatures)
    if (!s.unmeasured_reason.empty()) without.push_back(&s);
  std::ranges::stable_sort(without, std::greater<>(), [](Uncounted s) {
    return std::pair(s->work.time.ns, s->work.launches);
  });
  return without;
}

Columns<Uncounted> uncounted_columns() {
  const auto work = &SignatureReport::work;
  Columns<Uncounted> c;
  c.text("kernel", "kernel", &SignatureReport::kernel);
  add_launches(c, work);
  c.main();
  c.figure("launches_share", "of launches", Kind::kShare, [](Uncounted s, const Report& report) {
     return share_figure(s->work.launches, report.total.launches);
   }).detail();
  add_gpu_time(c, work);
  c.detail();
  c.figure("gpu_time_share", "of GPU time", Kind::kShare, [](Uncounted s, const Report& report) {
    return share_figure(s->work.time.ns, report.total.time.ns);
  });
  c.text("reason", "reason", &SignatureReport::unmeasured_reason).main();
  c.for_programs();
  c.text(said::kStableHash, [](Uncounted s) { return hash_text(s->stable_hash); });
  return c;
}

const TableSource kUncounted =
    TableSource("unmeasured", "kernels without a FLOP count", uncounted_columns, uncounted_of)
        .long_list()
        .titled("Not measured by any process");

Section coverage_section(const Report& report) {
  Section out = kUncounted.section(report);
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

const Subject kCoverage = {{&kUncounted}, coverage_section};

}  // namespace flopinj::reduce
