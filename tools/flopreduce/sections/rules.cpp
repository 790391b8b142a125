// The rules that tell phases apart, and how much each decided.
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

}  // namespace

const Subject kRules = {nullptr, json};

}  // namespace flopinj::reduce
