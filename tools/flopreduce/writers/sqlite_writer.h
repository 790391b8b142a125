// Tables as an SQLite database.
#pragma once
#include <ostream>
#include <span>
#include <string_view>

#include "sections/parts/table.h"

namespace flopinj::reduce {

// One SQL table for each table, named by its key, with the columns of its CSV form. Integers up to
// 2^63 - 1 are INTEGER, larger ones decimal TEXT; other numbers are REAL; what is not known is
// NULL. `about` becomes the one row of table "about". Throws std::runtime_error.
void write_sqlite(std::ostream& out, std::span<const Table> tables, std::string_view about);

}  // namespace flopinj::reduce
