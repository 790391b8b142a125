// The rules that tell phases apart, and how much each decided.
#include "sections/parts/cells.h"
#include "sections/parts/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

// Those that decided something; the others are in the JSON and in `flopreduce rules`.
Section rules_section(const Report& report) {
  Table table{"rules_used",
              {{"rule", "rule"},
               {"phase", "phase", Kind::kText, Worth::kMain},
               {"flop", "FLOP", Kind::kFlop},
               {"flop_share", "share", Kind::kShare, Worth::kMain},
               {"launches", "launches", Kind::kCount, Worth::kDetail},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds}}};
  table.when_empty = "no launches";
  for (const auto& r : report.rules)
    if (r.work.launches > 0)
      table.rows.push_back({r.rule, r.phase, flop_cell(r.work),
                            flop_share_cell(r.work, report.total), r.work.launches,
                            time_cell(r.work)});
  return {"Phase rules used", {}, std::move(table), {}};
}

void rules_json(Json& j, const Report& report) {
  j["rules"] = list_json(report.rules, [](const RuleReport& r) {
    Json rule{{"rule", r.rule}, {"phase", r.phase}};
    rule.update(work_json(r.work));
    return rule;
  });
}

std::vector<Table> rules_tables(const Report& report) {
  Table table{"rules",
              {{"rule", "rule"},
               {"phase", "phase"},
               {"flop", "FLOP", Kind::kFlop},
               {"launches", "launches", Kind::kCount},
               {"gpu_time_ns", "GPU time", Kind::kNanoseconds}}};
  for (const auto& r : report.rules)
    table.rows.push_back({r.rule, r.phase, exact_cell(r.work), r.work.launches, time_cell(r.work)});
  return {std::move(table)};
}

}  // namespace

const Subject kPhaseRules = {rules_section, rules_json, rules_tables};

}  // namespace flopinj::reduce
