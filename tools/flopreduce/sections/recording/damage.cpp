// What is missing from the traces, or was not read.
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

struct DamageRow {
  std::optional<std::string> file;
  const char* kind;
  uint64_t count;
  std::string meaning;
};

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

std::vector<DamageRow> damage_rows(const Report& report) {
  std::vector<DamageRow> rows;
  for (const auto& d : report.damage) {
    const auto& text = damage_text(d.kind);
    rows.push_back({d.file, text.code, d.count, text.meaning});
  }
  for (const auto& e : report.errors) rows.push_back({std::nullopt, "not_used", 1, e});
  return rows;
}

Columns<DamageRow> damage_columns() {
  Columns<DamageRow> c;
  c.text("file", "file", &DamageRow::file);
  c.text("kind", "kind", &DamageRow::kind, "not_used: an input that was not used, as meaning says");
  c.count("count", "count", &DamageRow::count);
  c.text("meaning", "meaning", &DamageRow::meaning);
  return c;
}

const TableSource kDamageTable("damage", "what is missing from the traces", damage_columns,
                               damage_rows);

}  // namespace

const Subject kDamage = {{&kDamageTable}, damage_section};

}  // namespace flopinj::reduce
