// FLOP by phase of training.
#include "sections/cells.h"
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section phases_section(const Report& report) {
  Table table{"phases",
              {{"phase", "phase"},
               {"flop", "FLOP", Kind::kFlop, Worth::kMain},
               {"flop_exact", "in full", Kind::kExactFlop},
               {"flop_share", "share", Kind::kShare, Worth::kMain},
               {"launches", "launches", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds}}};
  for (const auto& p : report.phases)
    table.rows.push_back({p.name, flop_cell(p.work), exact_cell(p.work),
                          flop_share_cell(p.work, report.total), p.work.launches,
                          time_cell(p.work)});
  return {"By phase", {}, std::move(table), {}};
}

void phases_json(Json& j, const Report& report) {
  j["phases"] = Json::object();
  for (const auto& p : report.phases) {
    j["phases"][p.name] = work_json(p.work);
    j["phases"][p.name]["precision"] = precision_json(report, p.flop);
    add_integer_op(j["phases"][p.name], p.flop);
  }
}

}  // namespace

const Subject kPhases = {phases_section, phases_json};

}  // namespace flopinj::reduce
