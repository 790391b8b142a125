// NVTX ranges, by what was launched inside them.

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

// Without the ranges inside of it.
struct OwnWork {
  std::optional<std::string> range;  // nothing: in no range
  const Work& work;
};
Columns<OwnWork> own_work_columns() {
  Columns<OwnWork> c;
  const auto work = [](const OwnWork& r) -> const Work& { return r.work; };
  c.text("range", "range", &OwnWork::range, "null: launches in no range");
  add_work(c, work);
  return c;
}
void each_own_work(const Report& report, const std::function<void(const OwnWork&)>& visit) {
  for (const RangeReport& r : report.ranges) visit({r.path, r.exclusive});
  visit({std::nullopt, report.outside_ranges});
}

const TableSource kRangeTable =
    TableSource("ranges", "NVTX ranges, with what is below them", range_columns, ranges_by_flop)
        .long_list()
        .titled("Top ranges (inclusive)");
const TableSource kOwnWork = TableSource::pass_on(
    "ranges_exclusive", "launches right in a range, and in none", own_work_columns, each_own_work);

}  // namespace

const Subject kRanges = {{&kRangeTable, &kOwnWork}};

}  // namespace flopinj::reduce
