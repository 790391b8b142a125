// FLOP by phase of training.
#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

std::string unclear_flop(const Work& work) {
  if (!work.flop_complete()) return ", some of them not measured,";
  return " (" + to_human(work.flop, "FLOP") + ")";
}

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
  Section out{"By phase", {}, std::move(table), {}};
  if (const Work& unclear = report.unclear; unclear.launches > 0) {
    out.below.push_back({to_grouped(unclear.launches) + " launches of other" +
                             unclear_flop(unclear) +
                             " may have run forward: their sequence numbers do not tell.",
                         Tone::kWarn});
    out.below.push_back(
        {"Data preparation, layers without gradients and evaluation with gradients on look the "
         "same. A range named forward tells, or the rule 'forward number is unclear'.",
         Tone::kDim});
  }
  return out;
}

void phases_json(Json& j, const Report& report) {
  j["phases"] = Json::object();
  for (const auto& p : report.phases) {
    j["phases"][p.name] = work_json(p.work);
    j["phases"][p.name]["precision"] = precision_json(report, p.flop);
    add_integer_op(j["phases"][p.name], p.flop);
  }
  j["phase_unclear"] = work_json(report.unclear);
}

}  // namespace

const Subject kPhases = {phases_section, phases_json};

}  // namespace flopinj::reduce
