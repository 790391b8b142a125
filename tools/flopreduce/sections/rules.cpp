// The rules that tell phases apart, and how much each decided.
#include "sections/cells.h"
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

void json(Json& j, const Report& report) {
  j["rules"] = list_json(report.rules, [](const RuleReport& r) {
    Json rule{{"rule", r.rule}, {"phase", r.phase}};
    rule.update(work_json(r.work));
    return rule;
  });
}

std::vector<Table> tables(const Report& report) {
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

const Subject kRules = {nullptr, json, tables};

}  // namespace flopinj::reduce
