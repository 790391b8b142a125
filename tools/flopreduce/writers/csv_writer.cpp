#include <string>
#include <string_view>
#include <utility>

#include "support/text.h"
#include "writers/cell_text.h"
#include "writers/writers.h"

namespace flopinj::reduce {
namespace {

constexpr std::string_view kFormulaStarts = "=+-@'\t\r\n";

std::string quoted(const std::string& text) {
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out.append(c == '"' ? 2 : 1, c);
  return out + '"';
}

// The raw text decides: a tab is no longer one when it is printable, but is guarded all the same.
std::string text_field(const std::string& raw) {
  const bool guarded = !raw.empty() && kFormulaStarts.find(raw[0]) != std::string_view::npos;
  return quoted((guarded ? "'" : "") + printable(raw));
}

}  // namespace

void write_csv(std::ostream& out, const Table& table) {
  const char* before = "";
  const auto field = [&](const std::string& text) { out << std::exchange(before, ",") << text; };
  const auto end_line = [&] {
    out << "\r\n";
    before = "";
  };
  // Of a query keys are whatever the user wrote.
  for (const auto& [key, kind] : flat_columns(table)) field(text_field(key));
  end_line();
  table.for_each_row([&](const TableRow& row) {
    for_each_flat_cell(table, row, [&](const Cell& cell) {
      const auto* text = std::get_if<std::string>(&cell.value);
      field(text != nullptr ? text_field(*text) : exact(cell));
    });
    end_line();
  });
}

}  // namespace flopinj::reduce
