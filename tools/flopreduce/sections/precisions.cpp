// FLOP by number format, and apart from them integer operations.
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// Of one precision, `estimated` of it by estimate.
Cell sum_cell(const Report& report, u128 operations, u128 estimated, u128 doubtful = 0) {
  Work of_all;
  of_all.flop = operations;
  of_all.doubtful = doubtful;
  of_all.unmeasured = report.total.unmeasured;
  of_all.varying = estimated > 0 ? 1 : 0;
  return {operations, flop_mark(of_all)};
}

u128 doubtful_of(const Report& report, size_t precision) {
  return precision < kInstructionPrecisions ? report.flop.doubtful[precision] : 0;
}

Section precisions_section(const Report& report) {
  Table table{"precisions",
              {{"precision", "precision"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_exact", "exact", Kind::kExactFlop},
               {"flop_share", "share", Kind::kShare}}};
  table.when_empty = "none counted";
  for (size_t i = 0; i < report.precisions.size(); ++i) {
    const Cell flop = sum_cell(report, report.flop.by_precision[i],
                               report.estimated_flop.by_precision[i], doubtful_of(report, i));
    if (report.flop.by_precision[i] == 0) continue;
    // What was not measured may be of this precision or of others.
    const Mark bounds = report.total.flop_complete() ? Mark::kNone
                        : report.flop.by_precision[i] < report.total.flop
                            ? Mark::kAtLeast | Mark::kAtMost
                            : Mark::kAtMost;
    table.rows.push_back(
        {report.precisions[i], flop, flop,
         marked(share_cell(report.flop.by_precision[i], report.total.flop), bounds)});
  }
  return {"By precision", {}, std::move(table), {}};
}

Section integer_section(const Report& report) {
  Table table{"integer_operations",
              {{"source", "source"},
               {"op", "OP", Kind::kOperations, Worth::kMain},
               {"op_exact", "exact", Kind::kExactFlop}}};
  for (size_t i = 0; i < kIntegerFormats.size(); ++i) {
    const Cell operations =
        sum_cell(report, report.flop.integer[i], report.estimated_flop.integer[i]);
    if (report.flop.integer[i] > 0)
      table.rows.push_back({std::string(kIntegerFormats[i]), operations, operations});
  }
  if (table.rows.empty()) return {};
  return {"Integer operations of the tensor cores (no FLOP)", {}, std::move(table), {}};
}

void precisions_fields(Fields& f, const Report& report) {
  precision_fields(f, report, report.flop);
  f("precision_partial", !report.total.flop_complete(), "launches are unmeasured");
}

}  // namespace

const Subject kPrecisions = {precisions_section, precisions_fields};
const Subject kIntegerOperations = {integer_section, nullptr};

}  // namespace flopinj::reduce
