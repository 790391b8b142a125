// Prose in lines that fit a terminal.
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace flopinj::reduce {

struct Stretch {
  size_t begin = 0, end = 0;  // bytes of the text
};

// Where a line of valid UTF-8 is broken so that none is wider than `width`, with `hanging` columns
// in front of each but the first. Breaks are between words, and not between a number and its unit
// where that can be; a word that is wider than a line is broken itself.
std::vector<Stretch> wrap(std::string_view text, size_t width, size_t hanging);

}  // namespace flopinj::reduce
