// Tables as an SQLite database: as a file, and for one SELECT.
#pragma once
#include <deque>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "sections/parts/table.h"

namespace flopinj::reduce {

// One SQL table for each table, named by its key, with the columns of its CSV form. Integers up to
// 2^63 - 1 are INTEGER, larger ones decimal TEXT; other numbers are REAL; unknown
// ones are NULL. Throws std::runtime_error where SQLite fails.

// `about` becomes the one row of table "about".
void write_sqlite(std::ostream& out, std::span<const Table> tables, std::string_view about);

struct QueryResult {
  std::deque<std::string> names;  // that the table's columns are called by
  Table table;
};
// What is wrong with the statement, in SQLite's words.
class SqlError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// Nothing but reading is allowed: no file is opened, attached or written.
QueryResult query(std::span<const Table> tables, const std::string& sql);

}  // namespace flopinj::reduce
