#include "writers/wrap.h"

#include <algorithm>

namespace flopinj::reduce {
namespace {

// The end of at most `columns` code points.
size_t ahead(std::string_view text, size_t at, size_t columns) {
  for (; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && columns-- == 0) break;
  return at;
}

// "86.82", ">=", "~": what belongs to the word after it.
bool leans_on_next(std::string_view text, size_t begin, size_t end) {
  const size_t space = text.substr(begin, end - begin).rfind(' ');
  const size_t first = space == std::string_view::npos ? begin : begin + space + 1;
  const std::string_view word = text.substr(first, end - first);
  return word.find_first_not_of("0123456789.,<>=~") == std::string_view::npos &&
         !word.ends_with(',') && !word.ends_with('.');
}

// The last space in [begin, end] to break at; npos for none.
size_t last_break(std::string_view text, size_t begin, size_t end) {
  size_t any = std::string_view::npos;
  for (size_t at = end; at > begin; --at) {
    if (text[at] != ' ' || text[at - 1] == ' ') continue;
    const bool wide = at + 1 < text.size() && text[at + 1] == ' ';
    if (wide || !leans_on_next(text, begin, at)) return at;
    if (any == std::string_view::npos) any = at;
  }
  return any;
}

}  // namespace

std::vector<Stretch> wrap(std::string_view text, size_t width, size_t hanging) {
  std::vector<Stretch> lines;
  size_t begin = 0;
  size_t words =
      std::min(text.find_first_not_of(' '), text.size());  // spaces in front are no break
  while (true) {
    const size_t room =
        std::max<size_t>(lines.empty() ? width : width - std::min(width, hanging), 1);
    const size_t end = ahead(text, begin, room);
    const size_t at = end < text.size() ? last_break(text, words, end) : std::string_view::npos;
    lines.push_back({begin, std::min(at, end)});
    begin = at == std::string_view::npos ? end : text.find_first_not_of(' ', at);
    if (begin >= text.size()) return lines;  // npos too
    words = begin;
  }
}

}  // namespace flopinj::reduce
