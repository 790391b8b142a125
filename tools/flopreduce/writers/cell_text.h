// How a cell looks to a person, and what it holds exactly.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sections/parts/cells.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

// Names of a kind and of its units, null where there is none.
struct KindWords {
  const char* key;    // for the HTML page
  const char* unit;   // for programs
  const char* human;  // with an SI prefix in front
};
const KindWords& words_of(Kind kind);

// "44.05 MFLOP", "1.064 ms", "37.1 %", with marks in front: ">= ", "<= ", "~ ", "> ". Texts are
// made fit for a terminal.
std::string human(const Cell& cell, Kind kind);

// The number only, in the unit of the column's key, without marks; texts as raw bytes; nothing
// where there is no value.
std::string exact(const Cell& cell);

// Columns of texts, plain counts and exact numbers have no marks.
constexpr bool can_be_marked(const Column& column) {
  return column.kind != Kind::kText && column.kind != Kind::kCount && column.kind != Kind::kFlag &&
         !column.exact;
}

// The marks of the cell in column c, and of its second look in the next column where it has one.
Mark exact_marks(const Table& table, const TableRow& row, size_t c);

// The columns of forms whose cells hold one value each, without second looks (Kind::kExactFlop): of
// each that can be marked the next one, KEY_mark, has its marks; of each that may be a range the
// one after that, KEY_at_most, has its upper end, where there is one.
std::vector<std::pair<std::string, Kind>> flat_columns(const Table& table);
// Calls visit(cell) for each of them, and marks(text).
template <typename Visit, typename Marks>
void for_each_flat_cell(const Table& table, const TableRow& row, Visit&& visit, Marks&& marks) {
  for (size_t c = 0; c < row.size(); ++c) {
    if (table.columns[c].kind == Kind::kExactFlop) continue;
    visit(row[c]);
    if (can_be_marked(table.columns[c])) marks(marks_text(exact_marks(table, row, c)));
    if (table.columns[c].range)
      visit(row[c].most ? Cell(Figure::exact(*row[c].most)) : Cell::none());
  }
}

}  // namespace flopinj::reduce
