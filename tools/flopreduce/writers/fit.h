// Prose and tables made to fit a terminal.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "sections/parts/table.h"

namespace flopinj::reduce {

struct TextStretch {
  size_t begin = 0, end = 0;  // bytes of the text
};

// Where a line of valid UTF-8 is broken so that none is wider than `width`, with `hanging` columns
// in front of each but the first. Breaks are between words, and not between a number and its unit
// where that can be; a word that is wider than a line is broken itself.
std::vector<TextStretch> wrap(std::string_view text, size_t width, size_t hanging);
// The same in at most so many lines. What does not fit is left out, from a comma on or whatever
// else ends a part of a sentence; then there is room for kCut behind the last one.
std::vector<TextStretch> wrap(std::string_view text, size_t width, size_t hanging, size_t most);
inline constexpr std::string_view kCut = " ...";

inline constexpr size_t kColumnGap = 2;  // in front of each column

// Columns for a terminal of `width`, given how wide each one's content is: its width, or 0 where it
// is left out. The name (the first column) is shortened first; then columns go, those of least
// worth first, of equals the one further to the right, and second looks (Kind::kExactFlop) before
// all. Two neighbours of one kind and worth, such as "time A" and "time B", go together. Columns
// that the table is for stay, but their texts are shortened too. A column of numbers is never
// narrower than its content.
std::vector<size_t> fit_columns(std::span<const Column> columns, std::vector<size_t> content,
                                size_t width);

// Only the name is shortened, to what the others leave of `width`, and where that is little, to 44:
// lines that no terminal shows may be longer.
std::vector<size_t> fit_name(std::vector<size_t> content, size_t width);

}  // namespace flopinj::reduce
