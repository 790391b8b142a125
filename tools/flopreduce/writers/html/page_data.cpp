#include "writers/html/page_data.h"

#include <array>

#include "sections/parts/cells.h"
#include "sections/parts/short_name.h"
#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/html/html_page.h"

namespace flopinj::reduce {
namespace {

using Json = PageData::Json;

constexpr uint64_t kExactInDouble = uint64_t{1} << 53;

Json number_json(u128 value) {
  return value <= kExactInDouble ? Json(static_cast<uint64_t>(value)) : Json(to_decimal(value));
}

Json column_json(const Column& column) {
  Json j{{"key", column.key}, {"heading", column.heading}, {"kind", words_of(column.kind).key}};
  if (*column.meaning != '\0') j["meaning"] = column.meaning;
  return j;
}

}  // namespace

size_t PageData::number_of(std::string_view raw) {
  const auto [entry, fresh] = numbers_.try_emplace(std::string(raw), texts_.size());
  if (fresh) texts_.push_back(printable(raw));
  return entry->second;
}

Json PageData::text(std::string_view raw) { return number_of(raw); }

Json PageData::kernel(std::string_view raw) {
  const size_t number = number_of(raw);
  Json& text = texts_[number];
  if (!text.is_string()) return number;
  // Where in the name the short one begins and ends. Nothing where it is no part of it.
  const std::string whole = text, brief = printable(short_kernel_name(raw));
  const size_t begin = whole.find(brief);
  if (brief != whole && begin != whole.npos) text = {whole, begin, begin + brief.size()};
  return number;
}

// As described in writers/html/format.js.
Json PageData::cell(const Cell& cell, Mark marks, bool is_kernel) {
  if (cell.empty()) return cell.absent == "-" ? Json(nullptr) : Json{{"absent", cell.absent}};
  if (const auto* raw = std::get_if<std::string>(&cell.value))
    return {{"t", is_kernel ? kernel(*raw) : text(*raw)}};
  const auto* integer = std::get_if<u128>(&cell.value);
  Json number = integer != nullptr ? number_json(*integer) : Json(std::get<double>(cell.value));
  if (marks == Mark::kNone && number.is_number()) return number;
  Json j{{"n", std::move(number)}};
  if (marks != Mark::kNone) j["m"] = marks_text(marks);
  return j;
}

Json PageData::table(const Table& table) {
  Json j{{"key", table.key}, {"long_list", table.long_list}, {"when_empty", table.when_empty}};
  j["columns"] = Json::array();
  for (const Column& c : table.columns)
    if (c.kind != Kind::kExactFlop)  // each number shows its exact value when it is pointed at
      j["columns"].push_back(column_json(c));
  Json& rows = j["rows"] = Json::array();
  for (const auto& row : table.rows) {
    Json cells = Json::array();
    for (size_t c = 0; c < row.size(); ++c) {
      if (table.columns[c].kind == Kind::kExactFlop) continue;
      const std::string_view key = table.columns[c].key;
      Json value = cell(row[c], exact_marks(table, row, c),
                        key == "kernel" || table.key == std::string_view("compared_kernels"));
      // In a column of texts, a plain number is the number of a text.
      if (table.columns[c].kind == Kind::kText) {
        if (value.is_object() && value.contains("t"))
          value = value["t"];
        else if (value.is_number())
          value = {{"n", value}};
      }
      cells.push_back(std::move(value));
    }
    rows.push_back(std::move(cells));
  }
  return j;
}

Json PageData::lines(const std::vector<Line>& lines) {
  static constexpr std::array<const char*, 5> kTones = {"plain", "title", "warn", "bad", "dim"};
  Json list = Json::array();
  for (const Line& line : lines) {
    Json parts = Json::array();
    for (const auto& [text, tone] : line.parts)
      parts.push_back({printable(text), kTones[static_cast<size_t>(tone)]});
    list.push_back(std::move(parts));
  }
  return list;
}

Json PageData::section(const Section& section) {
  return {{"key", section.key},
          {"title", printable(section.title)},
          {"above", lines(section.above)},
          {"table", section.table ? table(*section.table) : Json(nullptr)},
          {"below", lines(section.below)}};
}

void PageData::write(std::ostream& out) && {
  data_["texts"] = std::move(texts_);
  out << kPageBeforeData;
  // ASCII only, and no "<": nothing in it can end the element that holds it.
  const std::string text = data_.dump(-1, ' ', true, Json::error_handler_t::replace);
  for (size_t from = 0; from < text.size();) {
    const size_t at = std::min(text.find('<', from), text.size());
    out.write(text.data() + from, static_cast<std::streamsize>(at - from));
    if (at < text.size()) out << "\\u003c";
    from = at + 1;
  }
  out << kPageAfterData;
}

}  // namespace flopinj::reduce
