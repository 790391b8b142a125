// The first screen in rows, for programs that show it in a way of their own.
#include <string>
#include <string_view>
#include <vector>

#include "report/lost.h"
#include "sections/parts/cells.h"
#include "sections/parts/terms.h"
#include "sections/sections.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kParts[] = {"warning", "program", "figure", "lost"};
// By Tone.
constexpr std::string_view kTones[] = {"plain", "title", "warn", "bad", "dim"};

struct ScreenRow {
  std::string_view part;
  std::string name, text, note = {};
  Tone tone = Tone::kPlain;
  std::string meaning = {};
  std::string_view line = {};  // of table lost
};

ScreenRow row_of(std::string_view part, const Line& line) {
  ScreenRow row{part, "", ""};
  for (const auto& [text, tone] : line.parts) row.text += text;
  if (!line.parts.empty()) row.tone = line.parts.front().second;
  return row;
}

void add_figures(const Report& report, std::vector<ScreenRow>& rows) {
  for (ShownFigure& figure : screen_figures(report)) {
    if (*figure.name == '\0')  // it goes on with the figure before
      rows.back().note += "; " + figure.note;
    else
      rows.push_back({"figure", figure.name, std::move(figure.value), std::move(figure.note),
                      figure.tone, std::string(meaning_of_figure(figure.name))});
  }
}

// Where the peak went: its title, what there is to say before, and a row for each line.
void add_lost(const Report& report, std::vector<ScreenRow>& rows) {
  const Section section = kLost.section(report);
  if (section.empty()) return;
  rows.push_back({"lost", "", section.title, "", Tone::kTitle});
  for (const Line& line : section.above) rows.push_back(row_of("lost", line));
  if (!section.table) return;
  for (const TableRow& cells : section.table->rows) {
    const auto& words = std::get<std::string>(cells[0].value);
    for (const LostRow& row : kLostRows)
      if (row.parent == nullptr && words == words_of(row, report.lost))
        rows.push_back({"lost", words, std::get<std::string>(cells[1].value), "", Tone::kPlain,
                        row.meaning, row.key});
  }
}

std::vector<ScreenRow> screen_rows(const Report& report) {
  std::vector<ScreenRow> rows;
  for (const Line& line : screen_warnings(report)) rows.push_back(row_of("warning", line));
  const auto [command, where, gpus] = screen_program(report);
  rows.push_back({"program", "command", command, "", Tone::kTitle});
  rows.push_back({"program", "where", where});
  rows.push_back({"program", "gpus", gpus, "", Tone::kDim});
  std::vector<Line> origin;
  add_origin(report, origin);
  for (const Line& line : origin) rows.push_back(row_of("program", line));
  add_figures(report, rows);
  add_lost(report, rows);
  return rows;
}

Columns<ScreenRow> screen_columns() {
  Columns<ScreenRow> c;
  c.text("part", "part", &ScreenRow::part,
         "of the screen: what to know first, the program, the figures, where the peak went")
      .names(kParts);
  c.text("name", "name", or_null(&ScreenRow::name), "null of a line without one");
  c.text("text", "text", or_null(&ScreenRow::text), "for people: a value, rounded and marked");
  c.text("note", "note", or_null(&ScreenRow::note));
  c.text("tone", "tone", [](const ScreenRow& row) {
     return kTones[static_cast<size_t>(row.tone)];
   }).names(kTones);
  c.text("meaning", "meaning", or_null(&ScreenRow::meaning));
  c.text(
      "line", "line", [](const ScreenRow& row) { return text_or_null(std::string(row.line)); },
      "of table lost, whose share the text is");
  return c;
}

const TableSource kScreenTable("screen", "the first screen, as people read it", screen_columns,
                               screen_rows);

}  // namespace

const Subject kScreen = {{&kScreenTable}};

}  // namespace flopinj::reduce
