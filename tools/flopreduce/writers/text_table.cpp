#include "writers/text_table.h"

#include <algorithm>

#include "support/text.h"
#include "writers/table_widths.h"

namespace flopinj::reduce {

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  auto& headings = rows_.emplace_back();
  for (const Column& column : columns_) headings.emplace_back(column.heading);
}

std::vector<std::string> TextTable::print(std::ostream& out, size_t width, bool fit,
                                          const Style& style) const {
  std::vector<size_t> content(columns_.size(), 1);
  for (const auto& row : rows_)
    for (size_t c = 0; c < row.size(); ++c)
      content[c] = std::max(content[c], display_width(row[c]));
  const auto widths =
      fit ? fit_columns(columns_, std::move(content), width) : fit_name(std::move(content), width);
  std::vector<std::string> names;
  for (const auto& row : rows_) names.push_back(row[0]);
  names = shorten_apart(names, widths[0]);
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      if (widths[c] == 0) continue;
      const std::string cell = c == 0 ? names[r] : shorten(rows_[r][c], widths[c]);
      const std::string pad(widths[c] - std::min(widths[c], display_width(cell)), ' ');
      line.append(kColumnGap, ' ');
      line += c == 0 ? cell + pad : pad + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << (r == 0 ? style.dim(line) : line) << '\n';
  }
  std::vector<std::string> left_out;
  for (size_t c = 0; c < widths.size(); ++c)
    if (widths[c] == 0) left_out.push_back(rows_[0][c]);
  return left_out;
}

}  // namespace flopinj::reduce
