#include <algorithm>

#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/fit.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

std::string painted(const std::string& text, Tone tone, bool color) {
  static constexpr const char* kCodes[] = {"", "1", "1;33", "1;31", "2"};  // by Tone
  if (!color || tone == Tone::kPlain) return text;
  return std::string("\033[") + kCodes[static_cast<size_t>(tone)] + "m" + text + "\033[0m";
}

struct Broken {
  std::vector<TextStretch> lines;
  size_t hanging, most;  // columns in front of all but the first; how many lines
};
// To the terminal's width; lines after the first are indented deeper.
Broken broken(const Line& line, std::string_view text, const TextOptions& options) {
  const size_t spaces = std::min(text.find_first_not_of(' '), text.size());
  const size_t hanging = std::min(spaces + 2, options.width / 2);
  const size_t most = line.most > 0 ? line.most : std::string::npos;
  if (!options.fit) return {{{0, text.size()}}, hanging, most};
  return {wrap(text, options.width, hanging, most), hanging, most};
}

class TextWriter {
 public:
  TextWriter(std::ostream& out, const TextOptions& options) : out_(out), options_(options) {}

  void write(const Section& section) {
    if (!section.title.empty()) write(Line(section.title, Tone::kTitle));
    for (const Line& line : section.above) write(line);
    for (const ShownFigure& figure : section.figures) write(figure_line(figure));
    if (section.table) write(*section.table);
    for (const Line& line : section.below) write(line);
  }

 private:
  void write(const Line& line) {
    std::string text;
    std::vector<std::pair<size_t, Tone>> ends;  // of the parts
    for (const auto& [part, tone] : line.parts)
      ends.emplace_back((text += printable(part)).size(), tone);
    const auto [lines, hanging, most] = broken(line, text, options_);
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i > 0) out_ << std::string(hanging, ' ');
      size_t at = lines[i].begin;
      for (const auto& [end, tone] : ends) {
        const size_t until = std::min(end, lines[i].end);
        if (until <= at) continue;
        out_ << painted(text.substr(at, until - at), tone, options_.color);
        at = until;
      }
      if (i + 1 == most && text.find_first_not_of(' ', at) != std::string::npos) out_ << kCut;
      out_ << '\n';
    }
  }

  void write(const Table& table) {
    if (table.rows.empty()) {
      if (*table.when_empty != '\0') write(Line("  " + std::string(table.when_empty)));
      return;
    }
    const size_t shown =
        table.long_list ? std::min(options_.top, table.rows.size()) : table.rows.size();
    std::vector<std::vector<std::string>> rows(1 + shown);  // the first are the headings
    for (size_t c = 0; c < table.columns.size(); ++c) {
      rows[0].emplace_back(table.columns[c].heading);
      for (size_t r = 0; r < shown; ++r)
        rows[1 + r].push_back(human(table.rows[r][c], table.columns[c].kind));
    }
    const auto widths = widths_of(table.columns, rows);
    write(table.columns, rows, widths);
    std::string left_out;
    for (size_t c = 0; c < widths.size(); ++c)
      if (widths[c] == 0 && !rows[0][c].empty())
        left_out += (left_out.empty() ? "  left out, too wide: " : ", ") + rows[0][c];
    if (!left_out.empty() && !table.brief) write(Line(left_out, Tone::kDim));
    if (shown < table.rows.size())
      write(Line("  and " + to_grouped(table.rows.size() - shown) + " more: --top N", Tone::kDim));
  }

  // Where lines must fit, columns of no room have width 0; else only the name is cut.
  std::vector<size_t> widths_of(const std::vector<Column>& columns,
                                const std::vector<std::vector<std::string>>& rows) const {
    std::vector<size_t> content(columns.size(), 1);
    for (const auto& row : rows)
      for (size_t c = 0; c < row.size(); ++c)
        content[c] = std::max(content[c], display_width(row[c]));
    return options_.fit ? fit_columns(columns, std::move(content), options_.width)
                        : fit_name(std::move(content), options_.width);
  }

  // The first column is the name, to the left; all others but notes are to the right.
  void write(const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& rows,
             const std::vector<size_t>& widths) {
    std::vector<std::string> names;
    for (const auto& row : rows) names.push_back(row[0]);
    names = shorten_apart(names, widths[0]);
    for (size_t r = 0; r < rows.size(); ++r) {
      std::string line;
      for (size_t c = 0; c < rows[r].size(); ++c) {
        if (widths[c] == 0) continue;
        const std::string cell = c == 0 ? names[r] : shorten(rows[r][c], widths[c]);
        const std::string pad(widths[c] - std::min(widths[c], display_width(cell)), ' ');
        line.append(kColumnGap, ' ');
        line += c == 0 || columns[c].note ? cell + pad : pad + cell;
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out_ << painted(line, r == 0 ? Tone::kDim : Tone::kPlain, options_.color) << '\n';
    }
  }

  std::ostream& out_;
  const TextOptions& options_;
};

}  // namespace

size_t text_lines(const Line& line, const TextOptions& options) {
  std::string text;
  for (const auto& [part, tone] : line.parts) text += printable(part);
  return broken(line, text, options).lines.size();
}

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

}  // namespace flopinj::reduce
