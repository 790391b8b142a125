#include "writers/sql/sql_query.h"

#include <memory>
#include <set>
#include <string_view>

#include "writers/sql/database.h"

namespace flopinj::reduce {
namespace {

// Functions that SQLite itself calls innocuous, and those of JSON, which it forgets to: they only
// compute. Others load code, or show and change this process's memory, as fts3_tokenizer does.
using Functions = std::set<std::string, std::less<>>;

Functions innocuous_functions(Database& database) {
  Functions names;
  Statement list(database,
                 "SELECT name FROM pragma_function_list WHERE name GLOB 'json*' "
                 "OR name GLOB '->*' OR flags & " +
                     std::to_string(SQLITE_INNOCUOUS));
  while (list.step()) names.insert(list.text_of(0));
  return names;
}

int only_reading(void* functions, int action, const char*, const char* what, const char*,
                 const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      return static_cast<const Functions*>(functions)->contains(std::string_view(what))
                 ? SQLITE_OK
                 : SQLITE_DENY;
    default:
      return SQLITE_DENY;
  }
}

[[noreturn]] void fail(const Database& database, int code) {
  throw SqlError(code == SQLITE_AUTH ? "only SELECT is allowed"
                                     : sqlite3_errmsg(database.handle()));
}

using Prepared = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

Prepared prepare(const Database& database, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const char* rest = nullptr;
  const int code = sqlite3_prepare_v2(database.handle(), sql.c_str(),
                                      static_cast<int>(sql.size()) + 1, &statement, &rest);
  Prepared prepared(statement, sqlite3_finalize);
  if (code != SQLITE_OK) fail(database, code);
  if (!prepared) throw SqlError("there is no statement in it");
  if (std::string_view(rest).find_first_not_of("; \t\r\n") != std::string_view::npos)
    throw SqlError("one statement at a time, please");
  return prepared;
}

Cell cell_of(sqlite3_stmt* row, int column) {
  switch (sqlite3_column_type(row, column)) {
    case SQLITE_NULL:
      return Cell::none();
    case SQLITE_FLOAT:
      return Figure::exact(sqlite3_column_double(row, column));
    case SQLITE_INTEGER: {
      const sqlite3_int64 value = sqlite3_column_int64(row, column);
      if (value >= 0) return Figure::exact(static_cast<u128>(value));
      return Figure::exact(static_cast<double>(value));
    }
    default: {
      const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, column));
      const auto size = static_cast<size_t>(sqlite3_column_bytes(row, column));
      return std::string(bytes == nullptr ? "" : bytes, size);
    }
  }
}

}  // namespace

QueryResult query(std::span<const Table> tables, const std::string& sql) {
  Database database(tables);
  Functions functions = innocuous_functions(database);
  sqlite3_set_authorizer(database.handle(), only_reading, &functions);
  const Prepared statement = prepare(database, sql);
  QueryResult result;
  result.table.key = "query";
  result.table.when_empty = "no rows";
  const int columns = sqlite3_column_count(statement.get());
  for (int c = 0; c < columns; ++c) {
    const char* name = result.names.emplace_back(sqlite3_column_name(statement.get(), c)).c_str();
    result.table.columns.push_back({name, name});
  }
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement.get())) == SQLITE_ROW) {
    auto& row = result.table.rows.emplace_back();
    for (int c = 0; c < columns; ++c) row.push_back(cell_of(statement.get(), c));
  }
  if (code != SQLITE_DONE) fail(database, code);
  return result;
}

}  // namespace flopinj::reduce
