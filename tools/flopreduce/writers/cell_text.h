// How a cell looks to a person, and what it holds exactly.
#pragma once
#include <string>

#include "sections/parts/table.h"

namespace flopinj::reduce {

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
Mark exact_marks(const Table& table, const std::vector<Cell>& row, size_t c);

}  // namespace flopinj::reduce
