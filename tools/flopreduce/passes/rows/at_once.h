// What a summary keeps of a device's time line, from which "where the peak went" is made: for each
// set of rows of which kernels ran at once how long they did, and gaps by the row of the kernel
// after them. A set of one row holds nearly all launches of most recordings.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flop_trace.pb.h"
#include "passes/rows/timeline.h"

namespace flopinj::reduce {

// The causes of gaps as the format numbers them.
inline constexpr std::array kGapLines{LostLine::kIdleHostLate,     LostLine::kIdleQueued,
                                      LostLine::kIdleBetweenSteps, LostLine::kIdleLongGaps,
                                      LostLine::kIdleShortGaps,    LostLine::kIdleCopies};

// In 32 bytes: many are kept until they are in order.
struct AtOnceLaunch {
  static constexpr uint32_t kCopy = UINT32_MAX;  // as its row: no launch, memory was copied
  uint64_t begin_ns, length_ns;
  uint32_t row, step;
  uint32_t called_before;
  uint32_t pause : 31, windowed : 1;
};
static_assert(sizeof(AtOnceLaunch) == 32);

class AtOnce : public Timeline<AtOnce, AtOnceLaunch> {
 public:
  using Launch = AtOnceLaunch;
  static constexpr uint64_t kLaunch = uint64_t{1} << 32;  // parts of a launch are counted in it
  // Of several rows: kernels of more, or in more sets, are counted as if each had run alone.
  static constexpr size_t kMostSets = 4096, kMostRows = 16;

  // In the order of their beginnings.
  void launch(const Launch& launch);
  // After the last launch. `rows`: numbers in the summary, by Launch::row. Nothing without
  // launches.
  std::optional<trace::AtOnce> take(uint32_t device, std::span<const uint32_t> rows,
                                    uint32_t all_rows);

 private:
  friend class Timeline<AtOnce, AtOnceLaunch>;
  using Key = std::vector<uint32_t>;  // rows in order
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Set {
    uint64_t ns = 0;
    std::vector<uint64_t> launches;  // in kLaunch, by row
  };
  struct Row {
    bool any = false;
    uint64_t ns = 0, launches = 0;  // alone
    std::array<uint64_t, kGapLines.size()> gap_ns{}, beside_ns{};
  };
  Row& row(uint32_t of) {
    if (rows_.size() <= of) rows_.resize(of + 1);
    rows_[of].any = true;
    return rows_[of];
  }
  bool alone(const Launch& launch);
  void stretch(uint64_t to);
  void gap(uint64_t ns, LostLine line, const Launch& next, bool beside);
  void enter_step(uint32_t) {}
  bool counts() const { return true; }
  Set* set_of_running();
  std::vector<std::pair<Key, Set>> numbered_sets(std::span<const uint32_t> rows);
  void as_if_alone(uint64_t to);

  std::vector<Row> rows_;
  std::unordered_map<Key, Set, Hash> sets_;
  uint64_t spread_ns_ = 0;
  Key key_;                      // of the stretch at hand, and the places of its launches
  std::vector<uint32_t> order_;  // in running()
};

// As a summary has it.
struct AtOnceSums {
  struct Part {
    uint32_t row = 0;
    uint64_t launches = 0;  // in AtOnce::kLaunch
  };
  struct Set {
    uint64_t ns = 0;
    size_t begin = 0, end = 0;  // of `parts`
  };
  struct Gap {
    uint32_t row = 0;
    LostLine line{};
    uint64_t ns = 0, beside_ns = 0;
  };
  std::vector<Set> sets;
  std::vector<Part> parts;
  std::vector<Gap> gaps;
  uint64_t ns = 0;  // of all
  uint64_t edge_copies_ns = 0;
};
// Nothing where the message has figures that cannot be.
std::optional<AtOnceSums> read_at_once(const trace::AtOnce& message);

}  // namespace flopinj::reduce
