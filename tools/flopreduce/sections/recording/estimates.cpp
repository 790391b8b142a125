// What is extrapolated from samples that disagree, with its 95 % interval: the total, phases and
// kernels. Tables for programs have the interval of each sum (add_work_details).
#include <algorithm>

#include "sections/parts/cells.h"
#include "sections/parts/said.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

struct EstimateRow {
  std::string what;
  const Work* work;
};

std::vector<EstimateRow> estimate_rows(const Report& report) {
  std::vector<EstimateRow> rows;
  const auto add = [&](std::string what, const Work& work) {
    if (work.varying > 0) rows.push_back({std::move(what), &work});
  };
  add("total", report.total);
  for (const auto& p : report.phases) add("phase " + p.name, p.work);
  for (const auto& k : report.kernels) add(k.name, k.work);
  return rows;
}

// Of the interval; why there is none.
template <typename F>
auto of_interval(F get) {
  return [get](const EstimateRow& row) {
    const Work& work = *row.work;
    if (const auto interval = work.interval()) return Figure::exact(std::invoke(get, *interval));
    return Figure::unknown(work.uncertainty.elsewhere_launches() > 0 ? "not sampled everywhere"
                                                                     : "too few samples");
  };
}

Figure reach_share(const EstimateRow& row) {
  const Work& work = *row.work;
  const auto interval = work.interval();
  if (!interval) return {};
  return share_figure(std::max(interval->high - work.flop, work.flop - interval->low), work.flop);
}

Columns<EstimateRow> estimate_columns() {
  Columns<EstimateRow> c;
  c.text("what", "what", &EstimateRow::what, "total, a phase, or a kernel");
  c.figure(said::kFlop, [](const EstimateRow& row) { return flop_of(*row.work); }).main();
  c.figure("flop_low", "at least", Kind::kFlop, of_interval(&Interval::low),
           "lower end of the 95 % interval");
  c.figure("flop_high", "at most", Kind::kFlop, of_interval(&Interval::high),
           "upper end of the 95 % interval");
  c.figure("flop_reach_share", "+-", Kind::kShare, reach_share,
           "the farther end's distance, as a share of the FLOP")
      .main();
  c.count("varying_launches", "launches", [](const EstimateRow& row) {
     return row.work->varying;
   }).detail();
  return c;
}

const TableSource kEstimateTable =
    TableSource("estimates", "95 % intervals of estimates", estimate_columns, estimate_rows)
        .long_list()
        .titled("Estimates (95 % interval)");

}  // namespace

const Subject kEstimates = {{&kEstimateTable}};

}  // namespace flopinj::reduce
