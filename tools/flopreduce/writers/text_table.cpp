#include "writers/text_table.h"

#include <algorithm>

#include "support/text.h"

namespace flopinj::reduce {

void TextTable::print(std::ostream& out, size_t width, const Style& style) const {
  constexpr size_t kGap = 2;
  constexpr size_t kLeastName = 24;
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], display_width(row[c]));
  size_t others = 0;
  for (size_t c = 1; c < widths.size(); ++c) others += widths[c] + kGap;
  const size_t left = width > others + kGap ? width - others - kGap : 0;
  widths[0] = std::min(widths[0], std::max(left, kLeastName));
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line(kGap, ' ');
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      const std::string cell = c == 0 ? shorten(rows_[r][c], widths[0]) : rows_[r][c];
      const std::string pad(widths[c] - std::min(widths[c], display_width(cell)), ' ');
      if (c > 0) line.append(kGap, ' ');
      line += c == 0 ? cell + pad : pad + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << (r == 0 ? style.dim(line) : line) << '\n';
  }
}

}  // namespace flopinj::reduce
