#include "commands/result.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/arguments/command.h"
#include "commands/arguments/output_file.h"
#include "support/text.h"
#include "writers/csv_writer.h"
#include "writers/html/html_writer.h"
#include "writers/json_writer.h"
#include "writers/markdown_writer.h"
#include "writers/text_writer.h"

namespace flopinj::reduce {
namespace {

// Every table as a file of its own.
int write_folder(const std::vector<Table>& tables, const OutputArguments& output) {
  std::error_code error;
  std::filesystem::create_directories(output.file, error);
  if (error) {
    complain(printable(output.file) + ": cannot be made: " + error.message());
    return error == std::errc::permission_denied ? kExitPermission : kExitUsage;
  }
  const auto of_table = [&](const Table& table) {
    OutputArguments one = output;
    one.file = std::filesystem::path(output.file) / (std::string(table.key) + ".csv");
    return one;
  };
  // All or none.
  for (const Table& table : tables) refuse_to_overwrite(of_table(table));
  for (const Table& table : tables) {
    const OutputArguments one = of_table(table);
    const int code = write_output(one, [&](std::ostream& out) { write_csv(out, table); });
    if (code != kExitFine) return code;
  }
  return kExitFine;
}

std::vector<Table> tables_of(const std::vector<Section>& sections) {
  std::vector<Table> tables;
  for (const Section& section : sections)
    if (section.table) tables.push_back(*section.table);
  return tables;
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return path.ends_with('/') || std::filesystem::is_directory(path, ignored);
}

const Table* table_named(const std::vector<Table>& tables, const std::string& key) {
  const auto found = std::ranges::find(tables, key, &Table::key);
  if (found != tables.end()) return &*found;
  std::string keys;
  for (const Table& table : tables) keys += (keys.empty() ? "" : ", ") + std::string(table.key);
  complain(key.empty()
               ? "CSV holds one table: choose one with --table (" + keys +
                     "), or give a folder for all of them: -o FOLDER/"
               : "--table " + printable(key) + ": this report has no such table; it has " + keys);
  return nullptr;
}

int write_tables(const std::vector<Table>& tables, const OutputArguments& output) {
  if (output.table.empty() && is_folder(output.file)) return write_folder(tables, output);
  const Table* const table = output.table.empty() && tables.size() == 1
                                 ? tables.data()
                                 : table_named(tables, output.table);
  if (table == nullptr) return kExitUsage;
  return write_output(output, [&](std::ostream& out) { write_csv(out, *table); });
}

std::vector<std::string> result_forms() { return {"text", "json", "csv", "markdown", "html"}; }

int write_result(const Result& result, const OutputArguments& output) {
  if (output.format != "csv" && !output.table.empty()) {
    complain("--table is for --format csv only");
    return kExitUsage;
  }
  const auto tables = result.tables.empty() ? tables_of(result.sections) : result.tables;
  if (output.format == "csv") return write_tables(tables, output);
  return write_output(output, [&](std::ostream& out) {
    if (output.format == "json")
      write_json(out, result.json ? result.json() : tables_json(tables));
    else if (output.format == "markdown")
      write_markdown(out, result.sections, output.top);
    else if (output.format == "html")
      write_html(out, result.title, result.sections, kProgram);
    else
      write_text(out, result.sections, output.text_options());
  });
}

}  // namespace flopinj::reduce
