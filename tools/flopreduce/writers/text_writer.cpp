#include "writers/text_writer.h"

#include <algorithm>

#include "sections/sections.h"
#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/text_table.h"
#include "writers/wrap.h"

namespace flopinj::reduce {
namespace {

std::string painted(const std::string& text, Tone tone, const Style& style) {
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

class TextWriter {
 public:
  TextWriter(std::ostream& out, const TextOptions& options)
      : out_(out), options_(options), style_{options.color} {}

  void write(const Section& section) {
    if (!section.title.empty()) write(Line(section.title, Tone::kTitle));
    for (const Line& line : section.above) write(line);
    for (const ShownFigure& figure : section.figures) write(figure_line(figure));
    if (section.table) write(*section.table);
    for (const Line& line : section.below) write(line);
  }

 private:
  // Broken to the terminal's width; lines after the first are indented deeper.
  void write(const Line& line) {
    std::string text;
    std::vector<std::pair<size_t, Tone>> ends;  // of the parts
    for (const auto& [part, tone] : line.parts)
      ends.emplace_back((text += printable(part)).size(), tone);
    const size_t spaces = std::min(text.find_first_not_of(' '), text.size());
    const size_t hanging = std::min(spaces + 2, options_.width / 2);
    const auto lines =
        options_.fit ? wrap(text, options_.width, hanging) : std::vector<Stretch>{{0, text.size()}};
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) out_ << std::string(hanging, ' ');
      size_t at = lines[i].begin;
      for (const auto& [end, tone] : ends) {
        const size_t until = std::min(end, lines[i].end);
        if (until <= at) continue;
        out_ << painted(text.substr(at, until - at), tone, style_);
        at = until;
      }
      out_ << '\n';
    }
  }

  void write(const Table& table) {
    if (table.rows.empty()) {
      if (*table.when_empty != '\0') write(Line("  " + std::string(table.when_empty)));
      return;
    }
    TextTable text(table.columns);
    const size_t shown =
        table.long_list ? std::min(options_.top, table.rows.size()) : table.rows.size();
    for (size_t r = 0; r < shown; ++r) {
      std::vector<std::string> row;
      for (size_t c = 0; c < table.columns.size(); ++c)
        row.push_back(human(table.rows[r][c], table.columns[c].kind));
      text.add(std::move(row));
    }
    std::string left_out;
    for (const auto& heading : text.print(out_, options_.width, options_.fit, style_))
      left_out += (left_out.empty() ? "  left out, too wide: " : ", ") + heading;
    if (!left_out.empty()) write(Line(left_out, Tone::kDim));
    if (shown < table.rows.size())
      write(Line("  and " + to_grouped(table.rows.size() - shown) + " more: --top N", Tone::kDim));
  }

  std::ostream& out_;
  const TextOptions& options_;
  Style style_;
};

}  // namespace

void write_text(std::ostream& out, std::span<const Section> sections, const TextOptions& options) {
  TextWriter writer(out, options);
  bool first = true;
  for (const Section& section : sections) {
    if (section.empty()) continue;
    if (!first) out << '\n';
    first = false;
    writer.write(section);
  }
}

void write_text(std::ostream& out, const Report& report, const TextOptions& options) {
  write_text(out, report_sections(report), options);
}

}  // namespace flopinj::reduce
