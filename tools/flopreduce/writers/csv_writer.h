// A table as CSV (RFC 4180), for programs and spreadsheets.
#pragma once
#include <ostream>

#include "sections/parts/table.h"

namespace flopinj::reduce {

// A header of the columns' keys, then the rows; lines end in CR LF. Numbers are exact, in the unit
// of their key; what is not known is empty. Every column of numbers but those of plain counts has a
// column KEY_mark after it: ">=", "<=", "~" or nothing. Columns of kind kExactFlop are left out:
// they repeat another.
//
// Texts are printable() UTF-8. One that a spreadsheet would take for a formula (it starts with one
// of = + - @ ' or a tab, CR or LF) gets a ' in front; what follows the ' is the text.
void write_csv(std::ostream& out, const Table& table);

}  // namespace flopinj::reduce
