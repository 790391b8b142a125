// flopreduce tables [KEY...]: the tables of a report, or the columns of some of them.
#include <algorithm>
#include <memory>

#include "commands/forms.h"
#include "reader/input.h"
#include "sections/sections.h"
#include "support/program_name.h"
#include "support/text.h"
#include "writers/cell_text.h"

namespace flopinj::reduce {
namespace {

using Sources = std::vector<const TableSource*>;
struct ColumnRow {
  const TableSource* table;
  Column column;
};

std::vector<ColumnRow> columns_of(const Sources& tables) {
  std::vector<ColumnRow> rows;
  for (const TableSource* table : tables)
    for (const Column& column : table->columns())
      if (column.kind != Kind::kExactFlop) rows.push_back({table, column});
  return rows;
}

std::vector<std::string> table_keys() {
  std::vector<std::string> keys;
  for (const TableSource* table : table_sources()) keys.emplace_back(table->key());
  return keys;
}

const char* meaning_of(const ColumnRow& row) {
  return *row.column.meaning != '\0' ? row.column.meaning : row.column.heading;
}

Columns<const TableSource*> table_columns() {
  Columns<const TableSource*> c;
  c.text("table", "table", &TableSource::key);
  c.text("about", "about", &TableSource::about, "what its rows are");
  return c;
}

Columns<ColumnRow> column_columns() {
  Columns<ColumnRow> c;
  c.text("table", "table", through(&ColumnRow::table, &TableSource::key));
  c.text("column", "column", through(&ColumnRow::column, &Column::key));
  c.text("unit", "unit", [](const ColumnRow& row) {
    const char* unit = words_of(row.column.kind).unit;
    return unit != nullptr ? std::optional<std::string>(unit) : std::nullopt;
  });
  c.text("meaning", "meaning", meaning_of);
  return c;
}

std::vector<Table> for_programs(const Sources& tables) {
  const auto listed = [&tables](const Report&) -> const auto& { return tables; };
  const auto columns = [&tables](const Report&) { return columns_of(tables); };
  return {TableSource("tables", "tables of a report", table_columns, listed).for_programs({}),
          TableSource("columns", "their columns", column_columns, columns).for_programs({})};
}

// People read sentences, which a table would cut.
Section list_of(const Sources& tables) {
  Section list{"Tables of a report", {}, {}, {"  Columns of one: " + typed("tables KEY")}};
  for (const TableSource* table : tables)
    list.above.push_back(
        Line("  ").then(table->key(), Tone::kTitle).then(": ").then(table->about()));
  return list;
}
Section columns_of(const TableSource* table) {
  Section columns{std::string(table->key()) + ": " + table->about(), {}, {}, {}};
  for (const ColumnRow& row : columns_of(Sources{table})) {
    columns.above.push_back(Line("  ").then(row.column.key, Tone::kTitle));
    const char* unit = words_of(row.column.kind).unit;
    columns.above.back().then((unit != nullptr ? std::string(" (") + unit + "): " : ": ") +
                              meaning_of(row));
  }
  return columns;
}

Action define_tables(manual::CommandLine& app) {
  app.examples = {{typed("tables"), "all tables"}, {typed("tables kernels"), "the columns of one"}};
  struct Arguments {
    std::vector<std::string> keys;
    OutputArguments output;
  };
  const auto a = std::make_shared<Arguments>();
  app.add_option("KEY", a->keys, "A table's key; without any, all tables");
  a->output.add_to(app, result_forms());
  return [a] {
    a->output.finish({});
    Sources tables;
    for (const TableSource* table : table_sources())
      if (a->keys.empty() || std::ranges::count(a->keys, table->key()) > 0) tables.push_back(table);
    for (const std::string& key : a->keys)
      if (std::ranges::none_of(tables, [&](const auto* table) { return key == table->key(); }))
        throw Failure("no table '" + printable(cut(key, 100)) + "'" +
                      manual::did_you_mean(key, table_keys()) +
                      (is_trace_name(key) ? ": it takes names of tables, and no trace" : "") +
                      "; " + typed("tables") + " lists all");
    std::vector<Section> sections;
    if (a->keys.empty())
      sections = {list_of(tables)};
    else
      for (const TableSource* table : tables) sections.push_back(columns_of(table));
    return write_result({sections, for_programs(tables)}, a->output);
  };
}

}  // namespace

const ProgramCommand kTables(
    {reducer_command("tables"),
     "Lists the tables that a report has in CSV, JSON and SQLite, for the command query and for "
     "gates; with KEYs, their columns with units and meanings.",
     define_tables});

}  // namespace flopinj::reduce
