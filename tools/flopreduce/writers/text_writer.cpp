#include "writers/text_writer.h"

#include <algorithm>

#include "sections/sections.h"
#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/text_table.h"

namespace flopinj::reduce {
namespace {

std::string painted(const std::string& raw, Tone tone, const Style& style) {
  const std::string text = printable(raw);
  switch (tone) {
    case Tone::kTitle:
      return style.bold(text);
    case Tone::kWarn:
      return style.warn(text);
    case Tone::kBad:
      return style.bad(text);
    case Tone::kDim:
      return style.dim(text);
    case Tone::kPlain:
      break;
  }
  return text;
}

void write_lines(std::ostream& out, const std::vector<Line>& lines, const Style& style) {
  for (const Line& line : lines) {
    for (const auto& [text, tone] : line.parts) out << painted(text, tone, style);
    out << '\n';
  }
}

void write_table(std::ostream& out, const Table& table, const TextOptions& options,
                 const Style& style) {
  if (table.rows.empty()) {
    if (*table.when_empty != '\0') out << "  " << table.when_empty << '\n';
    return;
  }
  std::vector<std::string> header;
  for (const Column& column : table.columns) header.emplace_back(column.heading);
  TextTable text(std::move(header));
  const size_t shown =
      table.long_list ? std::min(options.top, table.rows.size()) : table.rows.size();
  for (size_t r = 0; r < shown; ++r) {
    std::vector<std::string> row;
    for (size_t c = 0; c < table.columns.size(); ++c)
      row.push_back(human(table.rows[r][c], table.columns[c].kind));
    text.add(std::move(row));
  }
  text.print(out, options.width, style);
  if (shown < table.rows.size())
    out << style.dim("  and " + to_grouped(table.rows.size() - shown) + " more: --top N") << '\n';
}

}  // namespace

void write_text(std::ostream& out, std::span<const Section> sections, const TextOptions& options) {
  const Style style{options.color};
  bool first = true;
  for (const Section& section : sections) {
    if (section.empty()) continue;
    if (!first) out << '\n';
    first = false;
    if (!section.title.empty()) out << style.bold(printable(section.title)) << '\n';
    write_lines(out, section.above, style);
    if (section.table) write_table(out, *section.table, options, style);
    write_lines(out, section.below, style);
  }
}

void write_text(std::ostream& out, const Report& report, const TextOptions& options) {
  write_text(out, report_sections(report), options);
}

}  // namespace flopinj::reduce
