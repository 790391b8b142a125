// What is missing from the traces, or was not read.
#include "sections/parts/records.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

Section damage_section(const Report& report) {
  Section s;
  for (const auto& e : report.errors)
    s.above.push_back(Line("  ").then("not used: ", Tone::kBad).then(e));
  for (const auto& d : report.damage)
    s.above.emplace_back("  " + d.file + ": " + to_grouped(d.count) + " " +
                         damage_text(d.kind).meaning);
  if (!s.above.empty()) s.title = "Damage";
  return s;
}

void damage_fields(Fields& f, const Report& report) {
  f.list("damage", report.damage, "", [](Fields& damage, const DamageReport& d) {
    const auto& text = damage_text(d.kind);
    damage("file", d.file);
    damage("kind", text.code);
    damage("count", d.count);
    damage("meaning", text.meaning);
  });
  f("errors", report.errors, "inputs that were not used");
}

std::vector<Table> damage_tables(const Report& report) {
  Table table{"damage",
              {{"file", "file"},
               {"kind", "kind", Kind::kText, Worth::kMain},
               {"count", "count", Kind::kCount, Worth::kMain},
               {"meaning", "meaning"}}};
  for (const auto& d : report.damage) {
    const auto& text = damage_text(d.kind);
    table.rows.push_back({d.file, text.code, d.count, text.meaning});
  }
  for (const auto& e : report.errors)
    table.rows.push_back({Cell::none(), "not_used", uint64_t{1}, e});
  return {std::move(table)};
}

}  // namespace

const Subject kDamage = {damage_section, damage_fields, damage_tables};

}  // namespace flopinj::reduce
