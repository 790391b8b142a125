// NVTX ranges, by what was launched inside them.
#include "sections/launch_tables.h"
#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

using Range = const RangeReport*;

std::vector<Range> ranges_by_flop(const Report& report) {
  return largest_first(report.ranges, [](const auto& range) { return range.inclusive.flop; });
}

Columns<Range> range_columns() {
  Columns<Range> c;
  const auto work = &RangeReport::inclusive;
  c.text("range", "range", &RangeReport::path,
         "names of the ranges around it and its own, with \"/\" between");
  add_flop(c, work);
  c.main();
  add_flop_share(c, work);
  c.main();
  add_launches(c, work);
  add_gpu_time(c, work);
  c.for_programs();
  c.text("name", "name", &RangeReport::name);
  c.count("depth", "depth", &RangeReport::depth, "1: in no other range");
  c.count(
      "place", "place",
      [](Range r, const Report& report) { return size_t(r - report.ranges.data()); },
      "in the tree: before the ranges inside of it, from 0");
  add_work_details(c, work);
  return c;
}

const TableSource kRangeTable =
    TableSource("ranges", "NVTX ranges, with what is below them", range_columns, ranges_by_flop)
        .long_list()
        .titled("Top ranges (inclusive)");

}  // namespace

const Subject kRanges = {{&kRangeTable, &launch_table("ranges_exclusive")}};

}  // namespace flopinj::reduce
