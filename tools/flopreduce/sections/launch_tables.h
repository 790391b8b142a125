// Tables that are groups of launches: what launches of one kernel, layer, phase, ... did. One is a
// line of the list in launch_tables.cpp, and every form, gates, the schema and `flopreduce tables`
// have it from there.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sections/launch_columns.h"

namespace flopinj::reduce {

struct LaunchTable {
  const char *key, *about;
  WorkKeys by = {};
  // Without flop and operations here, those of a table by kFormat are the last.
  std::array<LaunchColumns, 24> columns = {};
  const char* title = "";       // of its section for people; empty: for programs only
  const char* when_empty = "";  // TableSource::when_empty()
  bool long_list = false;       // TableSource::long_list()
  bool every = false;           // of one key, also of what has no launch
  bool held = true;             // TableSource::not_held()
  uint8_t named = kMostKeys;    // so many keys' names are the first columns
  std::array<std::optional<WorkKeys>, 2> also = {};  // groups behind these; their names are in none
  bool (*only)(const LaunchRow&, const Report&) = nullptr;  // rows that are in it; null: all
  // Null: that of the ids. It may leave rows out, too.
  void (*order)(std::vector<LaunchRow>&, const Report&) = nullptr;
};

TableSource source_of(const LaunchTable& table);

// Those of the list.
std::vector<const TableSource*> launch_tables();
const TableSource& launch_table(std::string_view key);

}  // namespace flopinj::reduce
