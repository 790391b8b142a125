#include "writers/csv_writer.h"

#include <string>
#include <string_view>

#include "sections/parts/cells.h"
#include "support/text.h"
#include "writers/cell_text.h"

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

class CsvRow {
 public:
  explicit CsvRow(std::ostream& out) : out_(out) {}
  void field(const std::string& text) {
    if (!first_) out_ << ',';
    first_ = false;
    out_ << text;
  }
  ~CsvRow() { out_ << "\r\n"; }
  CsvRow(const CsvRow&) = delete;
  CsvRow& operator=(const CsvRow&) = delete;

 private:
  std::ostream& out_;
  bool first_ = true;
};

}  // namespace

void write_csv(std::ostream& out, const Table& table) {
  {
    CsvRow header(out);
    for (const Column& column : table.columns) {
      if (column.kind == Kind::kExactFlop) continue;
      header.field(text_field(column.key));  // of a query they are whatever the user wrote
      if (can_be_marked(column)) header.field(std::string(column.key) + "_mark");
    }
  }
  table.for_each_row([&](const TableRow& cells) {
    CsvRow row(out);
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (table.columns[c].kind == Kind::kExactFlop) continue;
      const auto* text = std::get_if<std::string>(&cells[c].value);
      row.field(text != nullptr ? text_field(*text) : exact(cells[c]));
      if (can_be_marked(table.columns[c])) row.field(marks_text(exact_marks(table, cells, c)));
    }
  });
}

}  // namespace flopinj::reduce
