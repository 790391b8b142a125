// FLOP by number format, and apart from them integer operations.
#include "sections/cells.h"
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section precisions_section(const Report& report) {
  Table table{"precisions",
              {{"precision", "precision"},
               {"flop", "FLOP", Kind::kFlop},
               {"flop_exact", "exact", Kind::kExactFlop},
               {"flop_share", "share", Kind::kShare}}};
  table.when_empty = "none counted";
  const Mark mark = report.total.flop_complete() ? Mark::kNone : Mark::kAtLeast;
  for (size_t i = 0; i < report.precisions.size(); ++i)
    if (const u128 flop = report.flop.by_precision[i]; flop > 0)
      table.rows.push_back({report.precisions[i], Cell(flop, mark), Cell(flop, mark),
                            share_cell(flop, report.total.flop)});
  return {"By precision", {}, std::move(table), {}};
}

Section integer_section(const Report& report) {
  Table table{"integer_operations",
              {{"source", "source"},
               {"op", "OP", Kind::kOperations},
               {"op_exact", "exact", Kind::kExactFlop}}};
  const Mark mark = report.total.flop_complete() ? Mark::kNone : Mark::kAtLeast;
  for (size_t i = 0; i < kIntegerFormats.size(); ++i)
    if (const u128 operations = report.flop.integer[i]; operations > 0)
      table.rows.push_back(
          {std::string(kIntegerFormats[i]), Cell(operations, mark), Cell(operations, mark)});
  if (table.rows.empty()) return {};
  return {"Integer operations of the tensor cores (no FLOP)", {}, std::move(table), {}};
}

void precisions_json(Json& j, const Report& report) {
  j["precision"] = precision_json(report, report.flop);
  add_integer_op(j, report.flop);
  j["precision_partial"] = !report.total.flop_complete();
}

}  // namespace

const Subject kPrecisions = {precisions_section, precisions_json};
const Subject kIntegerOperations = {integer_section, nullptr};

}  // namespace flopinj::reduce
