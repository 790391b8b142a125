// Tables as an SQLite database in memory.
#pragma once
#include <sqlite3.h>

#include <span>
#include <string>

#include "sections/parts/table.h"

namespace flopinj::reduce {

// Throws std::runtime_error where SQLite fails.
class Database {
 public:
  // One SQL table for each table, named by its key, with the columns of its CSV form. Integers up
  // to 2^63 - 1 are INTEGER, larger ones decimal TEXT; other numbers are REAL; what is not known is
  // NULL.
  explicit Database(std::span<const Table> tables);
  ~Database() { sqlite3_close(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql);
  void check(int code) const;
  sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

class Statement {
 public:
  Statement(Database& database, const std::string& sql);
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  void text(const std::string& value);
  void integer(u128 value);
  void real(double value) { database_.check(sqlite3_bind_double(handle_, ++bound_, value)); }
  void nothing() { database_.check(sqlite3_bind_null(handle_, ++bound_)); }
  void run();
  // The next row of an answer; false after the last.
  bool step();
  std::string text_of(int column) const;

 private:
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
  int bound_ = 0;
};

}  // namespace flopinj::reduce
