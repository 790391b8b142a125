// One SELECT on a report's tables.
#pragma once
#include <deque>
#include <span>
#include <stdexcept>
#include <string>

#include "sections/parts/table.h"

namespace flopinj::reduce {

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
