#include "writers/sql/sqlite_writer.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "writers/sql/database.h"

namespace flopinj::reduce {

// Written as one piece, to a pipe as well as to a file.
void write_sqlite(std::ostream& out, std::span<const Table> tables, std::string_view about) {
  Database database(tables);
  database.run("CREATE TABLE about (made_by TEXT)");
  {
    Statement insert(database, "INSERT INTO about VALUES (?)");
    insert.text(std::string(about));
    insert.run();
  }
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> bytes(
      sqlite3_serialize(database.handle(), "main", &size, 0), sqlite3_free);
  if (!bytes) throw std::runtime_error("the database cannot be made: out of memory");
  out.write(reinterpret_cast<const char*>(bytes.get()), size);
}

}  // namespace flopinj::reduce
