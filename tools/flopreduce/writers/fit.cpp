#include "writers/fit.h"

#include <algorithm>
#include <array>
#include <numeric>

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

std::vector<TextStretch> wrap(std::string_view text, size_t width, size_t hanging) {
  std::vector<TextStretch> lines;
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

namespace {

// Where a text may end that goes on behind: the last part of a sentence in [begin, end] is whole,
// unless much would be gone.
size_t last_part(std::string_view text, size_t begin, size_t end) {
  static constexpr std::array<std::string_view, 5> kEnds = {", ", "; ", " / ", " (", " in "};
  for (size_t at = end; at > begin + (end - begin) / 3; --at)
    for (const std::string_view part : kEnds)
      if (text.substr(at).starts_with(part)) return at;
  return last_break(text, begin, end);
}

}  // namespace

std::vector<TextStretch> wrap(std::string_view text, size_t width, size_t hanging, size_t most) {
  std::vector<TextStretch> lines = wrap(text, width, hanging);
  if (lines.size() <= most) return lines;
  lines.resize(most);
  const size_t room = width - std::min(width, (most > 1 ? hanging : 0) + kCut.size());
  auto& [begin, end] = lines.back();
  const size_t at = last_part(text, std::max(begin, text.find_first_not_of(' ', begin)),
                              std::min(ahead(text, begin, room), text.size() - 1));
  if (at != std::string_view::npos) end = at;
  return lines;
}

namespace {

constexpr size_t kLeastName = 24;  // of which a third or so of a terminal is not taken
constexpr size_t kLeastElsewhere = 44;
constexpr size_t kLeastText = 8;  // shorten() goes no further

size_t total(const std::vector<size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), size_t{0},
                         [](size_t sum, size_t w) { return sum + (w > 0 ? w + kColumnGap : 0); });
}

// Of these the least goes first.
int rank(const Column& column) {
  return column.kind == Kind::kExactFlop ? -1 : static_cast<int>(column.worth);
}

// Leaves out what is worth least. False where nothing is left to go.
bool leave_out_one(std::span<const Column> columns, std::vector<size_t>& widths) {
  size_t least = 0;
  for (size_t c = 1; c < columns.size(); ++c)
    if (widths[c] > 0 && columns[c].worth != Worth::kMain &&
        (least == 0 || rank(columns[c]) <= rank(columns[least])))
      least = c;
  if (least == 0) return false;
  widths[least] = 0;
  const size_t other = least - 1;
  if (other > 0 && columns[other].kind == columns[least].kind &&
      rank(columns[other]) == rank(columns[least]))
    widths[other] = 0;
  return true;
}

// Takes from the widest text until all fit, or no text can give more.
void shorten_texts(std::span<const Column> columns, std::vector<size_t>& widths, size_t width) {
  for (size_t all = total(widths); all > width; --all) {
    size_t widest = 0;
    for (size_t c = 1; c < columns.size(); ++c)
      if (columns[c].kind == Kind::kText && widths[c] > widths[widest]) widest = c;
    if (widths[widest] <= kLeastText) return;
    --widths[widest];
  }
}

std::vector<size_t> with_name(std::vector<size_t> content, size_t width, size_t least) {
  const size_t others = total(content) - content[0];
  content[0] = std::min(content[0], std::max(width > others ? width - others : 0, least));
  return content;
}

}  // namespace

std::vector<size_t> fit_name(std::vector<size_t> content, size_t width) {
  return with_name(std::move(content), width, kLeastElsewhere);
}

std::vector<size_t> fit_columns(std::span<const Column> columns, std::vector<size_t> content,
                                size_t width) {
  const size_t least = std::clamp(width / 3, kLeastText, kLeastName);
  std::vector<size_t> widths = with_name(content, width, least);
  while (total(widths) > width && leave_out_one(columns, content))
    widths = with_name(content, width, least);
  shorten_texts(columns, widths, width);
  return widths;
}

}  // namespace flopinj::reduce
