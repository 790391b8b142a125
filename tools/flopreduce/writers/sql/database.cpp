#include "writers/sql/database.h"

#include <stdexcept>

#include "support/text.h"
#include "writers/cell_text.h"

namespace flopinj::reduce {

void Database::run(const std::string& sql) {
  check(sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr));
}

void Database::check(int code) const {
  if (code != SQLITE_OK && code != SQLITE_DONE)
    throw std::runtime_error(std::string("the database cannot be made: ") +
                             sqlite3_errmsg(handle_));
}

Statement::Statement(Database& database, const std::string& sql) : database_(database) {
  database.check(sqlite3_prepare_v2(database.handle(), sql.c_str(), -1, &handle_, nullptr));
}

void Statement::text(const std::string& value) {
  database_.check(sqlite3_bind_text64(handle_, ++bound_, value.data(), value.size(),
                                      SQLITE_TRANSIENT, SQLITE_UTF8));
}

void Statement::integer(u128 value) {
  if (value > INT64_MAX) return text(to_decimal(value));
  database_.check(sqlite3_bind_int64(handle_, ++bound_, static_cast<int64_t>(value)));
}

bool Statement::step() {
  const int code = sqlite3_step(handle_);
  if (code != SQLITE_ROW) database_.check(code);
  return code == SQLITE_ROW;
}

std::string Statement::text_of(int column) const {
  return reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
}

void Statement::run() {
  database_.check(sqlite3_step(handle_));
  database_.check(sqlite3_reset(handle_));
  bound_ = 0;
}

namespace {

void bind(Statement& insert, const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell.value))
    insert.text(printable(*text));
  else if (const auto* integer = std::get_if<u128>(&cell.value))
    insert.integer(*integer);
  else if (const auto* number = std::get_if<double>(&cell.value))
    insert.real(*number);
  else
    insert.nothing();
}

// Keys of tables and columns are ours: no name from a trace is ever part of a statement.
void add_table(Database& database, const Table& table) {
  std::string columns;
  std::string values;
  for (const Column& column : table.columns) {
    if (column.kind == Kind::kExactFlop) continue;
    const std::string key = column.key;
    // Columns of numbers have no type: SQLite would round decimal texts in a column of integers.
    columns += (columns.empty() ? "" : ", ") + ('"' + key + '"') +
               (column.kind == Kind::kText ? " TEXT" : "");
    values += values.empty() ? "?" : ", ?";
    if (!can_be_marked(column)) continue;
    columns += ", \"" + key + "_mark\" TEXT";
    values += ", ?";
  }
  const std::string name = '"' + std::string(table.key) + '"';
  database.run("CREATE TABLE " + name + " (" + columns + ")");
  Statement insert(database, "INSERT INTO " + name + " VALUES (" + values + ")");
  table.for_each_row([&](const TableRow& row) {
    for (size_t c = 0; c < row.size(); ++c) {
      if (table.columns[c].kind == Kind::kExactFlop) continue;
      bind(insert, row[c]);
      if (can_be_marked(table.columns[c])) insert.text(marks_text(exact_marks(table, row, c)));
    }
    insert.run();
  });
}

}  // namespace

Database::Database(std::span<const Table> tables) {
  check(sqlite3_open(":memory:", &handle_));
  run("BEGIN");
  for (const Table& table : tables) add_table(*this, table);
  run("COMMIT");
}

}  // namespace flopinj::reduce
