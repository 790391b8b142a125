// NVTX ranges, by what was launched inside them.
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
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

Json range_json(const RangeReport& r) {
  Json j;
  j["path"] = r.path;
  j["name"] = r.name;
  j["depth"] = r.depth;
  j.update(work_json(r.inclusive));               // with everything below it
  const Json exclusive = work_json(r.exclusive);  // of launches right in it
  for (const auto& [key, value] : exclusive.items()) j[key + "_exclusive"] = value;
  return j;
}

void ranges_json(Json& j, const Report& report) {
  j["ranges"] = list_json(report.ranges, range_json);
  j["outside_ranges"] = work_json(report.outside_ranges);
}

}  // namespace

const Subject kRanges = {ranges_section, ranges_json};

}  // namespace flopinj::reduce
