// Tables as an SQLite database.
#pragma once
#include <ostream>
#include <span>
#include <string_view>

#include "sections/parts/table.h"

namespace flopinj::reduce {

// A file of the database (database.h). `about` becomes the one row of table "about". Throws
// std::runtime_error.
void write_sqlite(std::ostream& out, std::span<const Table> tables, std::string_view about);

}  // namespace flopinj::reduce
