// How far apart two names are, to find which ones a misspelt name may have meant.
#pragma once
#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace flopinj {

// Insertions, deletions and changes of bytes that turn one into the other, and neighbours that
// changed places ("dmeo"), which are one slip of the hand. Takes the product of both lengths in
// time: cut long names first.
inline size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace flopinj
