// The rules that decide phases, and how much each decided.
#include "sections/parts/cells.h"
#include "sections/parts/records.h"
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

void rules_fields(Fields& f, const Report& report) {
  f.list("rules", report.rules, "in the order in which they are tried",
         [](Fields& rule, const RuleReport& r) {
           rule("rule", r.rule);
           rule("phase", r.phase);
           work_part(rule, r.work);
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

const Subject kPhaseRules = {rules_section, rules_fields, rules_tables};

}  // namespace flopinj::reduce
