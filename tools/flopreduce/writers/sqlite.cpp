#include "writers/sqlite.h"

#include <sqlite3.h>

#include <memory>
#include <set>

#include "support/text.h"
#include "writers/cell_text.h"

namespace flopinj::reduce {
namespace {

// In memory.
class Database {
 public:
  Database() { check(sqlite3_open(":memory:", &handle_)); }
  ~Database() { sqlite3_close(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void check(int code) const {
    if (code != SQLITE_OK && code != SQLITE_DONE)
      throw std::runtime_error(std::string("the database cannot be made: ") +
                               sqlite3_errmsg(handle_));
  }
  void run(const std::string& sql) {
    check(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr));
  }
  sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

[[noreturn]] void fail(const Database& database, int code) {
  throw SqlError(code == SQLITE_AUTH ? "only SELECT is allowed: a trace is never changed"
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

// An INSERT, run once for each row.
class Insert {
 public:
  Insert(const Database& database, const std::string& sql)
      : database_(database), statement_(prepare(database, sql)), handle_(statement_.get()) {}

  void text(const std::string& value) {
    database_.check(sqlite3_bind_text64(handle_, ++bound_, value.data(), value.size(),
                                        SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  void cell(const Cell& cell) {
    if (const auto* words = std::get_if<std::string>(&cell.value)) return text(printable(*words));
    const auto* whole = std::get_if<u128>(&cell.value);
    if (whole != nullptr && *whole > INT64_MAX) return text(to_decimal(*whole));
    if (whole != nullptr)
      database_.check(sqlite3_bind_int64(handle_, ++bound_, static_cast<int64_t>(*whole)));
    else if (const auto* real = std::get_if<double>(&cell.value))
      database_.check(sqlite3_bind_double(handle_, ++bound_, *real));
    else
      database_.check(sqlite3_bind_null(handle_, ++bound_));
  }
  void run() {
    database_.check(sqlite3_step(handle_));
    database_.check(sqlite3_reset(handle_));
    bound_ = 0;
  }

 private:
  const Database& database_;
  const Prepared statement_;
  sqlite3_stmt* const handle_;
  int bound_ = 0;
};

// Keys of tables and columns are ours: no name from a trace is ever part of a statement.
void add_table(Database& database, const Table& table) {
  std::string columns, values;
  for (const auto& [key, kind] : flat_columns(table)) {
    // Columns of numbers have no type: SQLite would round decimal texts in a column of integers.
    columns += (columns.empty() ? "\"" : ", \"") + key + (kind == Kind::kText ? "\" TEXT" : "\"");
    values += values.empty() ? "?" : ", ?";
  }
  const std::string name = '"' + std::string(table.key) + '"';
  database.run("CREATE TABLE " + name + " (" + columns + ")");
  Insert insert(database, "INSERT INTO " + name + " VALUES (" + values + ")");
  table.for_each_row([&](const TableRow& row) {
    for_each_flat_cell(
        table, row, [&](const Cell& cell) { insert.cell(cell); },
        [&](const std::string& marks) { insert.text(marks); });
    insert.run();
  });
}

void add_tables(Database& database, std::span<const Table> tables) {
  database.run("BEGIN");
  for (const Table& table : tables) add_table(database, table);
  database.run("COMMIT");
}

// Functions that SQLite itself calls innocuous, and those of JSON, which it forgets to: they only
// compute. Others load code, or show and change this process's memory, as fts3_tokenizer does.
using Functions = std::set<std::string, std::less<>>;

Functions innocuous_functions(Database& database) {
  Functions names;
  const Prepared list = prepare(database,
                                "SELECT name FROM pragma_function_list WHERE name GLOB 'json*' OR "
                                "name GLOB '->*' OR flags & " +
                                    std::to_string(SQLITE_INNOCUOUS));
  while (sqlite3_step(list.get()) == SQLITE_ROW)
    names.insert(reinterpret_cast<const char*>(sqlite3_column_text(list.get(), 0)));
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

// Written as one piece, to a pipe as well as to a file.
void write_sqlite(std::ostream& out, std::span<const Table> tables, std::string_view about) {
  Database database;
  add_tables(database, tables);
  database.run("CREATE TABLE about (made_by TEXT)");
  {
    Insert insert(database, "INSERT INTO about VALUES (?)");
    insert.cell(std::string(about));
    insert.run();
  }
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> bytes(
      sqlite3_serialize(database.handle(), "main", &size, 0), sqlite3_free);
  if (!bytes) throw std::runtime_error("the database cannot be made: out of memory");
  out.write(reinterpret_cast<const char*>(bytes.get()), size);
}

QueryResult query(std::span<const Table> tables, const std::string& sql) {
  Database database;
  add_tables(database, tables);
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
