#include <nlohmann/json.hpp>
#include <utility>

#include "sections/sections.h"
#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 3;
constexpr std::string_view kOneRow = "figures";

bool has_exact_text(Kind kind) { return kind == Kind::kFlop || kind == Kind::kOperations; }

// Many readers of JSON round larger integers.
constexpr u128 kMostWhole = u128{1} << 53;

Json number_json(Kind kind, const Cell& cell) {
  if (const auto* real = std::get_if<double>(&cell.value)) return *real;
  const auto* whole = std::get_if<u128>(&cell.value);
  if (whole == nullptr) return nullptr;
  if (kind == Kind::kFlag) return *whole != 0;
  if (*whole <= kMostWhole) return static_cast<uint64_t>(*whole);
  return has_exact_text(kind) ? Json(static_cast<double>(*whole)) : Json(to_decimal(*whole));
}

void add_number(Json& row, const std::string& key, Kind kind, const Cell& cell) {
  row[key] = number_json(kind, cell);
  if (!has_exact_text(kind)) return;
  const auto* whole = std::get_if<u128>(&cell.value);
  row[key + "_exact"] = whole != nullptr ? Json(to_decimal(*whole)) : Json(nullptr);
}

void add_cell(Json& row, const Column& column, const Cell& cell) {
  const std::string key = column.key;
  if (const auto* text = std::get_if<std::string>(&cell.value)) {
    row[key] = printable(*text);
    return;
  }
  const bool lower = has(cell.marks, Mark::kAtLeast) || has(cell.marks, Mark::kMoreThan);
  const bool upper = has(cell.marks, Mark::kAtMost);
  const auto say_estimated = [&] {
    if (has(cell.marks, Mark::kEstimate)) row[key + "_estimated"] = true;
  };
  if (!lower && !upper) {
    add_number(row, key, column.kind, cell);
    if (cell.empty() && cell.absent != "-") row[key + "_why"] = cell.absent;
    return say_estimated();
  }
  add_number(row, key, column.kind, Cell::none());
  if (cell.least)
    add_number(row, key + "_at_least", column.kind, Figure::exact(*cell.least));
  else if (!upper)
    add_number(row, key + "_at_least", column.kind, cell);
  if (!lower) add_number(row, key + "_at_most", column.kind, cell);
  say_estimated();
}

Json row_json(const Table& table, const TableRow& cells) {
  Json row = Json::object();
  for (size_t c = 0; c < cells.size(); ++c)
    if (table.columns[c].kind != Kind::kExactFlop) add_cell(row, table.columns[c], cells[c]);
  return row;
}

Json type_of(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return {{"type", {"string", "null"}}};
    case Kind::kFlag:
      return {{"type", {"boolean", "null"}}};
    case Kind::kCount:
    case Kind::kNanoseconds:
    case Kind::kBytes:
      return {{"type", {"number", "string", "null"}}, {"pattern", "^[1-9][0-9]{15,}$"}};
    default:
      return {{"type", {"number", "null"}}};
  }
}

void add_schema(Json& record, const std::string& key, Kind kind, const char* meaning,
                bool required) {
  Json type = type_of(kind);
  if (*meaning != '\0') type["description"] = meaning;
  if (const char* unit = words_of(kind).unit; unit != nullptr && required) type["unit"] = unit;
  record["properties"][key] = std::move(type);
  if (required) record["required"].push_back(key);
  if (!has_exact_text(kind)) return;
  record["properties"][key + "_exact"] = {{"type", {"string", "null"}},
                                          {"pattern", "^(0|[1-9][0-9]*)$"}};
  if (required) record["required"].push_back(key + "_exact");
}

Json record_schema(const std::vector<Column>& columns) {
  Json record{{"type", "object"}, {"additionalProperties", false}, {"required", Json::array()}};
  for (const Column& column : columns) {
    if (column.kind == Kind::kExactFlop) continue;
    const std::string key = column.key;
    add_schema(record, key, column.kind, column.meaning, true);
    add_schema(record, key + "_why", Kind::kText, "", false);
    if (!can_be_marked(column)) continue;
    for (const char* bound : {"_at_least", "_at_most"})
      add_schema(record, key + bound, column.kind, "", false);
    record["properties"][key + "_estimated"] = {{"const", true}};
  }
  return record;
}

}  // namespace

Json tables_json(std::span<const Table> tables) {
  Json json{{"schema_version", kSchemaVersion}};
  for (const Table& table : tables) {
    Json rows = Json::array();
    table.for_each_row([&](const TableRow& row) { rows.push_back(row_json(table, row)); });
    json[table.key] = table.key == kOneRow && !rows.empty() ? std::move(rows[0]) : std::move(rows);
  }
  return json;
}

void write_json(std::ostream& out, const Json& json) {
  const auto text = [](const Json& value) {
    return value.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  const auto write = [&](const Json& value, const std::string& margin) {
    if (!value.is_array() || value.empty()) {
      out << text(value);
      return;
    }
    const char* before = "[";
    for (const Json& row : value)
      out << std::exchange(before, ",") << '\n' << margin << "  " << text(row);
    out << '\n' << margin << ']';
  };
  if (json.is_object()) {
    const char* before = "{";
    for (const auto& [key, value] : json.items()) {
      out << std::exchange(before, ",") << "\n  " << Json(key) << ": ";
      write(value, "  ");
    }
    out << "\n}";
  } else {
    write(json, "");
  }
  out << '\n';
}

Json report_json(const Report& report) { return tables_json(report_tables(report)); }

Json report_schema() {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "flopreduce --format json"},
              {"description",
               "A list of rows for each table. A row has all columns of its table; what is not "
               "known is null, with the reason in KEY_why where there is one. Of a bound KEY is "
               "null, and KEY_at_least or KEY_at_most has it. KEY_estimated is there where it is "
               "an estimate. FLOP are numbers, with the exact integer as a text in KEY_exact, "
               "since many readers round integers from 2^53 on; larger counts, times and sizes are "
               "texts. Times are nanoseconds, sizes are bytes, shares are parts of 1."},
              {"type", "object"},
              {"additionalProperties", false},
              {"required", {"schema_version"}},
              {"properties", {{"schema_version", {{"const", kSchemaVersion}}}}}};
  for (const TableSource* table : table_sources()) {
    Json record = record_schema(table->columns());
    if (table->key() == kOneRow)
      record["description"] = table->about();
    else
      record = {{"type", "array"}, {"description", table->about()}, {"items", std::move(record)}};
    schema["properties"][table->key()] = std::move(record);
  }
  return schema;
}

}  // namespace flopinj::reduce
