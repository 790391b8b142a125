// Tables that are plain groups of launches: what launches of one kernel, layer, phase, ... did. One
// is a line of the list in launch_tables.cpp, and every form, gates, the schema and `flopreduce
// tables` have it from there.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "report/work_rows.h"
#include "sections/parts/by_precision.h"
#include "sections/parts/columns.h"

namespace flopinj::reduce {

// A row of such a table.
struct LaunchRow {
  const WorkKeys& keys;
  WorkGroup group;
  std::optional<OneFormat> format;  // of WorkKey::kFormat

  // Of a key that the table has.
  uint32_t id(WorkKey key) const;
};

// Columns that belong together.
using LaunchColumns = void (*)(Columns<LaunchRow>&);

struct LaunchTable {
  const char *key, *about;
  WorkKeys by;  // their names are the first columns; of kFormat FLOP and OP are the last ones
  std::array<LaunchColumns, 8> columns = {};
  const char* title = "";       // of its section for people; empty: for programs only
  const char* when_empty = "";  // TableSource::when_empty()
  bool long_list = false;       // TableSource::long_list()
  bool every = false;           // of one key, also of what has no launch
  bool held = true;             // TableSource::not_held()
};

// Column sets.
namespace launches {
void flop(Columns<LaunchRow>&);
void share(Columns<LaunchRow>&);  // of the run's FLOP
void count(Columns<LaunchRow>&);
void gpu_time(Columns<LaunchRow>&);
void rates(Columns<LaunchRow>&);    // FLOP/s, share of peak and of roof
void details(Columns<LaunchRow>&);  // how far the figures are known
}  // namespace launches

TableSource source_of(const LaunchTable& table);

// Those of the list.
std::vector<const TableSource*> launch_tables();
const TableSource& launch_table(std::string_view key);

}  // namespace flopinj::reduce
