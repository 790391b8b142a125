// Which ranks of a job measure: "0", "0,8-15", "all", "none".
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace flopinj {

class RankList {
 public:
  // Nothing for text that is no list: numbers and ranges with commas between them, or one word.
  static std::optional<RankList> parse(std::string_view text);
  static RankList only_rank_0() { return RankList({{0, 0}}); }

  // A process without a rank (-1) is a job of its own: it measures unless the list is "none".
  bool contains(int32_t rank) const;

 private:
  using Ranges = std::vector<std::pair<int32_t, int32_t>>;  // first and last
  explicit RankList(Ranges ranges) : ranges_(std::move(ranges)) {}
  Ranges ranges_;
};

}  // namespace flopinj
