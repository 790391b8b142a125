#include <algorithm>
#include <string>
#include <string_view>

#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

bool ends_word(const std::string& text, size_t at) { return at >= text.size() || text[at] == ' '; }

// Whether text[at] can mean something to Markdown in its place. Numbers and most signatures of
// kernels stay as they are.
bool is_special(const std::string& text, size_t at) {
  const char c = text[at];
  if (std::string_view("\\`*_[]|~#$").find(c) != std::string_view::npos) return true;
  // A list or an underlined title.
  if (at == 0 && std::string_view("-+=").find(c) != std::string_view::npos) return true;
  // A link by itself (http://, www.), or an emoji (:name:).
  if (c == ':') return !ends_word(text, at + 1);
  if (c != '.' && c != ')') return false;
  if (at >= 3 && (text[at - 1] | 0x20) == 'w') return true;
  return at > 0 && is_digit(text[at - 1]) && ends_word(text, at + 1);  // "1. " numbers a list
}

std::string escaped(const std::string& raw) {
  const std::string text = printable(raw);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '@') {
      out += "&#64;&#8203;";  // calls no one by name
    } else {
      if (is_special(text, i)) out += '\\';
      out += c;
    }
  }
  return out;
}

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::string toned(const std::string& text, Tone tone) {
  const bool strong = tone == Tone::kTitle || tone == Tone::kWarn || tone == Tone::kBad;
  const std::string bare = trimmed(text);
  if (bare.empty()) return text;
  const size_t at = text.find(bare);
  const std::string mark = strong ? "**" : "";
  // Spaces stay outside: "** a**" would not be bold.
  return (at > 0 ? " " : "") + mark + escaped(bare) + mark +
         (at + bare.size() < text.size() ? " " : "");
}

// Each line is a line of its own, also without an empty one between.
void write_lines(std::ostream& out, const std::vector<Line>& lines) {
  bool any = false;
  for (const Line& line : lines) {
    std::string text;
    for (const auto& [part, tone] : line.parts) text += toned(part, tone);
    text = trimmed(text);
    if (text.empty()) {
      if (any) out << '\n';
      any = false;
      continue;
    }
    out << (any ? "  \n" : "") << text;
    any = true;
  }
  if (any) out << "\n\n";
}

std::vector<Line> with_figures(const Section& section) {
  std::vector<Line> lines = section.above;
  for (const ShownFigure& figure : section.figures) lines.push_back(figure_line(figure));
  return lines;
}

void write_table(std::ostream& out, const Table& table, size_t top) {
  if (table.rows.empty()) {
    if (*table.when_empty != '\0') out << escaped(table.when_empty) << "\n\n";
    return;
  }
  std::string rule = "|";
  out << '|';
  for (size_t c = 0; c < table.columns.size(); ++c) {
    out << ' ' << escaped(table.columns[c].heading) << " |";
    rule += c == 0 || table.columns[c].kind == Kind::kText ? " --- |" : " ---: |";
  }
  out << '\n' << rule << '\n';
  const size_t shown = table.long_list ? std::min(top, table.rows.size()) : table.rows.size();
  for (size_t r = 0; r < shown; ++r) {
    out << '|';
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Cell& cell = table.rows[r][c];
      const auto* text = std::get_if<std::string>(&cell.value);
      out << ' ' << escaped(text != nullptr ? *text : human(cell, table.columns[c].kind)) << " |";
    }
    out << '\n';
  }
  out << '\n';
  if (shown < table.rows.size())
    out << "and " << to_grouped(table.rows.size() - shown) << " more\n\n";
}

}  // namespace

void write_markdown(std::ostream& out, std::span<const Section> sections, size_t top) {
  for (const Section& section : sections) {
    if (section.empty()) continue;
    if (!section.title.empty()) out << "## " << escaped(section.title) << "\n\n";
    write_lines(out, with_figures(section));
    if (section.table) write_table(out, *section.table, top);
    write_lines(out, section.below);
  }
}

}  // namespace flopinj::reduce
