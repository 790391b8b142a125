// What a command answers, in the forms that tables and JSON have: text, JSON, CSV, Markdown, HTML.
#pragma once
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "commands/arguments/arguments.h"
#include "sections/parts/table.h"

namespace flopinj::reduce {

struct Result {
  std::vector<Section> sections;                 // for people
  std::function<nlohmann::ordered_json()> json;  // where it is more than the tables
  std::vector<Table> tables = {};                // for CSV and JSON; empty: those of the sections
  std::string title = "FLOP";                    // of the HTML page
};
std::vector<std::string> result_forms();
// Writes where `output` says. The exit code; errors were said on standard error.
int write_result(const Result& result, const OutputArguments& output);

// The table that --table names, or the only one; into a folder all of them. The exit code.
// Null where there is none of that key: then standard error says which there are.
const Table* table_named(const std::vector<Table>& tables, const std::string& key);
int write_tables(const std::vector<Table>& tables, const OutputArguments& output);
bool is_folder(const std::string& path);

}  // namespace flopinj::reduce
