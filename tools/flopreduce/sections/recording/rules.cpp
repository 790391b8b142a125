// The rules that decide phases, and how much each decided.

#include "sections/parts/work_columns.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Columns<RuleReport> rule_columns() {
  const auto work = &RuleReport::work;
  Columns<RuleReport> c;
  c.text("rule", "rule", &RuleReport::rule);
  c.text("phase", "phase", &RuleReport::phase).main();
  add_flop(c, work);
  add_flop_share(c, work);
  c.main();
  add_launches(c, work);
  c.detail();
  add_gpu_time(c, work);
  add_work_details(c, work);
  return c;
}

auto used_rules(const Report& report) {
  return only(report.rules, [](const RuleReport& rule) { return rule.work.launches > 0; });
}

// People find the other rules in `flopreduce rules`.
const TableSource kUsedRules =
    TableSource("rules_used", "rules that gave launches a phase", rule_columns, used_rules)
        .titled("Phase rules used")
        .when_empty("no launches");
const TableSource kAllRules("rules", "all rules, in the order in which they are tried",
                            rule_columns, &Report::rules);

}  // namespace

const Subject kPhaseRules = {{&kUsedRules, &kAllRules}};

}  // namespace flopinj::reduce
