// Files of lines that a user wrote, and errors in them that say where they are.
#pragma once
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "support/text.h"

namespace flopinj::reduce {

// Calls line(text, place) for each line, without its end; `place` is as "rules.txt:7". The call
// returns what is wrong with the line, fit to be shown, or an empty text. The first error ends it:
// its place, what is wrong, and `form`, which says how a line has to be. A file of more than
// `most_bytes` is an error, too.
template <typename Line>
std::optional<std::string> for_each_line(const std::string& name, std::string_view text,
                                         size_t most_bytes, std::string_view form, Line&& line) {
  const std::string file = printable(name);
  if (text.size() > most_bytes)
    return file + ": larger than " + std::to_string(most_bytes) + " bytes";
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    const std::string place = file + ":" + std::to_string(number);
    if (const std::string wrong = line(whole, place); !wrong.empty())
      return place + ": " + wrong + " (" + std::string(form) + ")";
  }
  return std::nullopt;
}

}  // namespace flopinj::reduce
