// NVTX ranges, by what was launched inside them.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section ranges_section(const Report& report) {
  std::vector<const RangeReport*> order;
  for (const auto& r : report.ranges) order.push_back(&r);
  if (order.empty()) return {};
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return a->inclusive.flop > b->inclusive.flop;
  });
  Table table{"ranges",
              {{"range", "range"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_share", "share", Kind::kShare, Worth::kMain},
               {"launches", "launches", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds}}};
  table.long_list = true;
  for (const auto* r : order)
    table.rows.push_back({r->path, flop_cell(r->inclusive),
                          flop_share_cell(r->inclusive, report.total), r->inclusive.launches,
                          time_cell(r->inclusive)});
  return {"Top ranges (inclusive)", {}, std::move(table), {}};
}

void ranges_fields(Fields& f, const Report& report) {
  f.list("ranges", report.ranges, "in tree order, each with everything below it",
         [](Fields& range, const RangeReport& r) {
           range("path", r.path);
           range("name", r.name);
           range("depth", r.depth);
           work_part(range, r.inclusive);
           work_object(range, "exclusive", r.exclusive, "of launches right in it");
         });
  work_object(f, "outside_ranges", report.outside_ranges);
}

}  // namespace

const Subject kRanges = {ranges_section, ranges_fields};

}  // namespace flopinj::reduce
