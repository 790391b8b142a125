// How much of the work has a count, and what has none: signatures that no process measured.
#include <algorithm>
#include <cmath>

#include "sections/parts/cells.h"
#include "sections/parts/records.h"
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

Section coverage_section(const Report& report) {
  const Coverage c = coverage_of(report);
  if (c.without.empty()) return {};
  Table table{"unmeasured",
              {{"kernel", "kernel"},
               {"launches", "launches", Kind::kCount, Worth::kMain},
               {"launches_share", "of launches", Kind::kShare, Worth::kDetail},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds, Worth::kDetail},
               {"gpu_time_share", "of GPU time", Kind::kShare},
               {"reason", "reason", Kind::kText, Worth::kMain}}};
  table.long_list = true;
  for (const auto* s : c.without)
    table.rows.push_back({s->kernel, s->work.launches, share_cell(s->work.launches, c.launches),
                          time_cell(s->work), share_cell(s->work.time.ns, c.time_ns),
                          s->unmeasured_reason});
  Section out{"Not measured by any process", {}, std::move(table), {}};
  const auto share = [](u128 part, u128 whole) {
    return whole == 0
               ? std::string("-")
               : fixed(
                     std::floor(1000 * static_cast<double>(part) / static_cast<double>(whole)) / 10,
                     1) +
                     " %";  // not all is never 100 %
  };
  out.above.emplace_back("  Counted: " + share(c.counted_launches, c.launches) + " of launches, " +
                         share(c.counted_ns, c.time_ns) + " of GPU time");
  return out;
}

void coverage_fields(Fields& f, const Report& report) {
  const Coverage c = coverage_of(report);
  const auto share = [](u128 part, u128 whole) {
    return whole == 0 ? std::nullopt : std::optional(quotient(part, whole));
  };
  f.object("counted", "what of the work has a FLOP count", [&](Fields& counted) {
    counted.share("launches_share", share(c.counted_launches, c.launches),
                  "of launches: those of signatures with a FLOP count");
    counted.share("gpu_time_share", share(c.counted_ns, c.time_ns), "of GPU time, likewise");
    counted("unmeasured_signatures", c.without.size(),
            "in signatures: those with an unmeasured_reason");
  });
}

}  // namespace

const Subject kCoverage = {coverage_section, coverage_fields};

}  // namespace flopinj::reduce
