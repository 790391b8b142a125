#include <algorithm>
#include <string>
#include <string_view>

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

bool is_plain(char c) { return c >= ' ' && c <= '~' && c != '"' && c != ','; }

// The raw text decides: a tab is no longer one when it is printable, but is guarded all the same.
std::string text_field(const std::string& raw) {
  const bool guarded = !raw.empty() && kFormulaStarts.find(raw[0]) != std::string_view::npos;
  return quoted((guarded ? "'" : "") + printable(raw));
}

}  // namespace

void write_csv(std::ostream& out, const Table& table) {
  std::string line;
  const auto field = [&](const std::string& text) { line.append(text).push_back(','); };
  const auto text = [&](const std::string& raw) {
    const bool simple = !raw.empty() && std::ranges::all_of(raw, is_plain) &&
                        kFormulaStarts.find(raw[0]) == std::string_view::npos;
    field(simple ? raw : text_field(raw));
  };
  const auto end_line = [&] {
    line.pop_back();
    out << line.append("\r\n");
    line.clear();
  };
  // Of a query keys are whatever the user wrote.
  for (const auto& [key, kind] : flat_columns(table)) text(key);
  end_line();
  table.for_each_row([&](const TableRow& row) {
    for_each_flat_cell(
        table, row,
        [&](const Cell& cell) {
          const auto* words = std::get_if<std::string>(&cell.value);
          words != nullptr ? text(*words) : field(exact(cell));
        },
        field);
    end_line();
  });
}

}  // namespace flopinj::reduce
