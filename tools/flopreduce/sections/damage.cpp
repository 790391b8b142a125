// What is missing from the traces, or was not read.
#include "sections/json_parts.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section section(const Report& report) {
  Section s;
  for (const auto& e : report.errors)
    s.above.push_back(Line("  ").then("not used: ", Tone::kBad).then(e));
  for (const auto& d : report.damage)
    s.above.emplace_back("  " + d.file + ": " + to_grouped(d.count) + " " +
                         damage_text(d.kind).meaning);
  if (!s.above.empty()) s.title = "Damage";
  return s;
}

void json(Json& j, const Report& report) {
  j["damage"] = list_json(report.damage, [](const DamageReport& d) -> Json {
    const auto& text = damage_text(d.kind);
    return {{"file", d.file}, {"kind", text.code}, {"count", d.count}, {"meaning", text.meaning}};
  });
  j["errors"] = report.errors;
}

}  // namespace

const Subject kDamage = {section, json};

}  // namespace flopinj::reduce
