#include <collector/options/rank_list.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace flopinj {
namespace {

bool read_rank(std::string_view text, int32_t& rank) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return error == std::errc{} && end == text.data() + text.size() && rank >= 0;
}

}  // namespace

std::optional<RankList> RankList::parse(std::string_view text) {
  if (text == "all") return RankList({{0, std::numeric_limits<int32_t>::max()}});
  if (text == "none") return RankList(Ranges{});
  Ranges ranges;
  for (bool more = true; more;) {
    const size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    const std::string_view item = text.substr(0, comma);
    if (more) text.remove_prefix(comma + 1);
    const size_t dash = item.find('-');
    int32_t first = 0;
    int32_t last = 0;
    if (!read_rank(item.substr(0, dash), first)) return std::nullopt;
    if (dash == std::string_view::npos)
      last = first;
    else if (!read_rank(item.substr(dash + 1), last) || last < first)
      return std::nullopt;
    ranges.emplace_back(first, last);
  }
  return RankList(std::move(ranges));
}

bool RankList::contains(int32_t rank) const {
  if (rank < 0) return !ranges_.empty();
  return std::any_of(ranges_.begin(), ranges_.end(), [rank](const auto& range) {
    return range.first <= rank && rank <= range.second;
  });
}

}  // namespace flopinj
