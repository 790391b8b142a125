// What a report says, in a form that every writer can print: sections of lines and tables with
// typed cells. A terminal shows human units, CSV exact numbers; both print the same table.
//
// Texts are raw bytes from traces: writers make them fit to be shown in their form.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "report/figure.h"
#include "support/wide.h"

namespace flopinj::reduce {

// Lines in tones, and figures with a name and a note, as people read them.
enum class Tone : uint8_t { kPlain, kTitle, kWarn, kBad, kDim };

// A line may have several tones. On a terminal it is broken, into `most` lines if that is given.
struct Line {
  std::vector<std::pair<std::string, Tone>> parts;
  size_t most = 0;
  Line(std::string text, Tone tone = Tone::kPlain) { parts.emplace_back(std::move(text), tone); }
  Line(const char* text, Tone tone = Tone::kPlain) { parts.emplace_back(text, tone); }
  Line& then(std::string text, Tone tone = Tone::kPlain) {
    parts.emplace_back(std::move(text), tone);
    return *this;
  }
  Line& in_lines(size_t lines) {
    most = lines;
    return *this;
  }
};

// "HFU", "41 %", "executed FLOP / (wall time x peak)". Without a name: more about the one before.
struct ShownFigure {
  const char* name;
  std::string value, note;
  Tone tone = Tone::kTitle;  // of the value
  size_t most = 0;           // as of Line
};
// "  HFU                 41 %   executed FLOP / (wall time x peak)"
Line figure_line(const ShownFigure& figure);

// What a column's cells are. The comment has the unit of the exact value.
enum class Kind : uint8_t {
  kText,
  kCount,      // 1
  kFlop,       // FLOP; people see "44.05 MFLOP"
  kExactFlop,  // as the column before it, kFlop or kOperations; people see "44,052,480". Forms that
               // print exact numbers leave it out
  kOperations,   // OP: integer operations
  kNanoseconds,  // ns; people see "1.064 ms"
  kBytes,        // B
  kRate,         // FLOP/s
  kBandwidth,    // B/s
  kRatio,        // 1; people see "1.986"
  kShare,        // 1; people see "37.1 %"
  kFlag,         // 0 or 1; people see "yes" and "no"
};

// A cell holds nothing (never 0 for what is not known: then people see `absent`), a text or a
// number.
struct Cell {
  std::variant<std::monostate, std::string, u128, double> value;
  Mark marks = Mark::kNone;
  std::optional<u128> least = {};   // as of Figure
  std::optional<double> most = {};  // likewise
  std::string absent = "-";         // what people see where there is no value

  Cell() = default;
  Cell(std::string text) : value(std::move(text)) {}
  Cell(const char* text) : value(std::string(text)) {}
  Cell(const Figure& figure) : marks(figure.marks()), least(figure.least()), most(figure.most()) {
    if (!figure.why().empty()) absent = figure.why();
    if (const auto* whole = std::get_if<u128>(&figure.value())) value = *whole;
    if (const auto* real = std::get_if<double>(&figure.value())) value = *real;
  }
  static Cell none(std::string shown = "-") {
    Cell cell;
    cell.absent = std::move(shown);
    return cell;
  }
  bool empty() const { return std::holds_alternative<std::monostate>(value); }
};

// For people: without its reason, unless that is `why`.
inline Cell dashed(Cell cell, std::string_view why = "") {
  if (cell.absent != why) cell.absent = "-";
  return cell;
}

// What a column is worth where a table is wider than the terminal.
enum class Worth : uint8_t {
  kDetail,   // the first to go
  kUsual,    // goes where that is not enough
  kMain,     // what the table is for
  kProgram,  // people never see it
};

// What a column is: said once, for people, programs, the schema and the documents.
struct Column {
  const char* key;      // for programs: "gpu_time_ns"; with the unit, unless it is 1 or FLOP
  const char* heading;  // for people
  Kind kind = Kind::kText;
  Worth worth = Worth::kUsual;
  const char* meaning = "";  // ASCII, without an end mark; empty where the heading says it
  bool exact = false;        // its numbers never have a mark
  bool note = false;         // words beside the figures
  bool range = false;        // it may be known to lie between two numbers: Cell::most
  // Of texts that are always one of these names, or null: gates compare them.
  std::span<const std::string_view> names = {};
};

using TableRow = std::vector<Cell>;

struct Table {
  const char* key;              // of all tables unique: "kernels"
  std::vector<Column> columns;  // the first is the name
  std::vector<TableRow> rows = {};
  bool long_list = false;       // people see the first `--top` rows
  const char* when_empty = "";  // what people see instead of a table without rows
  bool brief = false;           // an extract: it does not say which columns it has no room for
  // Of a table for programs that is too long to be held: hands out one row after another, and
  // `rows` is empty. What it is made of must outlive it.
  std::function<void(const std::function<void(const TableRow&)>&)> each = {};

  std::optional<size_t> place_of(std::string_view column) const {
    for (size_t i = 0; i < columns.size(); ++i)
      if (columns[i].key == column) return i;
    return std::nullopt;
  }
  template <typename Visit>
  void for_each_row(Visit&& visit) const {
    for (const TableRow& row : rows) visit(row);
    if (each) each(visit);
  }
};

// Lines above, figures, the table, lines below. A section without any of them is left out.
struct Section {
  std::string title;  // may be empty: the report's head
  std::vector<Line> above;
  std::optional<Table> table;
  std::vector<Line> below;
  const char* key = "";  // of all sections of a report unique, and for good: "kernels"
  std::vector<ShownFigure> figures = {};

  bool empty() const { return above.empty() && figures.empty() && !table && below.empty(); }
};

}  // namespace flopinj::reduce
