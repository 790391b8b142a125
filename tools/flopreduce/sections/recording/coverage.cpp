// How much of the work has a count, and what has none: signatures that no process measured.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

struct Coverage {
  u128 launches = 0, time_ns = 0;               // all
  u128 counted_launches = 0, counted_ns = 0;    // of signatures with a count
  std::vector<const SignatureReport*> without;  // most GPU time first
};

Coverage coverage_of(const Report& report) {
  Coverage c;
  for (const auto& s : report.signatures) {
    add_saturating(c.launches, u128{s.work.launches});
    add_saturating(c.time_ns, s.work.time.ns);
    if (!s.unmeasured_reason.empty()) {
      c.without.push_back(&s);
      continue;
    }
    add_saturating(c.counted_launches, u128{s.work.launches});
    add_saturating(c.counted_ns, s.work.time.ns);
  }
  std::stable_sort(c.without.begin(), c.without.end(), [](const auto* a, const auto* b) {
    return a->work.time.ns != b->work.time.ns ? a->work.time.ns > b->work.time.ns
                                              : a->work.launches > b->work.launches;
  });
  return c;
}

struct UncountedRow {
  const SignatureReport* signature;
  Figure launches_share, gpu_time_share;
};
std::vector<UncountedRow> uncounted_rows(const Report& report) {
  const Coverage c = coverage_of(report);
  std::vector<UncountedRow> rows;
  for (const auto* s : c.without)
    rows.push_back(
        {s, share_figure(s->work.launches, c.launches), share_figure(s->work.time.ns, c.time_ns)});
  return rows;
}

Columns<UncountedRow> uncounted_columns() {
  using Row = UncountedRow;
  const auto work = through(&Row::signature, &SignatureReport::work);
  Columns<Row> c;
  c.text("kernel", "kernel", through(&Row::signature, &SignatureReport::kernel));
  add_launches(c, work);
  c.main();
  c.figure("launches_share", "of launches", Kind::kShare, &Row::launches_share).detail();
  add_gpu_time(c, work);
  c.detail();
  c.figure("gpu_time_share", "of GPU time", Kind::kShare, &Row::gpu_time_share);
  c.text("reason", "reason", through(&Row::signature, &SignatureReport::unmeasured_reason)).main();
  c.for_programs();
  c.text(said::kStableHash, [](const Row& row) { return hash_text(row.signature->stable_hash); });
  return c;
}

const TableSource kUncounted =
    TableSource("unmeasured", "kernels without a FLOP count", uncounted_columns, uncounted_rows)
        .long_list()
        .titled("Not measured by any process");

Section coverage_section(const Report& report) {
  const Coverage c = coverage_of(report);
  if (c.without.empty()) return {};
  Section out = kUncounted.section(report);
  out.above.emplace_back("  Counted: " + share_text(share_figure(c.counted_launches, c.launches)) +
                         " of launches, " + share_text(share_figure(c.counted_ns, c.time_ns)) +
                         " of GPU time");
  return out;
}

}  // namespace

Figure counted_gpu_time_share(const Report& report) {
  const Coverage c = coverage_of(report);
  return share_figure(c.counted_ns, c.time_ns);
}

const Subject kCoverage = {{&kUncounted}, coverage_section};

}  // namespace flopinj::reduce
