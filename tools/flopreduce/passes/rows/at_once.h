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

class AtOnce : public Timeline<AtOnce> {
 public:
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
  friend class Timeline<AtOnce>;
  using Key = std::vector<uint32_t>;  // rows in order
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  struct Set {
    uint64_t ns = 0;
    std::vector<uint64_t> launches;  // in kLaunch, by row
  };
  using Done = uint64_t;  // of a launch's kLaunch
  // Of launches that are counted as if each had run alone: past kMostSets or kMostRows, and those
  // that take no time.
  struct Spread {
    uint64_t ns = 0, launches = 0;  // the latter in kLaunch
  };
  Spread& spread(uint32_t row) {
    touch(row);
    if (spread_.size() <= row) spread_.resize(row + size_t{1});
    return spread_[row];
  }
  void stretch(uint64_t to);
  void stretch_of_two(uint64_t to);
  void enter_step(uint32_t) {}
  bool counts() const { return true; }
  bool within(uint64_t) const { return true; }
  bool is_idle_beside(const Launch&) const { return false; }
  void ran_beside(const Launch&, uint64_t, uint64_t) {}
  Set* set_of(uint32_t row, uint32_t higher_row);
  Set* set_of_running();
  Set* set_of_key();
  std::vector<std::pair<Key, Set>> numbered_sets(std::span<const uint32_t> rows);
  void as_if_alone(uint64_t to);

  std::vector<Spread> spread_;  // by row
  std::unordered_map<Key, Set, Hash> sets_;
  // The last sets of two rows, by the rows: kernels of two streams meet again and again.
  struct Pair {
    uint64_t rows = UINT64_MAX;
    Set* set = nullptr;
  };
  std::array<Pair, 256> pairs_{};
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
