#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
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

std::string text_of(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// Whether it reads the same between quotation marks.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

// One row as a line of text. A table may have very many: no object is made of a row, nor of what
// nearly all of its values are.
class RowText {
 public:
  RowText(const Table& table, const TableRow& cells) {
    text_.reserve(32 * cells.size());
    for (size_t c = 0; c < cells.size(); ++c)
      if (table.columns[c].kind != Kind::kExactFlop) add_cell(table.columns[c], cells[c]);
    text_ += text_.empty() ? "{}" : "}";
  }
  const std::string& text() const { return text_; }

 private:
  void add_key(std::string_view key, std::string_view of_key, std::string_view of_that = {}) {
    text_ += text_.empty() ? '{' : ',';
    text_ += '"';
    text_ += key;
    text_.append(of_key).append(of_that) += "\":";
  }

  void add_text(std::string_view text) {
    if (is_plain(text))
      text_.append(1, '"').append(text).append(1, '"');
    else
      text_ += text_of(text);
  }

  void add_number(const char* key, const char* of_key, Kind kind, const Cell& cell) {
    const auto* whole = std::get_if<u128>(&cell.value);
    add_key(key, of_key);
    if (const auto* real = std::get_if<double>(&cell.value))
      text_ += text_of(*real);
    else if (whole == nullptr)
      text_ += "null";
    else if (kind == Kind::kFlag)
      text_ += *whole != 0 ? "true" : "false";
    else if (*whole <= kMostWhole)
      add_whole(*whole);
    else if (has_exact_text(kind))
      text_ += text_of(static_cast<double>(*whole));
    else
      add_text(to_decimal(*whole));
    if (!has_exact_text(kind)) return;
    add_key(key, of_key, "_exact");
    if (whole == nullptr) {
      text_ += "null";
      return;
    }
    text_ += '"';
    add_whole(*whole);
    text_ += '"';
  }

  void add_whole(u128 value) {
    if (value > UINT64_MAX) {
      text_ += to_decimal(value);
      return;
    }
    std::array<char, 20> digits;
    const auto end = std::to_chars(digits.begin(), digits.end(), static_cast<uint64_t>(value)).ptr;
    text_.append(digits.begin(), end);
  }

  void add_cell(const Column& column, const Cell& cell) {
    const char* key = column.key;
    if (const auto* text = std::get_if<std::string>(&cell.value)) {
      add_key(key, "");
      return add_text(printable(*text));
    }
    const bool lower = has(cell.marks, Mark::kAtLeast) || has(cell.marks, Mark::kMoreThan);
    const bool upper = has(cell.marks, Mark::kAtMost);
    if (!lower && !upper) {
      add_number(key, "", column.kind, cell);
      if (cell.empty() && cell.absent != "-") {
        add_key(key, "_why");
        add_text(cell.absent);
      }
    } else {
      add_number(key, "", column.kind, Cell::none());
      if (cell.least)
        add_number(key, "_at_least", column.kind, Figure::exact(*cell.least));
      else if (!upper)
        add_number(key, "_at_least", column.kind, cell);
      if (cell.most)
        add_number(key, "_at_most", column.kind, Figure::exact(*cell.most));
      else if (!lower)
        add_number(key, "_at_most", column.kind, cell);
    }
    if (has(cell.marks, Mark::kEstimate)) {
      add_key(key, "_estimated");
      text_ += "true";
    }
  }

  std::string text_;
};

// A list with a line for each row; `margin`: of the line that it begins on.
void write_rows(std::ostream& out, const Table& table, const std::string& margin) {
  const char* before = "[";
  table.for_each_row([&](const TableRow& row) {
    out << std::exchange(before, ",") << '\n' << margin << "  " << RowText(table, row).text();
  });
  if (*before == '[')
    out << "[]";
  else
    out << '\n' << margin << ']';
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

void write_json(std::ostream& out, std::span<const Table> tables) {
  out << "{\n  \"schema_version\": " << kSchemaVersion;
  for (const Table& table : tables) {
    out << ",\n  \"" << table.key << "\": ";
    bool one = false;
    if (table.key == kOneRow)
      table.for_each_row([&](const TableRow& row) {
        if (!std::exchange(one, true)) out << RowText(table, row).text();
      });
    if (!one) write_rows(out, table, "  ");
  }
  out << "\n}\n";
}

void write_json_rows(std::ostream& out, const Table& table) {
  write_rows(out, table, "");
  out << '\n';
}

void write_schema(std::ostream& out) {
  Json schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "flopinj report --format json"},
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
  const char* before = "{";
  for (const auto& [key, value] : schema.items())
    out << std::exchange(before, ",") << "\n  " << Json(key) << ": " << text_of(value);
  out << "\n}\n";
}

}  // namespace flopinj::reduce
